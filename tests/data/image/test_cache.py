import numpy as np
import pytest
import torch
from PIL import Image

from regard.data.image.cache import ImageCache, shared
from regard.data.image.types import ImageExample
from regard.data.image.writing import png
from regard.data.records import Record
from regard.errors import DataError

NOISE = np.random.default_rng(0).integers(0, 256, (12, 20, 3), np.uint8)
TENSOR = torch.from_numpy(NOISE).permute(2, 0, 1).contiguous()


@pytest.fixture
def path(tmp_path):
    Image.fromarray(NOISE).save(tmp_path / "noise.png")
    return tmp_path / "noise.png"


def test_a_file_a_tensor_and_a_drawing_are_one_to_it(path):
    cache = ImageCache(
        [
            ImageExample(path),
            ImageExample(str(path)),
            ImageExample(TENSOR),
            ImageExample(TENSOR / 255),
            ImageExample(lambda: TENSOR),
        ]
    )
    assert cache.sizes == [(0, 12, 20)] * 5
    for number in range(5):
        assert torch.equal(cache.raw(number), TENSOR)
        torch.testing.assert_close(cache.picture(number), TENSOR / 255)


def test_larger_pictures_are_made_to_fit_and_sizes_say_so(path):
    cache = ImageCache(
        [ImageExample(path), ImageExample(TENSOR), ImageExample(lambda: TENSOR / 255), ImageExample(TENSOR[:, :2, :2])],
        box=(6, 100),
    )
    assert cache.sizes == [(0, 6, 10)] * 3 + [(0, 2, 2)]
    assert torch.equal(cache.raw(0), cache.raw(1))
    assert torch.equal(cache.raw(0), cache.raw(2))
    assert cache.raw(0).shape == (3, 6, 10)


def test_grey_becomes_colour_and_colour_grey():
    grey = torch.tensor([[[0, 100]]], dtype=torch.uint8)
    assert ImageCache([ImageExample(grey)]).raw(0).tolist() == [[[0, 100]]] * 3
    red = torch.tensor([1.0, 0, 0]).view(3, 1, 1)
    assert ImageCache([ImageExample(red)], channels=1).raw(0).tolist() == [[[76]]]


def test_clips_have_frames():
    cache = ImageCache([ImageExample(torch.rand(4, 1, 6, 8)), ImageExample(lambda: torch.rand(2, 3, 6, 8))], box=(3, 9))
    assert cache.sizes == [(4, 3, 4), (2, 3, 4)]
    assert cache.raw(0).shape == (4, 3, 3, 4)


def test_what_was_decoded_is_kept_while_there_is_room(path):
    drawn = []

    def draw(number):
        drawn.append(number)
        return torch.full((1, 10, 10), number / 255)

    examples = [ImageExample(lambda number=number: draw(number)) for number in range(5)]
    cache = ImageCache(examples, channels=1, room=300)
    assert sorted(drawn) == [0, 1, 2, 3, 4]
    drawn.clear()
    assert [int(cache.raw(number)[0, 0, 0]) for number in (0, 1, 2, 3, 4, 0, 1, 2, 3, 4)] == [0, 1, 2, 3, 4] * 2
    assert len(drawn) == 4, "three have room, two are drawn each time"


def test_a_file_that_goes_while_it_is_kept_is_not_missed(path):
    roomy, full = (
        ImageCache([ImageExample(path)]),
        ImageCache([ImageExample(path, record=Record("noise.png", None, "t.tsv:4"))], room=0),
    )
    roomy.raw(0), full.raw(0)
    path.unlink()
    assert torch.equal(roomy.raw(0), TENSOR)
    with pytest.raises(DataError, match=r"t.tsv:4: there is no file"):
        full.raw(0)


def test_a_file_that_is_no_picture_is_refused_at_once_with_its_line(tmp_path):
    (tmp_path / "x.png").write_text("no")
    with pytest.raises(DataError, match=r"t.tsv:9: .*x.png is no PNG, JPEG or WebP"):
        ImageCache([ImageExample(tmp_path / "x.png", record=Record("x.png", None, "t.tsv:9"))])


def test_the_cap_holds_for_files(path):
    with pytest.raises(DataError, match="20 x 12 = 240 pixels, and at most 200 are read"):
        ImageCache([ImageExample(path)], cap=200)


@pytest.mark.parametrize(
    "tensor",
    [torch.rand(2, 4, 4), torch.rand(4, 4), torch.rand(1, 0, 4), torch.zeros(1, 4, 4, dtype=torch.long)],
    ids=["two channels", "no channel", "empty", "integers"],
)
def test_a_tensor_that_is_no_picture_is_refused(tensor):
    with pytest.raises(ValueError, match=r"1 or 3 channels, height, width\), got torch.* in example 0"):
        ImageCache([ImageExample(tensor)])


def test_channels_are_one_or_three():
    with pytest.raises(ValueError, match="1 channel or 3, got 4"):
        ImageCache([], channels=4)


def test_all_that_cannot_be_read_is_listed(tmp_path):
    for number in range(12):
        (tmp_path / f"{number}.png").write_text("x")
    with pytest.raises(
        DataError, match=r"12 of 12 pictures cannot be read: .*0.png is no PNG.*; .*9.png is no PNG.*; and 2 more"
    ):
        ImageCache([ImageExample(tmp_path / f"{number}.png") for number in range(12)])
    with pytest.raises(DataError, match=r"^\S*0.png is no PNG"):
        ImageCache([ImageExample(tmp_path / "0.png")])


def test_pictures_that_are_cut_off_are_listed_with_the_others(tmp_path):
    whole = png(torch.rand(3, 40, 40))
    for number in range(5):
        (tmp_path / f"{number}.png").write_bytes(whole[:-9] if number % 2 else whole)
    with pytest.raises(DataError, match=r"2 of 5 pictures cannot be read: .*1\.png is a PNG .* its end is missing.*3\.png "):
        ImageCache([ImageExample(tmp_path / f"{number}.png") for number in range(5)])


def test_what_several_examples_share_is_one_picture(path, monkeypatch):
    calls = []

    class Draws:
        def __init__(self, same):
            self.same = same

        def __call__(self):
            calls.append(self.same)
            return torch.full((3, 2, 2), self.same)

    monkeypatch.setattr("regard.data.image.cache.read_pixels", lambda *where, **how: calls.append("file") or TENSOR)
    examples = [
        ImageExample(path),
        ImageExample(Draws(0.5)),
        ImageExample(path),
        ImageExample(Draws(0.0)),
        ImageExample(Draws(0.5)),
    ]
    assert shared([*examples, ImageExample(TENSOR), ImageExample(TENSOR)]) == [0, 1, 0, 3, 1, 5, 6]
    cache = ImageCache(examples)
    assert cache.sizes == [(0, 12, 20), (0, 2, 2), (0, 12, 20), (0, 2, 2), (0, 2, 2)]
    assert torch.equal(cache.raw(2), cache.raw(0))
    assert torch.equal(cache.raw(4), cache.raw(1))
    assert not torch.equal(cache.raw(3), cache.raw(1))
    assert sorted(map(str, calls)) == ["0.0", "0.5", "file"]
