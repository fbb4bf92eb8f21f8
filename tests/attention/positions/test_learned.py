import re

import pytest
import torch

from regard.attention.positions.learned import Learned


def test_each_position_has_a_row_of_the_table():
    positions = Learned(2, limit=3)
    positions.table.weight.data = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    data = torch.tensor([[[10.0, 10.0], [20.0, 20.0]]])
    assert positions(data)[0].tolist() == [[11.0, 12.0], [23.0, 24.0]]
    assert positions(data, offset=1)[0].tolist() == [[13.0, 14.0], [25.0, 26.0]]


def test_the_table_learns_the_positions_that_were_met():
    positions = Learned(2, limit=4)
    positions(torch.zeros(1, 2, 2), offset=1).sum().backward()
    assert positions.table.weight.grad.tolist() == [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize(("time", "offset"), [(5, 0), (3, 2), (3, torch.tensor([0, 2]))])
def test_a_position_beyond_the_table_is_refused(time, offset):
    text = (
        "Learned has vectors for 4 positions, and met position 5; "
        "build it with limit=5 or more, or use Sinusoidal, which has no last position"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        Learned(2, limit=4)(torch.zeros(2, time, 2), offset)


def test_the_last_position_of_the_table_is_still_there():
    assert Learned(2, limit=4)(torch.zeros(2, 3, 2), offset=torch.tensor([0, 1])).shape == (2, 3, 2)


def test_an_exported_program_leaves_lengths_open_and_finds_the_end_of_the_table_itself(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    positions = Learned(2, limit=4)
    assert positions(torch.zeros(1, 2, 2), torch.tensor([2])).tolist() == [positions.table.weight[2:].tolist()]
    with pytest.raises(IndexError, match="index out of range"):
        positions(torch.zeros(1, 2, 2), torch.tensor([3]))


def test_a_row_may_be_longer_than_the_table_where_no_place_is():
    learned = Learned(4, limit=3)
    places = torch.tensor([[0, 1, 2, 0, 1]])
    assert torch.equal(learned(torch.zeros(1, 5, 4), places=places), learned.table.weight[places])
    with pytest.raises(ValueError, match="Learned has vectors for 3 positions, and met position 4"):
        learned(torch.zeros(1, 5, 4), places=places + 1)
