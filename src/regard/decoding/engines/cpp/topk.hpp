// Top-k log-probabilities of each row, best first, of equal ones the leftmost.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "simd.hpp"

namespace regard {

constexpr int64_t PAD = 0, BOS = 1, EOS = 2;  // data/special_tokens.py
constexpr int64_t BLOCK = 16 * WIDTH;         // columns with a noted maximum: the top k lie in the k best blocks

inline float highest(const float* from, int64_t count) {
    Lane most = all(-INFINITY);
    int64_t i = 0;
    for (; i + WIDTH <= count; i += WIDTH) {
        const Lane lane = load(from + i);
        most = lane > most ? lane : most;
    }
    float found = -INFINITY;
    for (int64_t c = 0; c < WIDTH; c++) found = std::max(found, most[c]);
    for (; i < count; i++) found = std::max(found, from[i]);
    return found;
}

// log sum_j e^(x_j - most)
inline float logarithm(const float* row, int64_t size, float most) {
    Lane total = {};
    int64_t i = 0;
    for (; i + WIDTH <= size; i += WIDTH) total += exp(load(row + i) - most);
    if (i < size) total += exp(part(row + i, size - i, -INFINITY) - most);
    return std::log(sum(total));
}

// Insert a token into the sorted top-k, if it is one of them.
inline void insert(float value, int64_t token, int64_t count, float* values, int64_t* tokens) {
    const auto before = [&](int64_t i) { return value > values[i] || (value == values[i] && token < tokens[i]); };
    if (!before(count - 1)) return;
    int64_t at = count - 1;
    for (; at > 0 && before(at - 1); at--) values[at] = values[at - 1], tokens[at] = tokens[at - 1];
    values[at] = value, tokens[at] = token;
}

// Top-k log-probabilities of a row and their tokens, without PAD and BOS. False where it is no distribution: a NaN
// reaches the sum, whatever is compared with it.
inline bool select_topk(float* row, int64_t size, int64_t count, float* values, int64_t* tokens) {
    const int64_t blocks = (size + BLOCK - 1) / BLOCK;
    std::vector<float> most(blocks);
    for (int64_t b = 0; b < blocks; b++) most[b] = highest(row + b * BLOCK, std::min(BLOCK, size - b * BLOCK));
    const float top = *std::max_element(most.begin(), most.end());
    const float share = logarithm(row, size, top);
    if (!std::isfinite(top) || std::isnan(share)) return false;
    row[PAD] = row[BOS] = -INFINITY;
    std::fill_n(values, count, -INFINITY);
    std::fill_n(tokens, count, size - 1);
    for (;;) {  // block by block, the one with the highest first
        const int64_t b = std::max_element(most.begin(), most.end()) - most.begin();
        if (most[b] == -INFINITY || most[b] < values[count - 1]) break;
        most[b] = -INFINITY;
        for (int64_t i = b * BLOCK; i < std::min(size, (b + 1) * BLOCK); i++) insert(row[i], i, count, values, tokens);
    }
    for (int64_t i = 0; i < count; i++) values[i] = values[i] - top - share;
    return true;
}

}  // namespace regard
