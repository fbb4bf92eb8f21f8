import pytest
import torch

from regard.attention.types import Attended, Memory
from regard.data.special_tokens import BOS, EOS
from regard.decoding.streaming.simultaneous_search import ReceivedSource, has_stopped, stream_certain_tokens, try_step
from regard.models.decoders import DecoderMemory
from regard.models.types import Step


class Copier:
    """Writes the next key of its source, which it walks over one by one, and EOS behind the last."""

    def __init__(self, impossible=False):
        self.steps, self.impossible = [], impossible

    def remember(self, encoded):
        raise NotImplementedError

    def __call__(self, target, memory, **options):
        raise NotImplementedError

    def start(self, memory):
        return torch.zeros(1, dtype=torch.long)

    def step(self, token, memory, state, *, weights=False):
        keys = memory.memories["decoder.cross"].values[0, 0, :, 0]
        self.steps.append((int(token), len(keys)))
        output = torch.zeros(1, 9)
        output[0, int(keys[state]) if state < len(keys) else EOS] = 9.0
        output = output.fill_(-torch.inf) if self.impossible else output
        output[0, BOS] = 20.0  # which no target holds
        return Step(output, state + 1, {"decoder.cross": Attended(output, state=state.clamp_max(len(keys)))})


def heard(keys, length=20, whole=False):
    values = torch.tensor(keys, dtype=torch.float).view(1, 1, -1, 1)
    return ReceivedSource(DecoderMemory({"decoder.cross": Memory(values, values)}), length, whole)


def test_a_token_is_written_when_its_key_is_there_and_more_is_heard_when_it_is_not():
    order = []

    def hearing():
        for keys, whole in (([5], False), ([5, 6, 7], False), ([5, 6, 7], True)):
            order.append("heard")
            yield heard(keys, whole=whole)

    decoder = Copier()
    for token in stream_certain_tokens(decoder, hearing()):
        order.append(token)
    assert order == ["heard", 5, "heard", 6, 7, "heard", EOS]
    assert decoder.steps == [(BOS, 1), (5, 1), (5, 3), (6, 3), (7, 3), (7, 3)]  # a step that came to the end is taken again


def test_nothing_is_heard_after_the_end_of_the_answer():
    hearing = iter([heard([5, EOS]), heard([5, EOS, 6], whole=True)])
    assert list(stream_certain_tokens(Copier(), hearing)) == [5, EOS]
    assert len(list(hearing)) == 1


def test_an_answer_waits_where_it_may_not_be_longer_yet():
    hearing = iter([heard([5, 6, 7], length=1), heard([5, 6, 7], length=2), heard([5, 6, 7], length=2, whole=True)])
    decoder = Copier()
    assert list(stream_certain_tokens(decoder, hearing)) == [5, 6]
    assert len(decoder.steps) == 2


def test_no_token_at_all_is_no_answer():
    assert list(stream_certain_tokens(Copier(), iter([heard([5], length=0, whole=True)]))) == []


def test_a_walk_has_stopped_where_there_is_a_key():
    memory = heard([5, 6]).memory
    looks = [{"decoder.cross": Attended(torch.zeros(1), state=torch.tensor([place]))} for place in (1, 2)]
    assert [has_stopped(Step(torch.zeros(1, 9), (), each), memory) for each in looks] == [True, False]


def test_a_step_leaves_gradients_alone_and_wants_none():
    step = try_step(Copier(), BOS, heard([5]), torch.zeros(1, dtype=torch.long))
    assert not step.output.requires_grad
    assert torch.is_grad_enabled()
    assert try_step(Copier(), BOS, heard([5]), torch.ones(1, dtype=torch.long)) is None


def test_a_source_without_a_way_on_is_an_error():
    decoder = Copier(impossible=True)
    with pytest.raises(ValueError, match="decoding needs a possible token at step 1"):
        list(stream_certain_tokens(decoder, iter([heard([5], whole=True)])))
