// Greedy and beam search over any decoder; equal to decoding/engines/eager/greedy.py and beam.py, which explain them.
#include "topk.hpp"
#include "steps.hpp"

using namespace regard;

enum Status { COMPLETED, UNDISTRIBUTED, STUCK, LOST };  // LOST: a position beyond the limit

// Output buffers: `best` hypotheses of each sentence, best first, with room for `room` tokens each.
struct Targets {
    int64_t best, room;
    int64_t* tokens;
    float* logprobs;
    int64_t* lengths;  // 0: none
    double *scores, *normalised;
    uint8_t* finished;
};

struct Candidate {
    double score;
    float logprob;
    int64_t token, row;
};

struct Ending {
    int64_t step;
    Candidate last;
    double normalised;
    bool finished;
};

struct Fed {
    std::vector<int64_t> tokens, parents;
    std::vector<float> logprobs;
};

// Top-k tokens of every row. False where one has no distribution.
static bool choose(Steps& steps, std::vector<float>& logits, int64_t rows, int64_t each, std::vector<float>& values,
                   std::vector<int64_t>& tokens, int threads) {
    values.resize(rows * each), tokens.resize(rows * each);
    int broken = 0;
    const int sharing = rows * steps.vocabulary < WORTH / 8 ? 1 : threads;
#pragma omp parallel for num_threads(sharing) if (sharing > 1) reduction(| : broken)
    for (int64_t r = 0; r < rows; r++)
        broken |= !select_topk(logits.data() + r * steps.vocabulary, steps.vocabulary, each, values.data() + r * each,
                             tokens.data() + r * each);
    return !broken;
}

// Greedy search: one target for each sentence of 1 to `most` tokens. `length` is the length at which it stopped.
extern "C" int regard_greedy(Steps* steps, const int64_t* most, double alpha, const Targets* targets, int64_t* length,
                             int threads) {
    std::vector<int64_t> sentences = steps->sources.sentences, fed(sentences.size(), BOS), staying, tokens;
    std::vector<float> logits(sentences.size() * steps->vocabulary), values;
    bool moved = false;
    for (*length = 1; !sentences.empty(); ++*length) {
        const int64_t rows = sentences.size();
        if (steps->lost()) return LOST;
        steps->step(fed.data(), moved ? staying.data() : nullptr, rows, logits.data(), threads);
        if (!choose(*steps, logits, rows, 1, values, tokens, threads)) return UNDISTRIBUTED;
        std::vector<int64_t> left;
        fed.clear(), staying.clear();
        for (int64_t r = 0; r < rows; r++) {
            const int64_t s = sentences[r], at = s * targets->room + *length - 1;
            if (values[r] == -INFINITY) return STUCK;
            targets->tokens[at] = tokens[r], targets->logprobs[at] = values[r];
            targets->scores[s] += values[r], targets->lengths[s] = *length;
            targets->finished[s] = tokens[r] == EOS;
            targets->normalised[s] = targets->scores[s] / std::pow(static_cast<double>(*length), alpha);
            if (tokens[r] != EOS && most[s] > *length) left.push_back(s), fed.push_back(tokens[r]), staying.push_back(r);
        }
        moved = static_cast<int64_t>(staying.size()) < rows;
        if (moved) steps->sources.leave(staying.data(), staying.size());
        sentences = std::move(left);
    }
    return COMPLETED;
}

// Beam search over a batch: length limits, finished hypotheses, and every step.
struct Search {
    const int64_t* most;
    const int64_t beams, best;
    const double alpha;
    std::vector<std::vector<Ending>> pools;
    std::vector<Fed> steps;

    Search(const int64_t* most, int64_t sentences, int64_t beams, int64_t best, double alpha)
        : most(most), beams(beams), best(best), alpha(alpha), pools(sentences) {}

    double worst(int64_t sentence, int64_t count) const {
        const std::vector<Ending>& pool = pools[sentence];
        return static_cast<int64_t>(pool.size()) < count ? -INFINITY : pool[count - 1].normalised;
    }

