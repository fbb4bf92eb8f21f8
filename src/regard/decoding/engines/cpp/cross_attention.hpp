// Cross-attention of the C++ engine's decoders.
#pragma once
#include <vector>

#include "attend.hpp"
#include "product.hpp"

namespace regard {

// Cross-attention; a matrix with no columns is absent.
struct Look {
    Matrix asks, output;
    int64_t heads, size, wide;  // numbers of a key and of a value, for one head
    float scale;
    const float* v;  // of an additive score; null where it is a product
};

// Keys or values: (sources, heads, keys, size) with any strides, and the last dimension contiguous.
struct Side {
    const float* data;
    int64_t source, head, key;

    const float* at(int64_t s, int64_t h, int64_t k) const { return data + s * source + h * head + k * key; }
};

struct Source {
    Side keys, values;
};

// Unmasked keys of each source, and the source of each active sentence.
struct Sources {
    int64_t keys;
    std::vector<std::vector<int32_t>> seen;
    std::vector<int64_t> sentences;

    Sources(const uint8_t* keep, int64_t count, int64_t keys) : keys(keys), seen(count), sentences(count) {
        for (int64_t s = 0; s < count; s++) {
            sentences[s] = s;
            for (int64_t k = 0; k < keys; k++)
                if (keep == nullptr || keep[s * keys + k]) seen[s].push_back(static_cast<int32_t>(k));
        }
    }

    void leave(const int64_t* staying, int64_t count) {
        std::vector<int64_t> left(count);
        for (int64_t s = 0; s < count; s++) left[s] = sentences[staying[s]];
        sentences = std::move(left);
    }
};

// Context of each row before W_O, heads side by side; the rows of a sentence share a source. It is softmax(scale (W_Q
// x) k) v, or with an additive score softmax(v tanh(W x + k)) v.
inline void look(const Look& by, const Sources& sources, const Source& source, const float* x, int64_t rows, float* asked,
                 float* found, int threads) {
    const float* query = x;
    if (by.asks.out) {
        product(x, rows, by.asks, asked, Then::put, threads);
        query = asked;
    }
    const int64_t width = rows / static_cast<int64_t>(sources.sentences.size());
    const int sharing = rows * by.heads * by.size * sources.keys < WORTH ? 1 : threads;
#pragma omp parallel num_threads(sharing) if (sharing > 1)
    {
        std::vector<float> scores(sources.keys);
#pragma omp for
        for (int64_t row = 0; row < rows; row++) {
            const int64_t which = sources.sentences[row / width];
            const std::vector<int32_t>& seen = sources.seen[which];
            for (int64_t head = 0; head < by.heads; head++) {
                const float* asks = query + (row * by.heads + head) * by.size;
                const auto score = [&](int64_t i) {
                    const float* key = source.keys.at(which, head, seen[i]);
                    return by.v == nullptr ? by.scale * dot(asks, key, by.size) : bent(asks, key, by.v, by.size);
                };
                const auto value = [&](int64_t i) { return source.values.at(which, head, seen[i]); };
                attend(seen.size(), score, value, by.wide, scores.data(), found + (row * by.heads + head) * by.wide);
            }
        }
    }
}

}  // namespace regard
