// openvino_example model.xml left.ppm right.ppm disparity.pfm
#include <openvino/openvino.hpp>

#include "images.hpp"

int main(int, char** arguments) {
    auto model = ov::Core().read_model(arguments[1]);
    auto number = [&](const char* key) { return std::stoul(model->get_rt_info<std::string>("aanet", key)); };
    const Image left = read_ppm(arguments[2]), right = read_ppm(arguments[3]);
    const size_t height = padded(left.height, number("size_multiple"), number("minimum_size"));
    const size_t width = padded(left.width, number("size_multiple"), number("minimum_size"));

    const ov::Shape shape{1, 3, height, width};
    model->reshape({{"left", shape}, {"right", shape}});  // a known size is faster
    // Without the hint OpenVINO computes in bfloat16 where the processor can, which costs accuracy.
    auto compiled = ov::Core().compile_model(model, "CPU", ov::hint::inference_precision(ov::element::f32));
    auto request = compiled.create_infer_request();
    auto left_planes = planes(left, height, width), right_planes = planes(right, height, width);
    request.set_tensor("left", ov::Tensor(ov::element::f32, shape, left_planes.data()));
    request.set_tensor("right", ov::Tensor(ov::element::f32, shape, right_planes.data()));
    request.infer();

    const float* disparity = request.get_tensor("disparity").data<float>();  // [1, height, width], pixels
    write_pfm(arguments[4], disparity, height, width, left);
}
