// Image input and output of the examples: reading binary PPM, conversion to planes, writing PFM.
#pragma once
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

struct Image {
    size_t width = 0, height = 0;
    std::vector<uint8_t> rgb;  // [height, width, 3]
};

inline Image read_ppm(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string magic;
    Image image;
    size_t maximum = 0;
    file >> magic >> image.width >> image.height >> maximum;
    if (magic != "P6" || maximum != 255) throw std::runtime_error(path + " is not a binary PPM of 8 bits.");
    file.get();  // the single whitespace before the pixels
    image.rgb.resize(3 * image.width * image.height);
    file.read(reinterpret_cast<char*>(image.rgb.data()), std::streamsize(image.rgb.size()));
    if (!file) throw std::runtime_error(path + " ends too early.");
    return image;
}

inline size_t padded(size_t side, size_t multiple, size_t minimum) {
    return std::max((side + multiple - 1) / multiple * multiple, minimum);
}

// Returns RGB in 0 … 1, [3, height, width]: the image in the center, padded by replicating border pixels.
inline std::vector<float> planes(const Image& image, size_t height, size_t width) {
    const size_t top = (height - image.height) / 2, left = (width - image.width) / 2;
    std::vector<float> values(3 * height * width);
    for (size_t c = 0; c < 3; ++c)
        for (size_t y = 0; y < height; ++y)
            for (size_t x = 0; x < width; ++x) {
                const size_t row = std::clamp(y, top, top + image.height - 1) - top;
                const size_t column = std::clamp(x, left, left + image.width - 1) - left;
                const uint8_t value = image.rgb[(row * image.width + column) * 3 + c];
                values[(c * height + y) * width + x] = float(value) / 255.0f;
            }
    return values;
}

// Writes a map [height, width] without the padding of `planes`. PFM stores the bottom row first.
inline void write_pfm(const std::string& path, const float* map, size_t height, size_t width, const Image& like) {
    const size_t top = (height - like.height) / 2, left = (width - like.width) / 2;
    std::ofstream file(path, std::ios::binary);
    file << "Pf\n" << like.width << " " << like.height << "\n-1\n";
    for (size_t y = like.height; y-- > 0;)
        file.write(reinterpret_cast<const char*>(map + (top + y) * width + left),
                   std::streamsize(like.width * sizeof(float)));
}
