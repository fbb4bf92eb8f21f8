import pytest
import torch

from regard.decoding.beam import beam
from regard.decoding.forced_bos import ForcedBOS
from regard.decoding.greedy import greedy
from regard.errors import ConfigError
from regard.models.types import Step


class Chain:
    """Writes 4, 5, 6, 7, EOS whatever was before; the state counts."""

    def start(self, memory):
        return torch.zeros(len(memory), dtype=torch.long)

    def step(self, token, memory, state, *, weights=False):
        logits = torch.zeros(len(token), 9)
        logits[torch.arange(len(token)), torch.tensor([4, 5, 6, 7, 2])[state.clamp_max(4)]] = 5.0
        return Step(logits, state + 1, {})

    def remember(self, encoded):
        return encoded

    def __call__(self, target, memory):
        return Step(target, (), {})


def test_the_first_token_is_certain_and_the_others_are_as_they_were():
    memory = torch.zeros(2, 1)
    for [found] in ([each] for each in greedy(ForcedBOS(Chain(), 8), memory, length=9)):
        assert found.tokens == [8, 5, 6, 7, 2]
        assert found.logprobs[0] == 0.0
        assert found.logprobs[1] < 0.0
    for [found] in beam(ForcedBOS(Chain(), 8), memory, beams=3, length=9):
        assert found.tokens == [8, 5, 6, 7, 2]


def test_what_is_taught_and_remembered_is_left_alone():
    assert ForcedBOS(Chain(), 8)("target", None).output == "target"
    assert ForcedBOS(Chain(), 8).remember("source") == "source"


@pytest.mark.parametrize("first", [0, 9])
def test_a_first_token_that_is_none_is_refused(first):
    with pytest.raises(ConfigError, match=f"search.forced_bos needs to be a token's number, from 4 to 8, got {first}"):
        greedy(ForcedBOS(Chain(), first), torch.zeros(1, 1), length=3)
