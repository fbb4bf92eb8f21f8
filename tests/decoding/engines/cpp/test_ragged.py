import torch

from regard.data.batch import Padded, pad
from regard.decoding.engines.cpp.ragged import remove_padding


def test_tokens_stand_one_behind_the_other_and_rows_go_back_to_where_they_stood():
    source = pad([[4, 5, 2], [7, 2]])
    found = remove_padding(source)
    assert found.tokens.tolist() == [4, 5, 2, 7, 2]
    assert found.places.tolist() == [0, 1, 2, 0, 1]
    assert found.counts.tolist() == [3, 2]
    data = found.out(torch.arange(1.0, 6.0)[:, None], source.keep)
    assert data[..., 0].tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 0.0]]


def test_a_place_in_the_middle_that_is_not_kept_leaves_the_others_where_they_are():
    source = Padded(torch.tensor([[4, 5, 6]]), torch.tensor([[True, False, True]]))
    found = remove_padding(source)
    assert found.places.tolist() == [0, 2]
    assert found.out(torch.ones(2, 1), source.keep)[..., 0].tolist() == [[1.0, 0.0, 1.0]]


def test_where_nothing_fills_up_nothing_is_copied():
    source, data = pad([[4, 2], [5, 2]]), torch.ones(4, 3)
    found = remove_padding(source)
    assert found.out(data, source.keep).data_ptr() == data.data_ptr()
    assert found.pointers == (found.tokens.data_ptr(), found.places.data_ptr(), found.counts.data_ptr(), 2)
