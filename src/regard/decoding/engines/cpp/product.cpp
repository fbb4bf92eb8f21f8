// Matrix products of product.hpp: rows of x in blocks, columns of W in panels, and tiles where they meet.
#include "product.hpp"

#include <algorithm>
#include <vector>

#include "tile.hpp"

namespace regard {

constexpr int64_t TOGETHER = 1 << 18;  // bytes of neighbouring panels that all rows go through before the next

// Rows of x quantised to 8 bits, each with its own scale: x = s (x8 - 128).
struct Rounded {
    std::vector<uint8_t> data;
    std::vector<float> scales;
    int64_t stride = 0;

    void take(const float* x, int64_t rows, int64_t in) {
        stride = (in + QUADS - 1) / QUADS * QUADS;
        data.resize(rows * stride), scales.resize(rows);
        for (int64_t r = 0; r < rows; r++) {
            const float* row = x + r * in;
            const float most = std::max(furthest(row, in), 1e-12f), share = 127 / most;
            scales[r] = most / 127;
            uint8_t* to = data.data() + r * stride;
            int64_t i = 0;
            for (; i + WIDTH <= in; i += WIDTH) round(load(row + i) * share, to + i, WIDTH);
            if (i < in) round(part(row + i, in - i) * share, to + i, in - i);
            std::fill(to + in, to + stride, 128);
        }
    }

    // The largest magnitude of a row; NaN where a number is not finite, so that what is found of the row is NaN too.
    static float furthest(const float* row, int64_t size) {
        Lane most = {}, broken = {};
        int64_t i = 0;
        const auto further = [&](Lane lane) {
            broken += lane - lane;
            lane = lane < 0.0f ? -lane : lane;
            most = lane > most ? lane : most;
        };
        for (; i + WIDTH <= size; i += WIDTH) further(load(row + i));
        if (i < size) further(part(row + i, size - i));
        float found = 0.0f;
        for (int64_t c = 0; c < WIDTH; c++) found = std::max(found, most[c]);
        return found + sum(broken);
    }

