import torch
from torch.testing import assert_close

from regard.attention.mechanisms._coverage import CoverageBase
from regard.attention.types import Encoded, Memory


class Shy(CoverageBase):
    """Keys that were read push queries away."""

    def add_coverage(self, memory: Memory, state):
        return memory._replace(keys=memory.keys * (1 - state[:, None, :, None]))


def made() -> Shy:
    return Shy(2, score="dot")


def test_the_state_is_the_sum_of_weights_and_changes_the_keys():
    attention, source = made(), Encoded(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]))
    memory, query = attention.remember(source), torch.tensor([[[5.0, 0.0], [5.0, 0.0]]])
    found = attention(query, memory, weights=True)
    first = torch.tensor([5.0, 0.0]).softmax(0)
    second = torch.tensor([5.0 * (1 - first[0].item()), 0.0]).softmax(0)
    assert_close(found.weights[0, 0], torch.stack((first, second)))
    assert_close(found.state[0], first + second)


def test_two_queries_at_once_equal_two_steps():
    attention, memory = made(), made().remember(Encoded(torch.randn(3, 4, 2)))
    query = torch.randn(3, 2, 2)
    both = attention(query, memory, weights=True)
    one = attention(query[:, :1], memory, weights=True)
    two = attention(query[:, 1:], memory, one.state, weights=True, offset=1)
    assert_close(both.weights, torch.cat((one.weights, two.weights), dim=2))
    assert_close(both.state, two.state)


def test_weights_are_returned_only_on_request():
    attention = made()
    memory = attention.remember(Encoded(torch.randn(1, 3, 2)))
    assert attention(torch.randn(1, 1, 2), memory).weights is None
    assert attention.start(memory).tolist() == [[0.0, 0.0, 0.0]]
