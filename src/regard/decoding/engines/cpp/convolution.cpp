// Convolutional decoder of the C++ engine, step by step.
#include <algorithm>
#include <cmath>

#include "simd.hpp"
#include "steps.hpp"

using namespace regard;

constexpr float HALF = 0.70710678f;  // keeps the variance of a sum of two

// One layer; a matrix with no columns is absent.
struct Gated {
    Matrix convolution;  // [the inputs before, the oldest first; what enters] -> two halves, of which one is a gate
    Matrix query, fit;
    Look cross;
    int64_t context;
};

struct Convolution {
    const Gated* layers;
    int64_t count, size, before;  // number of cached inputs of a layer
    Words words;
    Matrix widen, narrow, fit, output;
};

using Rows = std::vector<float>;

// State of a batch: the last inputs of each layer, row by row.
struct Convolving : Steps {
    const Convolution& model;
    std::vector<Source> each;  // layer by layer
    std::vector<Rows> inputs;
    Rows carried, entering, gates, mixed, query, asked, found, context, narrow;

    Convolving(const Convolution& model, const Source* given, const uint8_t* keep, int64_t count, int64_t keys)
        : Steps(model.words, Sources(keep, count, keys), model.output.out), model(model), each(given, given + model.count),
          inputs(model.count, Rows(count * model.before * model.size, 0.0f)) {}

    // Concatenate the cached inputs and the new one; all but the oldest are cached for the next step.
    void enter(Rows& held, const int64_t* parents, int64_t rows) {
        const int64_t size = model.size, past = model.before * size, whole = past + size;
        entering.resize(rows * whole);
        for (int64_t r = 0; r < rows; r++) {
            const int64_t parent = parents == nullptr ? r : parents[r];
            std::copy_n(held.data() + parent * past, past, entering.data() + r * whole);
            std::copy_n(carried.data() + r * size, size, entering.data() + r * whole + past);
        }
        held.resize(rows * past);
        for (int64_t r = 0; r < rows; r++) std::copy_n(entering.data() + r * whole + size, past, held.data() + r * past);
    }

    // Gated linear unit u = A s(B), with A and B of a row side by side.
    void mix(const Gated& layer, int64_t rows, int threads) {
        const int64_t size = model.size;
        gates.resize(rows * 2 * size);
        mixed.resize(rows * size);
        product(entering.data(), rows, layer.convolution, gates.data(), Then::put, threads);
        for (int64_t r = 0; r < rows; r++) {
            const float *open = gates.data() + r * 2 * size, *gate = open + size;
            change(mixed.data() + r * size, size, [&](Lane, int64_t i, int64_t count) {
                return count == WIDTH ? load(open + i) * sigmoid(load(gate + i))
                                      : part(open + i, count) * sigmoid(part(gate + i, count));
            });
        }
    }

    // Cross-attention: u + W_c (c sqrt(m)), since c is a mean over the m positions of a source.
    void read(const Gated& layer, const Source& source, const float* token, int64_t rows, int threads) {
        query.resize(rows * layer.query.out);
        asked.resize(rows * layer.cross.heads * layer.cross.size);
        found.resize(rows * layer.cross.heads * layer.cross.wide);
        product(mixed.data(), rows, layer.query, query.data(), Then::put, threads);
        for (size_t i = 0; i < query.size(); i++) query[i] = (query[i] + token[i]) * HALF;
        look(layer.cross, sources, source, query.data(), rows, asked.data(), found.data(), threads);
        if (layer.cross.output.out) {
            context.resize(rows * layer.context);
            product(found.data(), rows, layer.cross.output, context.data(), Then::put, threads);
            std::swap(found, context);
        }
        const int64_t width = rows / static_cast<int64_t>(sources.sentences.size());
        for (int64_t r = 0; r < rows; r++) {
            const float wide = std::sqrt(static_cast<float>(sources.seen[sources.sentences[r / width]].size()));
            for (int64_t i = 0; i < layer.context; i++) found[r * layer.context + i] *= wide;
        }
        if (layer.fit.out) product(found.data(), rows, layer.fit, mixed.data(), Then::add, threads);
        else for (int64_t i = 0; i < rows * model.size; i++) mixed[i] += found[i];
    }

    void advance(float* token, const int64_t* parents, int64_t rows, float* logits, int threads) override {
        carried.resize(rows * model.size);
        product(token, rows, model.widen, carried.data(), Then::put, threads);
        for (int64_t n = 0; n < model.count; n++) {
            enter(inputs[n], parents, rows);
            mix(model.layers[n], rows, threads);
            read(model.layers[n], each[n], token, rows, threads);
            for (size_t i = 0; i < carried.size(); i++) carried[i] = (mixed[i] * HALF + carried[i]) * HALF;
        }
        narrow.resize(rows * model.narrow.out);
        product(carried.data(), rows, model.narrow, narrow.data(), Then::put, threads);
        answer(narrow.data(), rows, model.fit, model.output, logits, threads);
    }
};

extern "C" Steps* regard_convolution(const Convolution* model, const Source* sources, const uint8_t* keep, int64_t count,
                                     int64_t keys) {
    return new Convolving(*model, sources, keep, count, keys);
}
