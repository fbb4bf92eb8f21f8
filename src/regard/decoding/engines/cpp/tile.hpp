// Tile of a matrix product: some rows of x by one panel of W, the innermost loop.
#pragma once
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

#include "simd.hpp"

namespace regard {

constexpr int64_t PANEL = 2 * WIDTH;     // columns of W in a panel: two SIMD vectors
constexpr int64_t QUADS = 4;             // int8 numbers that one instruction multiplies and adds
constexpr int64_t LINE = 64;             // bytes of a cache line
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int64_t ROWS = 12;  // rows of x in a tile: their accumulators fill the registers
#else
constexpr int64_t ROWS = 6;
#endif

// Prefetch of the next panel while this one is used. Each block of rows prefetches its share.
struct Ahead {
    const char* from;
    int64_t share;
    bool twice;

    Ahead(const char* next, int64_t bytes, int64_t block, int64_t blocks)
        : from(next + bytes * block / blocks), share(4 * PANEL / blocks), twice(share > LINE) {}

    void fetch(int64_t number) const {
        __builtin_prefetch(from + number * share, 0, 2);
        if (twice) __builtin_prefetch(from + number * share + LINE, 0, 2);
    }
};

// With few rows every second or fourth product has its own accumulators, since each addition waits for the one before.
constexpr int split(int rows) { return ROWS / rows >= 6 ? 4 : ROWS / rows >= 2 ? 2 : 1; }

// Tile of R rows and one panel.
template <int R, int SPLIT = split(R)>
inline void tile(const float* x, int64_t stride, const float* weight, int64_t in, const float* start, Ahead ahead,
                 Lane (*found)[2]) {
    Lane left[SPLIT][R] = {}, right[SPLIT][R] = {};
    for (int r = 0; r < R; r++) left[0][r] = load(start), right[0][r] = load(start + WIDTH);
    int64_t k = 0;
    for (; k + SPLIT <= in; k += SPLIT) {
#pragma GCC unroll 4
        for (int s = 0; s < SPLIT; s++) {
            const float* at = weight + (k + s) * PANEL;
            const Lane first = load(at), second = load(at + WIDTH);
            if (R > 1) ahead.fetch(k + s);
#pragma GCC unroll 16
            for (int r = 0; r < R; r++) {
                const Lane value = all(x[r * stride + k + s]);
                left[s][r] += value * first;
                right[s][r] += value * second;
            }
        }
    }
    for (; k < in; k++)
        for (int r = 0; r < R; r++) {
            left[0][r] += x[r * stride + k] * load(weight + k * PANEL);
            right[0][r] += x[r * stride + k] * load(weight + k * PANEL + WIDTH);
        }
    for (int r = 0; r < R; r++) {
        for (int s = 1; s < SPLIT; s++) left[0][r] += left[s][r], right[0][r] += right[s][r];
        found[r][0] = left[0][r], found[r][1] = right[0][r];
    }
}

// Tile of one row and two panels.
inline void pair(const float* x, const float* weight, int64_t in, const float* start, Lane (*found)[2]) {
    Lane a = load(start), b = load(start + WIDTH), c = load(start + PANEL), d = load(start + PANEL + WIDTH);
    for (int64_t k = 0; k < in; k++) {
        const float *first = weight + k * PANEL, *second = first + in * PANEL;
        const Lane value = all(x[k]);
        a += value * load(first);
        b += value * load(first + WIDTH);
        c += value * load(second);
        d += value * load(second + WIDTH);
    }
    found[0][0] = a, found[0][1] = b, found[1][0] = c, found[1][1] = d;
}

// Add four int8 products to each accumulator.
inline Whole dot(Whole sums, int32_t four, const int8_t* weight) {
#if defined(__AVX512VNNI__)
    return (Whole)_mm512_dpbusd_epi32((__m512i)sums, _mm512_set1_epi32(four), _mm512_loadu_si512(weight));
#else
    uint8_t x[QUADS];
    std::memcpy(x, &four, QUADS);
    for (int64_t c = 0; c < WIDTH; c++)
        for (int64_t q = 0; q < QUADS; q++) sums[c] += static_cast<int32_t>(x[q]) * weight[c * QUADS + q];
    return sums;
#endif
}

template <int R, int SPLIT = split(R)>
inline void tile(const uint8_t* x, int64_t stride, const int8_t* weight, int64_t, const int32_t* start, Ahead,
                 Lane (*found)[2]) {
    Whole left[SPLIT][R] = {}, right[SPLIT][R] = {};
    for (int r = 0; r < R; r++) {
        left[0][r] = *reinterpret_cast<const Whole*>(start);
        right[0][r] = *reinterpret_cast<const Whole*>(start + WIDTH);
    }
    int64_t k = 0;
    const auto through = [&](int s) {
        const int8_t* at = weight + (k + QUADS * s) * PANEL;
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) {
            int32_t four;
            std::memcpy(&four, x + r * stride + k + QUADS * s, QUADS);
            left[s][r] = dot(left[s][r], four, at);
            right[s][r] = dot(right[s][r], four, at + WIDTH * QUADS);
        }
    };
    for (; k + QUADS * SPLIT <= stride; k += QUADS * SPLIT)
#pragma GCC unroll 4
        for (int s = 0; s < SPLIT; s++) through(s);
    for (; k < stride; k += QUADS) through(0);
    for (int r = 0; r < R; r++) {
        for (int s = 1; s < SPLIT; s++) left[0][r] += left[s][r], right[0][r] += right[s][r];
        found[r][0] = __builtin_convertvector(left[0][r], Lane), found[r][1] = __builtin_convertvector(right[0][r], Lane);
    }
}

template <typename Data, typename Weight, typename Start>
__attribute__((noinline)) void tiles(int rows, const Data* x, int64_t stride, const Weight* weight, int64_t in,
                                     const Start* start, Ahead ahead, Lane (*found)[2]) {
    switch (rows) {
        case 1: return tile<1>(x, stride, weight, in, start, ahead, found);
        case 2: return tile<2>(x, stride, weight, in, start, ahead, found);
        case 3: return tile<3>(x, stride, weight, in, start, ahead, found);
        case 4: return tile<4>(x, stride, weight, in, start, ahead, found);
        case 5: return tile<5>(x, stride, weight, in, start, ahead, found);
        case 6: return tile<6>(x, stride, weight, in, start, ahead, found);
#if defined(__AVX512F__) || defined(__aarch64__)
        case 7: return tile<7>(x, stride, weight, in, start, ahead, found);
        case 8: return tile<8>(x, stride, weight, in, start, ahead, found);
        case 9: return tile<9>(x, stride, weight, in, start, ahead, found);
        case 10: return tile<10>(x, stride, weight, in, start, ahead, found);
        case 11: return tile<11>(x, stride, weight, in, start, ahead, found);
        case 12: return tile<12>(x, stride, weight, in, start, ahead, found);
#endif
    }
}

}  // namespace regard
