import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.constraints.state import mask_repeats


def test_a_group_that_stands_there_already_is_not_written_again():
    # 4 5 6 4 5: after 4 5 came 6
    assert mask_repeats(torch.tensor([[4, 5, 6, 4, 5]]), 3, 8).nonzero().tolist() == [[0, 6]]
    assert mask_repeats(torch.tensor([[4, 5, 6, 4, 5]]), 4, 8).nonzero().tolist() == []
    assert mask_repeats(torch.tensor([[4, 5, 6, 4]]), 2, 8).nonzero().tolist() == [[0, 5]]
    assert mask_repeats(torch.tensor([[4, 5, 4]]), 1, 8).nonzero().tolist() == [[0, 4], [0, 5]]


@given(
    rows=st.integers(1, 9).flatmap(
        lambda time: st.lists(st.lists(st.integers(0, 3), min_size=time, max_size=time), min_size=1, max_size=3)
    ),
    size=st.integers(1, 4),
)
def test_it_is_what_looking_through_the_row_says(rows, size):
    found = mask_repeats(torch.tensor(rows), size, 4)
    for row, told in zip(rows, found.tolist(), strict=True):
        seen = {tuple(row[start : start + size]) for start in range(len(row) - size + 1)}
        begun = tuple(row[len(row) - size + 1 :]) if size > 1 else ()
        assert told == [len(begun) == size - 1 and (*begun, token) in seen for token in range(4)]
