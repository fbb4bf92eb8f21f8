// SIMD vectors, by the vector extensions that GCC and Clang share.
#pragma once
#include <cstdint>
#include <cstring>

namespace regard {

#if defined(__AVX512F__)
constexpr int64_t WIDTH = 16;
#elif defined(__AVX__)
constexpr int64_t WIDTH = 8;
#else
constexpr int64_t WIDTH = 4;
#endif
typedef float Lane __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));
typedef int32_t Whole __attribute__((vector_size(4 * WIDTH), aligned(4), may_alias));

inline Lane load(const float* from) { return *reinterpret_cast<const Lane*>(from); }
inline void store(float* to, Lane lane) { *reinterpret_cast<Lane*>(to) = lane; }
inline Lane all(float value) { return value - Lane{}; }

inline float sum(Lane lane) {
    float total = 0.0f;
    for (int64_t n = WIDTH / 2; n; n /= 2)
        for (int64_t i = 0; i < n; i++) lane[i] += lane[i + n];
    return total + lane[0];
}

// Load the first `count` numbers of a vector; the others are `rest`.
inline Lane part(const float* from, int64_t count, float rest = 0.0f) {
    float held[WIDTH];
    for (int64_t i = 0; i < WIDTH; i++) held[i] = i < count ? from[i] : rest;
    return load(held);
}

inline void store_part(float* to, Lane lane, int64_t count) { std::memcpy(to, &lane, 4 * count); }

// e^x = 2^n e^r with |r| <= ln 2 / 2: n is added to the exponent, and r through the series up to r^7 / 7!. NaN stays NaN.
inline Lane exp(Lane x) {
    const Lane low = all(-87.0f), high = all(88.0f);
    const Lane tiny = x < low ? all(0.0f) : all(1.0f);
    x = x < low ? low : x;
    x = x > high ? high : x;
    const Lane shifted = x * 1.44269504f + 12582912.0f;  // 1.5 x 2^23: what is left of the sum's fraction is n
    const Lane n = shifted - 12582912.0f;
    const Lane r = (x - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts
    Lane series = all(1.0f / 5040);
    series = series * r + 1.0f / 720;
    series = series * r + 1.0f / 120;
    series = series * r + 1.0f / 24;
    series = series * r + 1.0f / 6;
    series = series * r + 0.5f;
    series = series * r + 1.0f;
    series = series * r + 1.0f;
    const Whole bits = (reinterpret_cast<const Whole&>(shifted) << 23) + (127 << 23);
    return series * reinterpret_cast<const Lane&>(bits) * tiny;
}

inline Lane sigmoid(Lane x) { return 1.0f / (1.0f + exp(-x)); }
inline Lane tanh(Lane x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }

// Apply a function to every vector of a row, the last of which may be partial.
template <typename Change>
inline void change(float* row, int64_t size, Change to) {
    int64_t i = 0;
    for (; i + WIDTH <= size; i += WIDTH) store(row + i, to(load(row + i), i, WIDTH));
    if (i < size) store_part(row + i, to(part(row + i, size - i), i, size - i), size - i);
}

}  // namespace regard
