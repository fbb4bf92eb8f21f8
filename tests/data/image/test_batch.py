import pytest
import torch

from regard.data.image.batch import collate_images


def test_pictures_stand_in_the_top_left_corner_and_say_where_they_are():
    wide, high = torch.full((1, 1, 3), 0.5), torch.full((1, 2, 1), 1.0)
    batch = collate_images([wide, high])
    assert batch.data.tolist() == [[[[0.5, 0.5, 0.5], [0, 0, 0]]], [[[1, 0, 0], [1, 0, 0]]]]
    assert batch.keep.tolist() == [[[True] * 3, [False] * 3], [[True, False, False]] * 2]
    assert batch.data.dtype == torch.float32


def test_height_and_width_are_rounded_up_to_a_multiple():
    batch = collate_images([torch.rand(3, 5, 8)], multiple=4)
    assert batch.data.shape == (1, 3, 8, 8)
    assert batch.keep.sum() == 40
    assert (batch.data[0][:, ~batch.keep[0]] == 0).all()


def test_a_batch_goes_to_a_device_as_a_whole():
    batch = collate_images([torch.rand(1, 2, 2)]).to("meta")
    assert batch.data.device.type == batch.keep.device.type == "meta"


@pytest.mark.parametrize(
    ("pictures", "multiple", "message"),
    [
        ([], 1, "at least one picture, got none"),
        ([torch.rand(1, 2, 2)], 0, "multiple of 1 or more, got 0"),
        ([torch.rand(1, 2, 2), torch.rand(3, 2, 2)], 1, "equally many channels, got 1 and 3"),
    ],
)
def test_what_makes_no_batch_is_refused(pictures, multiple, message):
    with pytest.raises(ValueError, match=message):
        collate_images(pictures, multiple)


def test_pictures_are_picked_without_the_filling_that_none_of_them_needs():
    batch = collate_images([torch.rand(1, 6, 2), torch.rand(1, 3, 5), torch.rand(1, 2, 4)])
    picked = batch.select_rows([2, 1])
    assert picked.data.shape == (2, 1, 3, 5)
    assert torch.equal(picked.data[1], batch.data[1, :, :3])
    assert picked.keep.sum((1, 2)).tolist() == [8, 15]
    assert batch._replace(keep=torch.zeros_like(batch.keep)).select_rows([0]).data.shape == (1, 1, 1, 1)


def test_there_is_room_for_larger_pictures_where_that_is_asked_for():
    batch = collate_images([torch.rand(1, 3, 5)], 4, least=(6, 2))
    assert batch.data.shape == (1, 1, 8, 8)
    assert batch.keep.sum() == 15


def test_pictures_of_one_size_are_all_there():
    found = collate_images([torch.ones(1, 4, 4, dtype=torch.float64)] * 2, 2)
    assert found.data.dtype == torch.float32  # as in every batch
    assert found.data.shape == (2, 1, 4, 4)
    assert found.keep.all()
