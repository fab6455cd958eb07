// onnxruntime_example model.onnx left.ppm right.ppm disparity.pfm
#include <onnxruntime_cxx_api.h>

#include <array>

#include "images.hpp"

int main(int, char** arguments) {
    Ort::Env environment;
    Ort::Session session(environment, arguments[1], Ort::SessionOptions());
    Ort::AllocatorWithDefaultOptions allocator;
    auto metadata = session.GetModelMetadata();
    auto number = [&](const char* key) {
        return std::stoul(metadata.LookupCustomMetadataMapAllocated(key, allocator).get());
    };
    const Image left = read_ppm(arguments[2]), right = read_ppm(arguments[3]);
    const size_t height = padded(left.height, number("size_multiple"), number("minimum_size"));
    const size_t width = padded(left.width, number("size_multiple"), number("minimum_size"));

    const std::array<int64_t, 4> shape{1, 3, int64_t(height), int64_t(width)};
    auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    auto left_planes = planes(left, height, width), right_planes = planes(right, height, width);
    std::array<Ort::Value, 2> pair{
        Ort::Value::CreateTensor<float>(memory, left_planes.data(), left_planes.size(), shape.data(), 4),
        Ort::Value::CreateTensor<float>(memory, right_planes.data(), right_planes.size(), shape.data(), 4)};
    const char *inputs[] = {"left", "right"}, *outputs[] = {"disparity"};
    auto maps = session.Run(Ort::RunOptions(), inputs, pair.data(), 2, outputs, 1);

    const float* disparity = maps[0].GetTensorData<float>();  // [1, height, width], pixels
    write_pfm(arguments[4], disparity, height, width, left);
}