    // Best extensions of a sentence: enough for `beams` to go on if one of each row has finished; of equals the leftmost.
    std::vector<Candidate> extend(const double* scores, int64_t width, int64_t row, int64_t each, const float* values,
                                  const int64_t* tokens) const {
        std::vector<Candidate> ahead;
        for (int64_t w = 0; w < width; w++)
            for (int64_t i = 0; i < each; i++) {
                const int64_t at = (row + w) * each + i;
                ahead.push_back({scores[w] + values[at], values[at], tokens[at], row + w});
            }
        std::stable_sort(ahead.begin(), ahead.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
        ahead.resize(std::min<size_t>(ahead.size(), beams + width));
        return ahead;
    }

    // Best `beams` that have not finished; after them, where there are fewer, finished ones.
    std::vector<Candidate> growing(std::vector<Candidate> ahead) const {
        std::stable_partition(ahead.begin(), ahead.end(), [](const Candidate& each) { return each.token != EOS; });
        ahead.resize(std::min<size_t>(ahead.size(), beams));
        for (Candidate& each : ahead)
            if (each.token == EOS) each.score = -INFINITY;
        return ahead;
    }

    static int64_t alive(const std::vector<Candidate>& grown) {
        return std::count_if(grown.begin(), grown.end(), [](const Candidate& each) { return each.score > -INFINITY; });
    }

    // Record finished hypotheses. 1 if the sentence goes on, 0 if it is done, -1 if it is stuck.
    int end(int64_t sentence, const std::vector<Candidate>& ahead, const std::vector<Candidate>& grown) {
        const int64_t length = steps.size();
        const double share = std::pow(static_cast<double>(length), alpha);
        std::vector<Ending>& pool = pools[sentence];
        for (int64_t i = 0; i < std::min<int64_t>(beams, ahead.size()); i++)
            if (ahead[i].token == EOS && ahead[i].score > -INFINITY)
                pool.push_back({length - 1, ahead[i], ahead[i].score / share, true});
        std::stable_sort(pool.begin(), pool.end(), [](const auto& a, const auto& b) { return a.normalised > b.normalised; });
        const bool cut = most[sentence] == length;
        if (cut)
            for (const Candidate& each : grown)
                if (each.score > -INFINITY) pool.push_back({length - 1, each, each.score / share, false});
        if (static_cast<int64_t>(pool.size()) > beams) pool.resize(beams);
        const double next = grown[0].score;
        const bool over = cut || next == -INFINITY;
        if (over && pool.empty()) return -1;
        const double longest = std::pow(static_cast<double>(std::max<int64_t>(most[sentence], 1)), alpha);
        return !(over || next / share <= worst(sentence, beams) || next / longest <= worst(sentence, best));
    }

    // Backtrace a hypothesis.
    void write(const Ending& ending, int64_t at, const Targets& to) const {
        int64_t *tokens = to.tokens + at * to.room, row = ending.last.row;
        float* logprobs = to.logprobs + at * to.room;
        tokens[ending.step] = ending.last.token, logprobs[ending.step] = ending.last.logprob;
        for (int64_t step = ending.step; step > 0; step--) {
            tokens[step - 1] = steps[step].tokens[row], logprobs[step - 1] = steps[step].logprobs[row];
            row = steps[step].parents[row];
        }
        to.lengths[at] = ending.step + 1, to.finished[at] = ending.finished;
        to.scores[at] = ending.last.score, to.normalised[at] = ending.normalised;
    }
};

// Beam search: the `best` hypotheses of each sentence. `length` is the length at which it stopped.
extern "C" int regard_beam(Steps* steps, const int64_t* most, int64_t beams, double alpha, const Targets* targets,
                           int64_t* length, int threads) {
    std::vector<int64_t> sentences = steps->sources.sentences, tokens;
    const int64_t count = sentences.size(), each = std::min(beams + 1, steps->vocabulary);
    Search search(most, count, beams, targets->best, alpha);
    std::vector<float> logits, values;
    std::vector<double> scores(count, 0.0);
    Fed fed = {std::vector<int64_t>(count, BOS), {}, std::vector<float>(count)};
    for (*length = 1; !sentences.empty(); ++*length) {
        const int64_t rows = fed.tokens.size(), width = rows / static_cast<int64_t>(sentences.size());
        if (steps->lost()) return LOST;
        logits.resize(rows * steps->vocabulary);
        steps->step(fed.tokens.data(), *length == 1 ? nullptr : fed.parents.data(), rows, logits.data(), threads);
        search.steps.push_back(std::move(fed));
        if (!choose(*steps, logits, rows, each, values, tokens, threads)) return UNDISTRIBUTED;
        std::vector<int64_t> left, staying;
        std::vector<std::vector<Candidate>> growing;
        int64_t wide = 0;
        for (int64_t s = 0; s < static_cast<int64_t>(sentences.size()); s++) {
            auto ahead = search.extend(scores.data() + s * width, width, s * width, each, values.data(), tokens.data());
            auto grown = search.growing(ahead);
            const int on = search.end(sentences[s], ahead, grown);
            if (on < 0) return STUCK;
            if (!on) continue;
            left.push_back(sentences[s]), staying.push_back(s);
            wide = std::max(wide, Search::alive(grown));
            growing.push_back(std::move(grown));
        }
        if (left.size() < sentences.size()) steps->sources.leave(staying.data(), staying.size());
        sentences = std::move(left);
        scores.clear();
        fed = Fed();
        for (const auto& grown : growing)
            for (int64_t w = 0; w < wide; w++) {
                scores.push_back(grown[w].score);
                fed.tokens.push_back(grown[w].token), fed.parents.push_back(grown[w].row);
                fed.logprobs.push_back(grown[w].logprob);
            }
    }
    for (int64_t s = 0; s < count; s++)
        for (int64_t b = 0; b < std::min<int64_t>(targets->best, search.pools[s].size()); b++)
            search.write(search.pools[s][b], s * targets->best + b, *targets);
    return COMPLETED;
}

extern "C" {
void regard_step(Steps* steps, const int64_t* tokens, const int64_t* parents, int64_t rows, float* logits, int threads) {
    steps->step(tokens, parents, rows, logits, threads);
}

void regard_leave(Steps* steps, const int64_t* staying, int64_t count) { steps->sources.leave(staying, count); }

void regard_end(Steps* steps) { delete steps; }
}
