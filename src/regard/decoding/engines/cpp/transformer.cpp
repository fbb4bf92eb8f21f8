// Transformer of the C++ engine: encoder over whole sources, decoder step by step, with a KV cache that never moves.
#include "steps.hpp"

using namespace regard;

struct Layer {
    Matrix threefold, own_output, inner, outer;  // fused QKV projection of the self-attention
    Norm around_self, around_cross, around_feedforward;
    Look cross;  // of a decoder
};

struct Model {
    const Layer* layers;
    int64_t count, size, heads, head, inner;
    float scale;
    int64_t first;  // pre-norm
    Norm last;
    Words words;
    Matrix fit, output;  // of a decoder
};

// Activation buffers of a layer, row by row.
struct Room {
    std::vector<float> entered, threefold, found, inner;

    void take(const Model& model, int64_t rows) {
        entered.resize(rows * model.size);
        threefold.resize(rows * 3 * model.heads * model.head);
        inner.resize(rows * model.inner);
        int64_t widest = model.heads * model.head;
        for (int64_t n = 0; n < model.count; n++)
            for (int64_t side : {model.layers[n].cross.size, model.layers[n].cross.wide})
                widest = std::max(widest, model.layers[n].cross.heads * side);
        found.resize(2 * rows * widest);
    }
};

// Residual connection: x + f(norm(x)), or norm(x + f(x)). f adds its output to x in place.
template <typename Sublayer>
static void around(const Model& model, const Norm& by, float* data, int64_t rows, Room& room, Sublayer sublayer) {
    if (model.first) {
        norm(data, rows, model.size, by, room.entered.data());
        sublayer(room.entered.data());
    } else {
        sublayer(data);
        norm(data, rows, model.size, by, data);
    }
}

static void think(const Model& model, const Layer& layer, float* data, int64_t rows, Room& room, int threads) {
    around(model, layer.around_feedforward, data, rows, room, [&](const float* entered) {
        product(entered, rows, layer.inner, room.inner.data(), Then::relu, threads);
        product(room.inner.data(), rows, layer.outer, data, Then::add, threads);
    });
}

// Encode: self-attention of every row over its source. The sources are concatenated, `counts` tokens each; `places` are
// the positions of the tokens.
extern "C" void regard_encode(const Model* model, const int64_t* tokens, const int64_t* places, const int64_t* counts,
                              int64_t sources, float* data, int threads) {
    static thread_local Room kept;
    Room& room = kept;  // of the calling thread, shared by all workers
    std::vector<int64_t> begins(sources + 1, 0), of;
    for (int64_t s = 0; s < sources; s++) {
        begins[s + 1] = begins[s] + counts[s];
        of.insert(of.end(), counts[s], s);
    }
    const int64_t rows = begins[sources], size = model->heads * model->head;
    const int64_t longest = *std::max_element(counts, counts + sources);
    room.take(*model, rows);
    for (int64_t row = 0; row < rows; row++) model->words.embed(tokens[row], places[row], data + row * model->size);
    for (int64_t n = 0; n < model->count; n++) {
        const Layer& layer = model->layers[n];
        around(*model, layer.around_self, data, rows, room, [&](const float* entered) {
            product(entered, rows, layer.threefold, room.threefold.data(), Then::put, threads);
            const float* sides = room.threefold.data();
            const int sharing = rows * size * longest < WORTH ? 1 : threads;
#pragma omp parallel num_threads(sharing) if (sharing > 1)
            {
                std::vector<float> scores(longest);
#pragma omp for
                for (int64_t row = 0; row < rows; row++)
                    for (int64_t head = 0; head < model->heads; head++) {
                        const int64_t at = head * model->head;
                        const float *query = sides + row * 3 * size + at;
                        const float *keys = sides + begins[of[row]] * 3 * size + size + at, *values = keys + size;
                        attend(
                            counts[of[row]],
                            [&](int64_t i) { return model->scale * dot(query, keys + i * 3 * size, model->head); },
                            [&](int64_t i) { return values + i * 3 * size; }, model->head, scores.data(),
                            room.found.data() + row * size + at);
                    }
            }
            product(room.found.data(), rows, layer.own_output, data, Then::add, threads);
        });
        think(*model, layer, data, rows, room, threads);
    }
    norm(data, rows, model->size, model->last, data);
}