    // Round to the nearest integer, ties to even: the fraction of the sum has no room for less than 1.
    static void round(Lane lane, uint8_t* to, int64_t count) {
        typedef uint8_t Bytes __attribute__((vector_size(WIDTH)));
        const Lane nearest = (lane + 12582912.0f) - 12582912.0f + 128.0f;
        const Bytes bytes = __builtin_convertvector(__builtin_convertvector(nearest, Whole), Bytes);
        std::memcpy(to, &bytes, count);
    }
};

// Epilogue of a tile: store a vector of its columns, which the last panel may not fill, at its place in y.
template <Then THEN>
inline void place(Lane found, float* y, int64_t count) {
    if (count <= 0) return;
    if (THEN == Then::add) found += count >= WIDTH ? load(y) : part(y, count);
    if (THEN == Then::relu) found = found <= 0.0f ? all(0.0f) : found;  // NaN stays NaN
    if (count >= WIDTH) return store(y, found);
    store_part(y, found, count);
}

// Loop over all panels, a group of neighbours at a time, so that writes to a row are contiguous. `work` takes a block
// of rows, the first column of a panel, and a function that gives the panel to prefetch.
template <typename Work>
inline void every(int64_t rows, const Matrix& matrix, int64_t bytes, int threads, Work work) {
    const int64_t panels = (matrix.out + PANEL - 1) / PANEL, blocks = (rows + ROWS - 1) / ROWS;
    const int64_t group = blocks == 1 ? 1 : std::max<int64_t>(1, TOGETHER / bytes);
    const int64_t groups = (panels + group - 1) / group;
    const int sharing = rows * matrix.in * matrix.out < WORTH ? 1 : threads;
#pragma omp parallel for num_threads(sharing) if (sharing > 1)
    for (int64_t number = 0; number < groups; number++)
        for (int64_t block = 0; block < blocks; block++) {
            const int64_t begin = rows * block / blocks, count = rows * (block + 1) / blocks - begin;
            for (int64_t panel = number * group; panel < std::min(panels, (number + 1) * group); panel++)
                work(begin, count, panel * PANEL, [=](const void* weight) {
                    return Ahead(static_cast<const char*>(weight) + group * bytes, bytes, block, blocks);
                });
        }
}

// Product of one row, which is bound by memory bandwidth: two panels side by side prefetch better than one.
template <Then THEN>
inline void single(const float* x, const Matrix& matrix, float* y, int threads) {
    const int64_t in = matrix.in, panels = (matrix.out + PANEL - 1) / PANEL;
    const int sharing = in * matrix.out < WORTH ? 1 : threads;
#pragma omp parallel for num_threads(sharing) if (sharing > 1)
    for (int64_t panel = 0; panel < panels; panel += 2) {
        Lane found[2][2];
        const int64_t column = panel * PANEL, count = std::min<int64_t>(2, panels - panel);
        const float *weight = matrix.weight + column * in, *bias = matrix.bias + column;
        if (count == 2) pair(x, weight, in, bias, found);
        else tile<1>(x, in, weight, in, bias, Ahead(nullptr, 0, 0, 1), found);
        for (int64_t c = 0; c < count; c++)
            for (int64_t half = 0; half < 2; half++) {
                const int64_t at = column + c * PANEL + half * WIDTH;
                place<THEN>(found[c][half], y + at, matrix.out - at);
            }
    }
}

template <Then THEN>
inline void product(const float* x, int64_t rows, const Matrix& matrix, float* y, int threads) {
    if (rows == 1) return single<THEN>(x, matrix, y, threads);
    const auto work = [=, &matrix](int64_t begin, int64_t count, int64_t column, auto ahead) {
        Lane found[ROWS][2];
        const int64_t in = matrix.in, left = matrix.out - column;
        const float* weight = matrix.weight + column * in;
        tiles(count, x + begin * in, in, weight, in, matrix.bias + column, ahead(weight), found);
        for (int64_t r = 0; r < count; r++) {
            float* to = y + (begin + r) * matrix.out + column;
            place<THEN>(found[r][0], to, left);
            place<THEN>(found[r][1], to + WIDTH, left - WIDTH);
        }
    };
    every(rows, matrix, 4 * PANEL * matrix.in, threads, work);
}

template <Then THEN>
inline void product8(const float* x, int64_t rows, const Matrix& matrix, float* y, int threads) {
    static thread_local Rounded rounded;
    rounded.take(x, rows, matrix.in);
    const Rounded& taken = rounded;  // of the calling thread, shared by all workers
    const auto work = [&taken, &matrix, y](int64_t begin, int64_t count, int64_t column, auto ahead) {
        Lane found[ROWS][2];
        const int64_t stride = taken.stride, left = matrix.out - column;
        const int8_t* weight = matrix.rounded + column * stride;
        tiles(count, taken.data.data() + begin * stride, stride, weight, matrix.in, matrix.start + column,
              ahead(weight), found);
        const Lane scales[2] = {load(matrix.scales + column), load(matrix.scales + column + WIDTH)};
        const Lane bias[2] = {load(matrix.bias + column), load(matrix.bias + column + WIDTH)};
        for (int64_t r = 0; r < count; r++) {
            float* to = y + (begin + r) * matrix.out + column;
            const float share = taken.scales[begin + r];
            place<THEN>(found[r][0] * (scales[0] * share) + bias[0], to, left);
            place<THEN>(found[r][1] * (scales[1] * share) + bias[1], to + WIDTH, left - WIDTH);
        }
    };
    every(rows, matrix, PANEL * taken.stride, threads, work);
}

void product(const float* x, int64_t rows, const Matrix& matrix, float* y, Then then, int threads) {
    const bool eight = matrix.weight == nullptr;
    switch (then) {
        case Then::put: return (eight ? product8<Then::put> : product<Then::put>)(x, rows, matrix, y, threads);
        case Then::add: return (eight ? product8<Then::add> : product<Then::add>)(x, rows, matrix, y, threads);
        default: return (eight ? product8<Then::relu> : product<Then::relu>)(x, rows, matrix, y, threads);
    }
}

}  // namespace regard

// Matrix product by itself.
extern "C" void regard_product(const float* x, int64_t rows, const regard::Matrix* matrix, float* y, int then, int threads) {
    regard::product(x, rows, *matrix, y, static_cast<regard::Then>(then), threads);
}
