// LSTM encoder of the C++ engine, in one direction or both, over whole sources.
#include <numeric>

#include "lstm.hpp"
#include "steps.hpp"

using namespace regard;

struct Way {
    Matrix entering, staying;  // input and recurrent weights of the gates
};

struct Reader {
    const Way* ways;  // layers x directions
    int64_t layers, directions, size;  // of one direction
    Words words;
};

using Rows = std::vector<float>;

// Lengths of the concatenated sources, and their order by descending length, so that active ones come first.
struct Lengths {
    const int64_t* counts;
    std::vector<int64_t> begins, order;

    Lengths(const int64_t* counts, int64_t sources) : counts(counts), begins(sources + 1, 0), order(sources) {
        std::partial_sum(counts, counts + sources, begins.begin() + 1);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return counts[a] > counts[b]; });
    }
};

// One direction of one layer: `gates` are the projected inputs, to which the recurrent part of each step is added.
// Outputs of a row go to `found`, `stride` apart; final states of each source to `hidden` and `cell`, `apart` apart.
static void read(const Way& way, const Lengths& lengths, bool back, Rows& gates, float* found, int64_t stride, float* hidden,
                 float* cell, int64_t apart, int threads) {
    const int64_t size = way.staying.in, sources = lengths.order.size();
    Rows states(sources * size, 0.0f), cells(sources * size, 0.0f), more(sources * 4 * size);
    for (int64_t step = 0; step < lengths.counts[lengths.order[0]]; step++) {
        int64_t going = 0;
        while (going < sources && lengths.counts[lengths.order[going]] > step) going++;
        product(states.data(), going, way.staying, more.data(), Then::put, threads);
        for (int64_t g = 0; g < going; g++) {
            const int64_t source = lengths.order[g], last = lengths.counts[source] - 1;
            const int64_t row = lengths.begins[source] + (back ? last - step : step);
            float *mine = gates.data() + row * 4 * size, *state = states.data() + g * size;
            change(mine, 4 * size, [&](Lane lane, int64_t i, int64_t filled) {
                const float* other = more.data() + g * 4 * size + i;
                return lane + (filled == WIDTH ? load(other) : part(other, filled));
            });
            gate(mine, size, state, cells.data() + g * size);
            std::copy_n(state, size, found + row * stride);
            if (step < last) continue;
            std::copy_n(state, size, hidden + source * apart);
            std::copy_n(cells.data() + g * size, size, cell + source * apart);
        }
    }
}

// Encode: `data` gets a row for each token, `hidden` and `cell` the final states of each source, layer by layer, with
// both directions side by side.
extern "C" void regard_read(const Reader* reader, const int64_t* tokens, const int64_t* places, const int64_t* counts,
                            int64_t sources, float* data, float* hidden, float* cell, int threads) {
    const Lengths lengths(counts, sources);
    const int64_t rows = lengths.begins[sources], wide = reader->directions * reader->size, apart = reader->layers * wide;
    Rows entering(rows * reader->words.size), gates(rows * 4 * reader->size);
    for (int64_t r = 0; r < rows; r++) reader->words.embed(tokens[r], places[r], entering.data() + r * reader->words.size);
    for (int64_t n = 0; n < reader->layers; n++) {
        for (int64_t way = 0; way < reader->directions; way++) {
            const Way& taken = reader->ways[n * reader->directions + way];
            const int64_t at = way * reader->size;
            product(entering.data(), rows, taken.entering, gates.data(), Then::put, threads);
            float *last = hidden + n * wide + at, *kept = cell + n * wide + at;
            read(taken, lengths, way == 1, gates, data + at, wide, last, kept, apart, threads);
        }
        if (n + 1 < reader->layers) entering.assign(data, data + rows * wide);
    }
}