// State of a batch: the keys and values of every step, and for each row the indices of its past in them.
struct Decoding : Steps {
    const Model& model;
    std::vector<Source> each;  // layer by layer
    std::vector<std::vector<std::vector<float>>> written;  // layers x steps x (rows of that step x (keys, values))
    std::vector<int32_t> past;  // rows x steps: back-pointer table, the row of each step that a row descends from
    int64_t steps = 0;
    Room room;

    Decoding(const Model& model, const Source* given, const uint8_t* keep, int64_t count, int64_t keys)
        : Steps(model.words, Sources(keep, count, keys), model.output.out), model(model), each(given, given + model.count),
          written(model.count) {}

    void descend(const int64_t* parents, int64_t rows) {
        std::vector<int32_t> mine(rows * (steps + 1));
        for (int64_t row = 0; row < rows; row++) {
            const int64_t parent = parents == nullptr ? row : parents[row];
            std::copy_n(past.data() + parent * steps, steps, mine.data() + row * (steps + 1));
            mine[row * (steps + 1) + steps] = static_cast<int32_t>(row);
        }
        past = std::move(mine);
        steps++;
    }

    // Self-attention: append the new keys and values to the cache, and attend to each row's past.
    void look_back(int64_t number, int64_t rows, int threads) {
        const int64_t size = model.heads * model.head;
        std::vector<std::vector<float>>& cache = written[number];
        cache.emplace_back(rows * 2 * size);
        for (int64_t row = 0; row < rows; row++)
            std::copy_n(room.threefold.data() + row * 3 * size + size, 2 * size, cache.back().data() + row * 2 * size);
        const int sharing = rows * size * steps < WORTH ? 1 : threads;
#pragma omp parallel num_threads(sharing) if (sharing > 1)
        {
            std::vector<float> scores(steps);
#pragma omp for
            for (int64_t row = 0; row < rows; row++) {
                const int32_t* mine = past.data() + row * steps;
                for (int64_t head = 0; head < model.heads; head++) {
                    const int64_t at = head * model.head;
                    const auto key = [&](int64_t i) { return cache[i].data() + mine[i] * 2 * size + at; };
                    const float* query = room.threefold.data() + row * 3 * size + at;
                    attend(
                        steps, [&](int64_t i) { return model.scale * dot(query, key(i), model.head); },
                        [&](int64_t i) { return key(i) + size; }, model.head, scores.data(),
                        room.found.data() + row * size + at);
                }
            }
        }
    }

    void advance(float* data, const int64_t* parents, int64_t rows, float* logits, int threads) override {
        descend(parents, rows);
        room.take(model, rows);
        for (int64_t n = 0; n < model.count; n++) {
            const Layer& layer = model.layers[n];
            around(model, layer.around_self, data, rows, room, [&](const float* entered) {
                product(entered, rows, layer.threefold, room.threefold.data(), Then::put, threads);
                look_back(n, rows, threads);
                product(room.found.data(), rows, layer.own_output, data, Then::add, threads);
            });
            around(model, layer.around_cross, data, rows, room, [&](const float* entered) {
                float* found = room.found.data() + room.found.size() / 2;
                look(layer.cross, sources, each[n], entered, rows, room.found.data(), found, threads);
                product(found, rows, layer.cross.output, data, Then::add, threads);
            });
            think(model, layer, data, rows, room, threads);
        }
        norm(data, rows, model.size, model.last, room.entered.data());
        answer(room.entered.data(), rows, model.fit, model.output, logits, threads);
    }
};

extern "C" Steps* regard_transformer(const Model* model, const Source* sources, const uint8_t* keep, int64_t count,
                                     int64_t keys) {
    return new Decoding(*model, sources, keep, count, keys);
}
