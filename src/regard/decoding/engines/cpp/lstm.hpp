// LSTM cell, from its gates: Hochreiter and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735.
#pragma once
#include <algorithm>

#include "simd.hpp"

namespace regard {

// c' = s(f) c + s(i) tanh(g), h' = s(o) tanh(c'), with the gates i, f, g and o of a row side by side.
inline void gate(const float* gates, int64_t size, float* hidden, float* cell) {
    for (int64_t i = 0; i < size; i += WIDTH) {
        const int64_t filled = std::min(WIDTH, size - i);
        const auto from = [&](const float* row) { return filled == WIDTH ? load(row + i) : part(row + i, filled); };
        const Lane enter = sigmoid(from(gates)), forget = sigmoid(from(gates + size));
        const Lane kept = forget * from(cell) + enter * tanh(from(gates + 2 * size));
        const Lane shown = sigmoid(from(gates + 3 * size)) * tanh(kept);
        store_part(cell + i, kept, filled);
        store_part(hidden + i, shown, filled);
    }
}

}  // namespace regard
