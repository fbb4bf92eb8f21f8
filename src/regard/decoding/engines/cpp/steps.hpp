// Decoder state of one batch, whatever its kind.
#pragma once
#include "cross_attention.hpp"

namespace regard {

// Embedding: a vector for each token and, unless `places` is null, for each position; they are added.
struct Words {
    const float* table;
    int64_t size;
    float scale;
    const float* places;
    int64_t known;  // number of positions with a vector

    void embed(int64_t token, int64_t place, float* to) const {
        const float *word = table + token * size, *here = places == nullptr ? nullptr : places + place * size;
        for (int64_t i = 0; i < size; i++) to[i] = word[i] * scale + (here == nullptr ? 0.0f : here[i]);
    }
};

struct Steps {
    const Words& words;
    Sources sources;
    const int64_t vocabulary;
    int64_t place = 0;
    std::vector<float> data, fitted;

    Steps(const Words& words, Sources sources, int64_t vocabulary)
        : words(words), sources(std::move(sources)), vocabulary(vocabulary) {}
    virtual ~Steps() = default;

    // Run the layers on the rows of data, which they may overwrite, and compute logits. `parents` are the back-pointers
    // to rows of the step before; null where rows are unchanged.
    virtual void advance(float* data, const int64_t* parents, int64_t rows, float* logits, int threads) = 0;

    // Logits from the last layer's output; a `fit` with no columns is absent.
    void answer(const float* last, int64_t rows, const Matrix& fit, const Matrix& output, float* logits, int threads) {
        if (fit.out) {
            fitted.resize(rows * fit.out);
            product(last, rows, fit, fitted.data(), Then::put, threads);
            last = fitted.data();
        }
        product(last, rows, output, logits, Then::put, threads);
    }

    // Decoding step: one token for each row.
    void step(const int64_t* tokens, const int64_t* parents, int64_t rows, float* logits, int threads) {
        data.resize(rows * words.size);
        for (int64_t r = 0; r < rows; r++) words.embed(tokens[r], place, data.data() + r * words.size);
        place++;
        advance(data.data(), parents, rows, logits, threads);
    }

    bool lost() const { return words.places != nullptr && place >= words.known; }
};

}  // namespace regard
