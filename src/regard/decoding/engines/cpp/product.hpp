// x W + b for any number of rows x, with W laid out once for it: in float32, or in 8 bits.
#pragma once
#include <cstdint>

namespace regard {

constexpr int64_t WORTH = 1 << 19;  // multiplications from which on work is split over threads

struct Matrix {
    int64_t in, out;
    const float* weight;    // panels x in x PANEL; null in 8 bits
    const int8_t* rounded;  // panels x in / QUADS x PANEL x QUADS; padding in the last QUADS is 0
    const float* bias;      // panels x PANEL, as the next two
    const float* scales;    // of each column in 8 bits
    const int32_t* start;   // -128 times the sum of each column in 8 bits, since x8 is 128 too much
};

enum class Then { put, add, relu };  // epilogue: store, add to the output, or ReLU

void product(const float* x, int64_t rows, const Matrix& matrix, float* y, Then then, int threads);

}  // namespace regard
