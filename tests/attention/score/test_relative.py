import re

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from regard.attention.multihead import MultiHead
from regard.attention.score.relative import Relative
from regard.attention.score.scaled_dot import ScaledDot


class Largest(TorchDispatchMode):
    """The most numbers that any tensor held."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if isinstance(found, torch.Tensor):
            self.numbers = max(self.numbers, found.untyped_storage().nbytes() // found.element_size())
        return found


def test_a_key_gets_the_vector_of_its_distance_and_one_far_away_that_of_the_last():
    score = Relative(key=1, window=1, scale=1.0)
    score.a.weight.data = torch.tensor([[[1.0], [2.0], [4.0]]])  # before, here, after
    query, key = torch.full((1, 1, 1, 1), 3.0), torch.full((1, 1, 5, 1), 10.0)
    # a query of 3 at position 2: 3 (10 + 1) twice, 3 (10 + 2), 3 (10 + 4) twice
    assert score(query, score.prepare(key), offset=2).flatten().tolist() == [33.0, 33.0, 36.0, 42.0, 42.0]


@pytest.mark.parametrize("offset", [0, 2, torch.tensor([0, 3])], ids=str)
def test_it_is_a_vector_added_to_the_key_of_each_pair(offset):
    score = Relative(key=4, window=2, heads=3)
    query, key = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 6, 4)
    first = torch.as_tensor(offset).expand(2)
    for row in range(2):
        for t in range(5):
            for s in range(6):
                a = score.a.weight[:, 2 + max(-2, min(2, s - t - int(first[row])))]
                expected = (query[row, :, t] * (key[row, :, s] + a)).sum(-1) / 2
                torch.testing.assert_close(score(query, key, offset)[row, :, t, s], expected)


def test_no_vector_is_held_for_each_pair():
    score = Relative(key=32, window=2)
    query, key = torch.randn(1, 1, 40, 32), torch.randn(1, 1, 50, 32)
    with Largest() as largest:
        score(query, score.prepare(key)).sum().backward()
    assert largest.numbers == 40 * 50


def test_vectors_of_zeros_make_it_a_scaled_dot_product():
    score = Relative(key=4)
    score.a.weight.data.zero_()
    query, key = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
    torch.testing.assert_close(score(query, key), ScaledDot()(query, key))


def test_each_head_has_vectors_of_its_own_and_one_set_serves_all():
    query, key = torch.randn(1, 1, 4, 2).expand(1, 3, 4, 2), torch.randn(1, 1, 5, 2).expand(1, 3, 5, 2)
    own, shared = Relative(key=2, heads=3), Relative(key=2)
    before = own(query, key).detach()
    with torch.no_grad():
        own.a.weight[1] += 1
    assert ((own(query, key) - before).abs().amax((0, 2, 3)) > 0).tolist() == [False, True, False]
    torch.testing.assert_close(shared(query, key)[:, 0], shared(query, key)[:, 2])


def test_a_memory_that_grows_step_by_step_equals_all_at_once():
    attention = MultiHead(8, heads=2, score=Relative(key=4, window=2, heads=2), scope="causal")
    data = torch.randn(2, 6, 8)
    expected, memory = attention(data, attention.remember(data)).context, None
    for t in range(6):
        memory = attention.extend(memory, data[:, t : t + 1])
        torch.testing.assert_close(attention(data[:, t : t + 1], memory).context, expected[:, t : t + 1])


def test_what_it_was_not_made_for_is_refused():
    with pytest.raises(ValueError, match="Relative needs a window of 0 or more positions on either side, got -1"):
        Relative(key=2, window=-1)
    with pytest.raises(ValueError, match="Relative was made for key size 2, got 3; build it with key=3"):
        Relative(key=2).prepare(torch.zeros(1, 1, 1, 3))
    with pytest.raises(ValueError, match=re.escape("Relative needs queries and keys of one size, got 3 and 2")):
        Relative(key=2)(torch.zeros(1, 1, 1, 3), torch.zeros(1, 1, 1, 2))
