import pytest
import torch
from torch import nn

from regard.attention import Causal, Everywhere, Memory
from regard.attention.monotonic import BLOCK, MonotonicStep
from regard.attention.scope.padding import Padding


class Counting(nn.Module):
    """The keys are the scores. It counts how many it was asked for."""

    def __init__(self):
        super().__init__()
        self.asked = 0

    def prepare(self, key):
        return key

    def forward(self, query, prepared):
        self.asked += prepared.shape[0] * prepared.shape[2]
        return query @ prepared.mT


def walk(scores, rows=None, keep=None, scope=Everywhere(), offset=0):
    """One query a row over a source whose scores are given."""
    keys = torch.tensor(scores)[:, None, :, None]
    rows = len(keys) if rows is None else rows
    return MonotonicStep(torch.ones(rows, 1, 1, 1), Memory(keys, keys, keep), Counting(), scope, offset)


def test_each_row_stops_at_the_first_score_above_0_from_its_own_place_on():
    stop = walk([[1.0, -1.0, 2.0, 3.0], [-1.0, 0.0, -1.0, 0.5], [1.0, 1.0, -1.0, -1.0]]).stop
    assert stop(torch.tensor([0, 0, 0])).tolist() == [0, 3, 0]
    assert stop(torch.tensor([1, 3, 1])).tolist() == [2, 3, 1]
    assert stop(torch.tensor([3, 4, 2])).tolist() == [3, 4, 4]


def test_all_keys_at_once_are_what_an_exported_program_meets(monkeypatch):
    torch.manual_seed(0)
    keep = torch.rand(4, 3 * BLOCK) < 0.9
    walking = walk((torch.randn(4, 3 * BLOCK) - 2).tolist(), rows=8, keep=keep)
    places = torch.randint(3 * BLOCK + 1, (20, 8))
    found = [walking.stop(place) for place in places]
    assert len(set(torch.cat(found).tolist())) > 10
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    for place, expected in zip(places, found, strict=True):
        assert walking.stop(place).tolist() == expected.tolist()


def test_a_place_is_not_changed_where_it_stands():
    place = torch.tensor([0])
    assert walk([[-1.0, 1.0]]).stop(place).tolist() == [1]
    assert place.tolist() == [0]


def test_a_row_that_stopped_meets_no_further_block():
    scores = torch.full((2, 10 * BLOCK), -1.0)
    scores[0, 0] = scores[1, -1] = 1.0
    walking = walk(scores.tolist())
    assert walking.stop(torch.tensor([0, 0])).tolist() == [0, 10 * BLOCK - 1]
    assert walking.score.asked == BLOCK + 10 * BLOCK


def test_a_row_at_the_end_meets_nothing():
    walking = walk([[1.0, 1.0]])
    assert walking.stop(torch.tensor([2])).tolist() == [2]
    assert walking.score.asked == 0


def test_what_is_padded_or_out_of_scope_is_passed_over():
    keep = torch.tensor([[False, True, True]])
    assert walk([[1.0, 1.0, 1.0]], keep=keep).stop(torch.tensor([0])).tolist() == [1]
    assert walk([[-1.0, 1.0, 1.0]], scope=Causal()).stop(torch.tensor([0])).tolist() == [3]
    assert walk([[-1.0, 1.0, 1.0]], scope=Causal(), offset=1).stop(torch.tensor([0])).tolist() == [1]
    rows = walk([[-1.0, 1.0]] * 2, scope=Causal(), offset=torch.tensor([0, 1]))
    assert rows.stop(torch.tensor([0, 0])).tolist() == [2, 1]


def test_beams_of_a_source_share_its_memory():
    keep = torch.tensor([[True, True, True], [True, False, True]])
    beams = walk([[-1.0, 1.0, 1.0], [1.0, 1.0, 1.0]], rows=4, keep=keep)
    assert beams.stop(torch.tensor([0, 2, 0, 1])).tolist() == [1, 2, 0, 2]
    assert beams.sources(None).tolist() == [0, 0, 1, 1]


def test_spots_outside_the_source_are_not_seen():
    walking, spots = walk([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[-1, 0], [1, 2]])
    assert walking.allows(spots).tolist() == [[False, True], [True, False]]
    assert walking.gather(walking.memory.keys, spots)[:, 0, :, 0].tolist() == [[1, 1], [4, 4]]
    assert walking.gather(walking.memory.keys, spots[1:], torch.tensor([1]))[:, 0, :, 0].tolist() == [[4, 4]]


def test_a_scope_of_another_size_is_refused():
    with pytest.raises(ValueError, match="Padding was made for"):
        walk([[1.0, 1.0]], scope=Padding(torch.ones(1, 5, dtype=torch.bool))).stop(torch.tensor([0]))
