import torch

from regard.decoding.engines.eager.modules import EagerEngine
from regard.decoding.engines.types import Engine, Steps

from ...decoders import Recurrent, random_table, sources


def test_a_step_is_the_decoders_own_and_rows_follow_their_parents():
    torch.manual_seed(0)
    decoder = Recurrent()
    with torch.no_grad():
        memory = decoder.remember(sources(2))
        steps = EagerEngine(decoder).begin(memory)
        first = decoder.step(torch.tensor([1, 1]), memory, decoder.start(memory))
        assert torch.equal(steps.step(torch.tensor([1, 1]), None), first.output)
        parents, tokens = torch.tensor([0, 0, 1, 1]), torch.tensor([4, 5, 6, 7])
        grown = {"hidden": first.state["hidden"][parents]}
        assert torch.equal(steps.step(tokens, parents), decoder.step(tokens, memory, grown).output)


def test_sources_that_leave_are_asked_no_more():
    decoder = random_table(3, 6)
    steps = EagerEngine(decoder).begin(decoder.memory)
    steps.step(torch.tensor([1, 1, 1]), None)
    steps.leave(torch.tensor([2]))
    found = steps.step(torch.tensor([4]), torch.tensor([2]))
    assert decoder.sources == [3, 1]
    assert torch.equal(found[0], decoder.memory[2, 4])


def test_it_has_the_face_of_an_engine():
    decoder = random_table(1, 6)
    assert isinstance(EagerEngine(decoder), Engine)
    assert isinstance(EagerEngine(decoder).begin(decoder.memory), Steps)
