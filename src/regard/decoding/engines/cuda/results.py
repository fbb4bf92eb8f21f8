"""Results of a GPU search on the host: when each sentence was done, and its best hypotheses, backtraced."""

from typing import NamedTuple

import numpy as np

from regard.data.special_tokens import EOS
from regard.decoding.engines.cuda.beam import LOGPROB, ROW, SCORE, TOKEN
from regard.decoding.engines.types import Array, Floats, Numbers
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.logprobs import IMPOSSIBLE, no_distribution_error, no_token_error


class SelectedEndings(NamedTuple):
    """Selected endings, (sentences, best) each: the step, the candidate index, its normalised score."""

    steps: Array
    places: Array
    worth: Array
    finished: Array
    present: Array
    """False where there are fewer hypotheses."""


class SearchResults:
    """Candidates of every step, of all sentences of a search; each has a length limit of 1 or more."""

    def __init__(self, most: Numbers, beams: int, best: int, alpha: float):
        self.most, self.beams, self.best, self.alpha = most, beams, best, alpha
        self.figures: list[Floats] = []
        self.ends: Numbers = np.zeros(len(most), np.int64)
        """Number of steps until each sentence was done; 0: it is active."""
        self.length = 0

    def add(self, figures: Floats, done: Floats, sentences: Numbers) -> None:
        """Append candidates (turns, 4, rows, candidates) and done flags of some steps; the first rows are `sentences`."""
        turns, _, _, candidates = figures.shape
        whole = figures[:, :, : len(sentences)]
        if not np.array_equal(sentences, np.arange(len(self.most))):
            whole = np.zeros((turns, 4, len(self.most), candidates))
            whole[:, :, sentences] = figures[:, :, : len(sentences)]
        over = done[:, : len(sentences)] > 0
        first = np.where(over.any(0), self.length + over.argmax(0) + 1, np.iinfo(np.int64).max)
        ends = np.minimum(first, self.most[sentences])
        self.check(whole[:, SCORE, :, 0], sentences, ends)
        self.figures.append(whole)
        self.length += turns
        fresh = (self.ends[sentences] == 0) & (ends <= self.length)
        self.ends[sentences[fresh]] = ends[fresh]

    def check(self, heads: Floats, sentences: Numbers, ends: Numbers) -> None:
        """Raise where an active sentence met an output that is no distribution: its best score is NaN."""
        lengths = np.arange(self.length + 1, self.length + len(heads) + 1)[:, None]
        growing = (self.ends[sentences] == 0) & (lengths <= ends)
        if (np.isnan(heads[:, sentences]) & growing).any():
            raise no_distribution_error()

    def collect(self) -> list[list[Hypothesis]]:
        """Collect the best hypotheses of each sentence, best first."""
        figures = np.concatenate(self.figures)
        order = (figures[:, TOKEN] == EOS).argsort(axis=2, kind="stable")  # active ones first
        selected = self.pick(figures, order)
        scores = figures[selected.steps, SCORE, np.arange(len(self.most))[:, None], selected.places]
        written = [tensor.transpose(1, 2, 0) for tensor in backtrace(figures, order, selected)]
        parts = selected.present, selected.steps, scores, selected.worth, selected.finished, *written
        flat = (part.ravel().tolist() for part in parts)
        present, steps, scores, worth, finished, tokens, logprobs = flat
        best, length = selected.steps.shape[1], len(figures)
        hypotheses: list[list[Hypothesis]] = []
        for sentence in range(len(self.most)):
            ranked = []
            for row in range(sentence * best, (sentence + 1) * best):
                if present[row]:
                    whole = slice(row * length, row * length + steps[row] + 1)
                    ranked.append(Hypothesis(tokens[whole], scores[row], worth[row], logprobs[whole], finished[row]))
            if not ranked:
                raise no_token_error(int(self.ends[sentence]))
            hypotheses.append(ranked)
        return hypotheses

    def pick(self, figures: Floats, order: Numbers) -> SelectedEndings:
        """Select the best finished hypotheses, and after them the best of those that were cut off."""
        shares = np.array([length**self.alpha for length in range(1, len(figures) + 1)])
        if figures.shape[3] == 1:
            return self.only(figures, shares)
        parts = zip(self.finished(figures, shares), self.cut(figures, order, shares), strict=True)
        both = SelectedEndings(*(np.concatenate(pair, axis=1) for pair in parts))
        chosen = np.argsort(~both.present, axis=1, kind="stable")[:, : self.best]
        return SelectedEndings(*(np.take_along_axis(part, chosen, 1) for part in both))

    def only(self, figures: Floats, shares: Floats) -> SelectedEndings:
        """Select the only hypothesis of each sentence, in greedy search."""
        last = self.ends - 1
        scores, tokens = figures[last, SCORE, np.arange(len(last)), 0], figures[last, TOKEN, np.arange(len(last)), 0]
        finished = tokens == EOS
        present = (scores > IMPOSSIBLE) & (finished | (self.ends == self.most))
        parts = last, np.zeros_like(last), scores / shares[last], finished, present
        return SelectedEndings(*(part[:, None] for part in parts))

    def finished(self, figures: Floats, shares: Floats) -> SelectedEndings:
        """Best of the finished hypotheses, up to the step at which their sentence was done; of equals the earlier."""
        in_time = np.arange(1, len(figures) + 1)[:, None, None] <= self.ends[:, None]
        ended = (figures[:, TOKEN] == EOS) & in_time
        worth = np.where(ended, figures[:, SCORE] / shares[:, None, None], IMPOSSIBLE)[..., : self.beams]
        flat = worth.transpose(1, 0, 2).reshape(len(self.most), -1)
        first = np.argsort(-flat, axis=1, kind="stable")[:, : self.best]
        best = np.take_along_axis(flat, first, 1)
        return SelectedEndings(first // self.beams, first % self.beams, best, np.full(first.shape, True), best > IMPOSSIBLE)

    def cut(self, figures: Floats, order: Numbers, shares: Floats) -> SelectedEndings:
        """Active hypotheses at the length limit of their sentence."""
        last, sentences = self.ends[:, None] - 1, np.arange(len(self.most))[:, None]
        places = order[last, sentences, np.arange(min(self.beams, order.shape[2]))]
        scores, tokens = figures[last, SCORE, sentences, places], figures[last, TOKEN, sentences, places]
        present = (scores > IMPOSSIBLE) & (tokens != EOS) & (self.ends == self.most)[:, None]
        steps = np.broadcast_to(last, places.shape)
        return SelectedEndings(steps, places, scores / shares[last], np.full(places.shape, False), present)


def backtrace(figures: Floats, order: Numbers, selected: SelectedEndings) -> tuple[Numbers, Floats]:
    """Backtrace the tokens and log-probabilities of each hypothesis, (steps, sentences, best)."""
    if figures.shape[3] == 1:  # greedy search
        return figures[:, TOKEN].astype(np.int64), figures[:, LOGPROB]
    steps, sentences = len(figures), np.arange(figures.shape[2])[:, None]
    tokens = np.zeros((steps, *selected.steps.shape), np.int64)
    logprobs, row = np.zeros(tokens.shape), np.zeros(selected.steps.shape, np.int64)
    for step in reversed(range(steps)):
        place = np.where(selected.steps == step, selected.places, order[step][sentences, row])
        at: Array = figures[step][:, sentences, place]
        tokens[step], logprobs[step] = at[TOKEN], at[LOGPROB]
        row = np.where(selected.steps >= step, at[ROW], 0).astype(np.int64)
    return tokens, logprobs
