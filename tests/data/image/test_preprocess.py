import pytest
import torch

from regard.config import ImageData
from regard.data.image.preprocess import LEAST, ImageCodec, checked, usual
from regard.data.image.types import ImageExample
from regard.data.image.writing import png
from regard.data.records import Record

CODEC = ImageCodec(height=16, width=32, stride=8)


def test_a_picture_has_a_place_for_each_square_and_each_is_called_by_row_and_column():
    example = ImageExample(torch.zeros(3, 16, 20))
    assert CODEC.grid(example) == (2, 3)
    assert CODEC.pieces(example) == ["1,1", "1,2", "1,3", "2,1", "2,2", "2,3"]
    assert CODEC.collate([example]).data.shape == (1, 3, 16, 24)
    assert CODEC.read_image(example).shape == (3, 16, 20)


def test_a_larger_picture_is_made_smaller():
    assert CODEC.read_image(ImageExample(torch.zeros(3, 64, 64))).shape == (3, 16, 16)


def test_mean_and_deviation_are_those_of_each_channel():
    dark, light = torch.zeros(3, 2, 2), torch.zeros(3, 2, 2)
    light[0] = 1.0
    found = CODEC.standardise(CODEC.cache_images([ImageExample(dark), ImageExample(light)]))
    assert found.mean == (0.5, 0.0, 0.0)
    assert found.deviation == (0.5, LEAST, LEAST)
    assert (found.height, found.width, found.stride) == (16, 32, 8)


def test_the_frames_of_a_clip_are_measured_as_pictures_are():
    clip = torch.zeros(4, 3, 2, 2)
    clip[:, 1] = 1.0
    found = CODEC.standardise(CODEC.cache_images([ImageExample(clip)]))
    assert found.mean == (0.0, 1.0, 0.0)


def test_a_budget_is_so_many_pictures_as_large_as_they_may_be():
    assert CODEC.budget([], 4) == 4 * 16 * 32
    loader = CODEC.loader([ImageExample(torch.zeros(3, 16, 32)) for _ in range(5)], CODEC.budget([], 4))
    assert sorted(len(indices) for indices, _ in loader.in_order()) == [1, 4]


def test_what_is_there_is_known_and_nothing_is_too_long(tmp_path):
    (tmp_path / "a.png").write_bytes(png(torch.zeros(3, 4, 4)))
    record = Record("a.png", None, f"{tmp_path / 'table.tsv'}:1")
    assert CODEC.is_known(record)
    assert CODEC.fits(record)
    assert CODEC.select_fitting([record, record]) == [0, 1]


def test_what_is_saved_comes_back():
    sight = ImageCodec(**usual(ImageData(height=9, width=7, channels=1), stride=4))
    saved = {name: list(value) if isinstance(value, tuple) else value for name, value in sight.saved().items()}
    assert ImageCodec(**checked(saved, {})) == sight
    assert sight.mean == (0.5,)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"height": "9"}, "height is missing or of the wrong kind"),
        ({"extra": 1}, "extra is missing or of the wrong kind"),
        ({"stride": 0}, "a height, a width and a stride of 1 or more, and 1 channel or 3"),
        ({"channels": 2}, "a height, a width and a stride of 1 or more, and 1 channel or 3"),
        ({"mean": [0.5]}, "mean and deviation need a number for each channel"),
        ({"deviation": [0.5, 0.5, -1.0]}, "mean and deviation need a number for each channel"),
    ],
)
def test_what_was_saved_wrongly_is_named(change, said):
    saved = {name: list(value) if isinstance(value, tuple) else value for name, value in CODEC.saved().items()}
    with pytest.raises(ValueError, match=said):
        checked({**saved, "extra": "text"} | change, {"extra": str})


def test_pictures_may_be_stretched_to_one_size_and_a_map_have_places_for_the_whole():
    sight = ImageCodec(height=16, width=32, stride=16, stretch=True, whole=1)
    for picture in (torch.zeros(3, 64, 64), torch.zeros(3, 5, 4)):
        assert sight.read_image(ImageExample(picture)).shape == (3, 16, 32)
        assert sight.pieces(ImageExample(picture)) == ["whole", "1,1", "1,2"]


def test_what_was_saved_before_pictures_were_stretched_is_read():
    saved = {"height": 16, "width": 16, "channels": 1, "stride": 8, "mean": [0.5], "deviation": [0.5]}
    found = checked(saved, {})
    assert (found["stretch"], found["whole"]) == (False, 0)
