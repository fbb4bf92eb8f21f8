// Attention of one row over some keys, and layer norm: the operations between the matrix products.
#pragma once
#include <algorithm>
#include <cmath>

#include "simd.hpp"

namespace regard {

inline float dot(const float* one, const float* other, int64_t size) {
    Lane total = {};
    int64_t i = 0;
    for (; i + WIDTH <= size; i += WIDTH) total += load(one + i) * load(other + i);
    if (i < size) total += part(one + i, size - i) * part(other + i, size - i);
    return sum(total);
}

// v tanh(one + other)
inline float bent(const float* one, const float* other, const float* v, int64_t size) {
    Lane total = {};
    int64_t i = 0;
    for (; i + WIDTH <= size; i += WIDTH) total += load(v + i) * tanh(load(one + i) + load(other + i));
    if (i < size) total += part(v + i, size - i) * tanh(part(one + i, size - i) + part(other + i, size - i));
    return sum(total);
}

// Attention softmax(score) v, for one head of one row: `score` returns the score of the i-th key, `value` the address
// of the i-th value, of `wide` numbers; `scores` is a buffer.
template <typename Score, typename Value>
inline void attend(int64_t count, Score score, Value value, int64_t wide, float* scores, float* found) {
    float most = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        scores[i] = score(i);
        most = std::max(most, scores[i]);
    }
    Lane totals = {};
    change(scores, count, [&](Lane lane, int64_t, int64_t filled) {
        lane = exp(lane - most);
        for (int64_t i = filled; i < WIDTH; i++) lane[i] = 0.0f;
        totals += lane;
        return lane;
    });
    const float share = 1.0f / sum(totals);
    int64_t column = 0;
    for (; column + WIDTH <= wide; column += WIDTH) {
        Lane read = {};
        for (int64_t i = 0; i < count; i++) read += scores[i] * load(value(i) + column);
        store(found + column, read * share);
    }
    for (; column < wide; column++) {
        float read = 0.0f;
        for (int64_t i = 0; i < count; i++) read += scores[i] * value(i)[column];
        found[column] = read * share;
    }
}

struct Norm {
    const float *weight, *bias;  // null where there is no norm
    float epsilon;
};

// Layer norm (x - mean) / sqrt(variance + epsilon) w + b, row by row; without a norm, x.
inline void norm(const float* x, int64_t rows, int64_t size, const Norm& by, float* y) {
    if (by.weight == nullptr) {
        if (x != y) std::memcpy(y, x, 4 * rows * size);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        const float* row = x + r * size;
        Lane total = {}, squares = {};
        int64_t i = 0;
        for (; i + WIDTH <= size; i += WIDTH) total += load(row + i);
        if (i < size) total += part(row + i, size - i);
        const float mean = sum(total) / size;
        for (i = 0; i + WIDTH <= size; i += WIDTH) squares += (load(row + i) - mean) * (load(row + i) - mean);
        if (i < size) {
            const Lane centred = part(row + i, size - i, mean) - mean;
            squares += centred * centred;
        }
        const float share = 1.0f / std::sqrt(sum(squares) / size + by.epsilon);
        float* to = y + r * size;
        for (i = 0; i + WIDTH <= size; i += WIDTH)
            store(to + i, (load(row + i) - mean) * share * load(by.weight + i) + load(by.bias + i));
        for (; i < size; i++) to[i] = (row[i] - mean) * share * by.weight[i] + by.bias[i];
    }
}

}  // namespace regard
