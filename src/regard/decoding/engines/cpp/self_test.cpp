// Self-test of the compiled library on this processor, run once, in a process of its own.
#include <cmath>
#include <vector>

#include "product.hpp"
#include "tile.hpp"

using namespace regard;

extern "C" int regard_trial() {
    const int64_t in = 37, out = 45, rows = 14, fours = 40;  // partial vectors, panels and blocks of rows
    const int64_t panels = (out + PANEL - 1) / PANEL;
    std::vector<float> x(rows * in), y(rows * out), bias(panels * PANEL), weight(panels * in * PANEL);
    std::vector<float> scales(panels * PANEL, 1.0f);
    std::vector<int8_t> rounded(panels * fours * PANEL);
    std::vector<int32_t> start(panels * PANEL);
    const auto value = [](int64_t k, int64_t c) { return static_cast<int>((3 * k + 7 * c) % 11) - 5; };
    for (int64_t i = 0; i < rows * in; i++) x[i] = static_cast<float>(i % 255 - 127);  // -127 to 127 in every row but few
    for (int64_t r = 0; r < rows; r++) x[r * in] = 127.0f;                            // so that each row has the scale 1
    for (int64_t c = 0; c < out; c++) {
        bias[c] = static_cast<float>(c);
        for (int64_t k = 0; k < in; k++) {
            weight[(c / PANEL * in + k) * PANEL + c % PANEL] = static_cast<float>(value(k, c));
            const int64_t four = (c / PANEL * fours + k / QUADS * QUADS) * PANEL + c % PANEL * QUADS;
            rounded[four + k % QUADS] = static_cast<int8_t>(value(k, c));
            start[c] -= 128 * value(k, c);
        }
    }
    const Matrix single = {in, out, weight.data(), nullptr, bias.data(), nullptr, nullptr};
    const Matrix eight = {in, out, nullptr, rounded.data(), bias.data(), scales.data(), start.data()};
    for (const Matrix* matrix : {&single, &eight}) {
        product(x.data(), rows, *matrix, y.data(), Then::put, 1);
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < out; c++) {
                float right = bias[c];
                for (int64_t k = 0; k < in; k++) right += x[r * in + k] * value(k, c);
                if (std::fabs(right - y[r * out + c]) > 0.01f) return 1;
            }
    }
    return 0;
}

// Number of columns in a panel.
extern "C" int regard_panel() { return PANEL; }

// Non-zero if the processor multiplies int8 numbers four at a time.
extern "C" int regard_multiplies_bytes() {
#if defined(__AVX512VNNI__)
    return 1;
#else
    return 0;
#endif
}
