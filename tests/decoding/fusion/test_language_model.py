"""Fused scores against sums of log-probabilities by hand, for decoders that are tables."""

from itertools import product

import pytest
import torch

from regard.data.special_tokens import BOS, EOS
from regard.decoding.beam import beam
from regard.decoding.fusion import Fusion
from regard.decoding.fusion.language_model import LanguageModel
from regard.models.types import Step

VOCABULARY, TOKENS, LONGEST = 6, (4, 5), 4


class Bigram:
    """Decoder whose logits depend on the last token alone; its state counts the tokens."""

    def __init__(self, seed):
        self.table = torch.randn(VOCABULARY, VOCABULARY, generator=torch.Generator().manual_seed(seed))
        self.table[:, :2] = -1e4  # no PAD, no BOS
        self.table[:, 3] = -1e4

    def remember(self, encoded):
        return encoded

    def __call__(self, target, memory, *, weights=False, statistics=()):
        raise NotImplementedError

    def start(self, memory):
        return torch.zeros(len(memory), 1)

    def step(self, token, memory, state, *, weights=False):
        return Step(self.table[token], state + 1, {})

    def score(self, tokens):
        logs = self.table.log_softmax(-1)
        return sum(float(logs[before, after]) for before, after in zip((BOS, *tokens), tokens, strict=False))


def search(model, language, weight):
    fusion = Fusion((LanguageModel(language, torch.zeros(1, 1), weight),))
    options = {"beams": 40, "length": LONGEST, "length_penalty": 0.0, "unknown": False}
    return beam(model, torch.zeros(2, 1), best=3, fusion=fusion, **options), beam(
        model, torch.zeros(2, 1), best=3, **options
    )


@pytest.mark.parametrize("weight", [0.3, 2.0])
def test_a_fused_score_is_the_weighted_sum_of_log_probabilities(weight):
    model, language = Bigram(1), Bigram(2)
    texts = [(*text, EOS) for length in range(LONGEST) for text in product(TOKENS, repeat=length)]
    expected = sorted(texts, key=lambda text: model.score(text) + weight * language.score(text), reverse=True)[:3]
    for answers in search(model, language, weight)[0]:
        assert [tuple(answer.tokens) for answer in answers] == expected
        for answer, text in zip(answers, expected, strict=True):
            assert answer.score == pytest.approx(model.score(text) + weight * language.score(text), abs=1e-4)


def test_a_weight_of_zero_changes_nothing():
    fused, plain = search(Bigram(1), Bigram(2), 0.0)
    assert [[answer.tokens for answer in answers] for answers in fused] == [
        [answer.tokens for answer in answers] for answers in plain
    ]
    assert fused[0][0].score == pytest.approx(plain[0][0].score, abs=1e-6)
