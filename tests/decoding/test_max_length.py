import pytest
import torch

from regard.attention.types import Memory
from regard.data.batch import pad
from regard.data.image.batch import collate_images
from regard.decoding.max_length import find_device, find_tensor, limit_length, limit_lengths, resolve_limits


def test_one_number_holds_for_every_sentence():
    assert resolve_limits(5, torch.zeros(3, 1)) == [5, 5, 5]


def test_each_sentence_may_have_its_own():
    assert resolve_limits([1, 0, 7], {"a": (), "b": [None, torch.zeros(3, 1)]}) == [1, 0, 7]


def test_an_output_has_three_times_the_tokens_of_its_source_and_ten_or_the_most():
    assert [limit_length(source, 40) for source in (0, 5, 10, 11)] == [10, 25, 40, 40]


def test_other_times_may_be_asked_for_and_none():
    assert [limit_length(source, 40, 0.5) for source in (0, 5, 70)] == [10, 12, 40]
    assert [limit_length(source, 40, 0.0) for source in (0, 5, 70)] == [40, 40, 40]


def test_a_batch_of_nothing_has_no_limits():
    assert resolve_limits(5, torch.zeros(0, 1)) == []


def test_a_number_too_few_is_an_error():
    with pytest.raises(ValueError, match="one number, or one for each of the 3 sentences, got 2"):
        resolve_limits([1, 2], torch.zeros(3, 1))


def test_a_negative_number_is_an_error():
    with pytest.raises(ValueError, match="length needs to be 0 or more tokens, got -2"):
        resolve_limits([1, -2], torch.zeros(2, 1))


def test_a_memory_without_tensors_is_an_error():
    with pytest.raises(ValueError, match="decoding needs a memory with a tensor in it"):
        resolve_limits(1, {"a": (None, [])})


def test_the_first_tensor_says_where_the_memory_lives():
    data = torch.zeros(2, 1, 3, 4)
    assert find_tensor((None, Memory(data, data))) is data
    assert find_device(Memory(data, data)) == torch.device("cpu")


def test_how_large_a_picture_is_says_nothing_of_its_text():
    assert limit_lengths(collate_images([torch.zeros(1, 2, 2), torch.zeros(1, 9, 9)]), 40) == [40, 40]
    assert limit_lengths(pad([[1] * 5, [1]]), 40) == [25, 13]
