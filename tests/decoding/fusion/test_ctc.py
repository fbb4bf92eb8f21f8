"""CTC prefix scores against a sum over all alignments."""

from itertools import product

import pytest
import torch

from regard.data.special_tokens import BOS, EOS, PAD
from regard.decoding.beam import beam
from regard.decoding.fusion import Fusion
from regard.decoding.fusion.ctc import CtcPrefix
from regard.models.types import Step

TIME, VOCABULARY = 5, 6
TOKENS = (4, 5)


def collapse(path):
    merged = [token for place, token in enumerate(path) if place == 0 or path[place - 1] != token]
    return tuple(token for token in merged if token != PAD)


def prefix_probability(probabilities, prefix, whole=False):
    """Sum over all alignments whose transcript begins with the prefix, or is it."""
    total = 0.0
    for path in product((PAD, *TOKENS), repeat=len(probabilities)):
        text = collapse(path)
        if text == prefix or (not whole and text[: len(prefix)] == prefix):
            total += float(torch.stack([row[token] for row, token in zip(probabilities, path, strict=True)]).prod())
    return total


@pytest.fixture
def logs():
    scores = torch.randn(2, TIME, VOCABULARY, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    scores[..., [1, 2, 3]] = -1e4
    return scores.log_softmax(-1)


@pytest.mark.parametrize("prefix", [(), (4,), (4, 4), (5, 4), (4, 5, 4)])
def test_scores_are_sums_over_all_alignments(logs, prefix):
    keep = torch.ones(2, TIME, dtype=torch.bool)
    keep[1, 3:] = False
    scorer = CtcPrefix(logs, keep)
    state = scorer.after(scorer.start([0, 1]), torch.tensor([BOS, BOS]))
    for token in prefix:
        state = scorer.after(state, torch.tensor([token, token]))
    scores = scorer.score(state)
    for row, length in enumerate((TIME, 3)):
        probabilities = logs[row, :length].exp()
        before = prefix_probability(probabilities, prefix)
        if before == 0:
            continue
        for token in TOKENS:
            expected = prefix_probability(probabilities, (*prefix, token)) / before
            assert float(scores[row, token].exp()) == pytest.approx(expected, rel=1e-4, abs=1e-7)
        expected = prefix_probability(probabilities, prefix, whole=True) / before
        assert float(scores[row, EOS].exp()) == pytest.approx(expected, rel=1e-4)
    assert scores.max() <= 0


class Uniform:
    """Decoder that finds every token equally likely."""

    def remember(self, encoded):
        return encoded

    def __call__(self, target, memory, *, weights=False, statistics=()):
        raise NotImplementedError

    def start(self, memory):
        return torch.zeros(len(memory), 1)

    def step(self, token, memory, state, *, weights=False):
        return Step(torch.zeros(len(token), VOCABULARY), state, {})


def test_a_search_by_ctc_alone_finds_the_likeliest_transcript(logs):
    candidates = {collapse(path) for path in product((PAD, *TOKENS), repeat=TIME)}
    fusion = Fusion((CtcPrefix(logs, weight=1.0),), decoder_weight=0.0)
    answers = beam(Uniform(), torch.zeros(2, 1), beams=40, length=TIME + 1, length_penalty=0.0, unknown=False, fusion=fusion)
    for row, [best] in enumerate(answers):
        likely = max(candidates, key=lambda text: prefix_probability(logs[row].exp(), text, whole=True))
        assert tuple(best.tokens[:-1]) == likely
        assert best.score == pytest.approx(
            torch.tensor(prefix_probability(logs[row].exp(), likely, whole=True)).log().item(), abs=1e-3
        )


def test_weights_are_combined_and_what_is_forbidden_stays_so(logs):
    scorer = CtcPrefix(logs, weight=0.25)
    fusion = Fusion((scorer,), decoder_weight=0.75)
    states, decoder = fusion.start([0, 1]), torch.randn(2, VOCABULARY)
    decoder[:, 3] = float("-inf")
    combined = fusion.combine(states, decoder)
    assert combined[:, 3].tolist() == [float("-inf")] * 2
    torch.testing.assert_close(combined[:, 4], 0.75 * decoder[:, 4] + 0.25 * scorer.score(states[0])[:, 4])
    assert not fusion.rewards
