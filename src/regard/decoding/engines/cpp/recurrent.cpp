// LSTM decoder of the C++ engine, step by step.
#include "lstm.hpp"
#include "steps.hpp"

using namespace regard;

struct Network {
    const Matrix* cells;  // [input; previous state] -> gates, bottom layer first
    int64_t count, size;
    Words words;
    int64_t before, feeds;  // Bahdanau's order; input feeding
    Look cross;
    int64_t context;
    Matrix readout, fit, output;
};

using Rows = std::vector<float>;

// Concatenate rows of several widths.
static void beside(Rows& to, int64_t rows, std::initializer_list<std::pair<const float*, int64_t>> parts) {
    int64_t width = 0, at = 0;
    for (const auto& part : parts) width += part.second;
    to.resize(rows * width);
    for (const auto& part : parts) {
        for (int64_t r = 0; r < rows; r++)
            std::copy_n(part.first + r * part.second, part.second, to.data() + r * width + at);
        at += part.second;
    }
}

// State of a batch: the states of the cells, row by row, and the readout that is fed back.
struct Recurring : Steps {
    const Network& network;
    Source source;
    std::vector<Rows> hidden, cell;
    Rows fed, entering, gates, asked, found, context, reads;

    Recurring(const Network& network, const Source* given, const uint8_t* keep, int64_t count, int64_t keys)
        : Steps(network.words, Sources(keep, count, keys), network.output.out), network(network), source(*given),
          hidden(network.count), cell(network.count), fed(count * network.size, 0.0f) {}

    void reorder(Rows& rows, const int64_t* parents, int64_t count) const {
        Rows taken(count * network.size);
        for (int64_t r = 0; r < count; r++)
            std::copy_n(rows.data() + parents[r] * network.size, network.size, taken.data() + r * network.size);
        rows = std::move(taken);
    }

    const float* look_across(int64_t rows, int threads) {
        asked.resize(rows * network.cross.heads * network.cross.size);
        found.resize(rows * network.cross.heads * network.cross.wide);
        look(network.cross, sources, source, hidden.back().data(), rows, asked.data(), found.data(), threads);
        if (!network.cross.output.out) return found.data();
        context.resize(rows * network.context);
        product(found.data(), rows, network.cross.output, context.data(), Then::put, threads);
        return context.data();
    }

    // Advance every layer; the input of the bottom one lies in `entering`, without its own state.
    void cells(int64_t rows, const float* token, const float* more, int64_t width, int threads) {
        const int64_t size = network.size;
        for (int64_t n = 0; n < network.count; n++) {
            if (n) beside(entering, rows, {{hidden[n - 1].data(), size}, {hidden[n].data(), size}});
            else beside(entering, rows, {{token, network.words.size}, {more, width}, {hidden[n].data(), size}});
            gates.resize(rows * 4 * size);
            product(entering.data(), rows, network.cells[n], gates.data(), Then::put, threads);
            for (int64_t r = 0; r < rows; r++)
                gate(gates.data() + r * 4 * size, size, hidden[n].data() + r * size, cell[n].data() + r * size);
        }
    }

    void advance(float* token, const int64_t* parents, int64_t rows, float* logits, int threads) override {
        const int64_t size = network.size;
        if (parents != nullptr) {
            for (int64_t n = 0; n < network.count; n++) reorder(hidden[n], parents, rows), reorder(cell[n], parents, rows);
            reorder(fed, parents, rows);
        }
        const float* seen;
        if (network.before) {
            seen = look_across(rows, threads);
            cells(rows, token, seen, network.context, threads);
            beside(entering, rows, {{hidden.back().data(), size}, {seen, network.context}, {token, network.words.size}});
        } else {
            cells(rows, token, fed.data(), network.feeds ? size : 0, threads);
            seen = look_across(rows, threads);
            beside(entering, rows, {{hidden.back().data(), size}, {seen, network.context}});
        }
        reads.resize(rows * size);
        product(entering.data(), rows, network.readout, reads.data(), Then::put, threads);
        change(reads.data(), rows * size, [](Lane lane, int64_t, int64_t) { return tanh(lane); });
        if (!network.before && network.feeds) fed = reads;
        answer(reads.data(), rows, network.fit, network.output, logits, threads);
    }
};

// Initial state from `hidden` and `cell`: layers x sources x size.
extern "C" Steps* regard_recurrent(const Network* network, const Source* sources, const uint8_t* keep, int64_t count,
                                   int64_t keys, const float* hidden, const float* cell) {
    Recurring* made = new Recurring(*network, sources, keep, count, keys);
    const int64_t all = count * network->size;
    for (int64_t n = 0; n < network->count; n++) {
        made->hidden[n].assign(hidden + n * all, hidden + (n + 1) * all);
        made->cell[n].assign(cell + n * all, cell + (n + 1) * all);
    }
    return made;
}
