import json

import pytest
import torch

from regard.config import ImageTextData
from regard.data.image.cache import ImageCache
from regard.data.image.codec import ImageTextCodec
from regard.data.image.types import ImageExample
from regard.data.image.writing import png
from regard.data.records import Record
from regard.data.special_tokens import EOS, UNK
from regard.errors import DataError

RECORDS = [Record("a.png", "a Red star", "t.tsv:1"), Record("b.png", "two stars", "t.tsv:2")]


@pytest.fixture
def codec():
    return ImageTextCodec.fit(RECORDS, ImageTextData(height=16, width=16, lowercase=True, max_target_length=3), stride=8)


def drawn(height=16, width=16):
    return lambda: torch.zeros(3, height, width)


def test_texts_become_numbers_and_pictures_stay_what_they_are(codec):
    examples, report = codec.encode_all(RECORDS, renderers=[drawn(), drawn()])
    assert [example.record for example in examples] == RECORDS[1:]  # the first has three words, and no room for an end
    assert str(report) == "1 of 2 records, 1 dropped as too long"
    assert codec.decode(examples[0].target) == "two stars"
    kept = codec.encode_all(RECORDS, "truncate", [drawn(), drawn()])
    assert codec.decode(kept.examples[0].target) == "a red"
    assert kept.report.cut_targets == 1
    assert codec.target_pieces([*kept.examples[1].target, 9]) == ["two", "stars", "<eos>"]


def test_what_was_never_seen_is_unknown(codec):
    corpus = codec.encode_all([Record("c.png", "a cat", "t.tsv:3")], renderers=[drawn()])
    assert corpus.examples[0].target[1:] == [UNK, EOS]
    assert corpus.report.unknown == 0.5


def test_pictures_that_are_missing_are_listed_with_their_lines(codec, tmp_path):
    (tmp_path / "a.png").write_bytes(png(torch.zeros(3, 4, 4)))
    records = [Record(name, "x", f"{tmp_path / 't.tsv'}:{line}") for line, name in enumerate(("a.png", "b.png"), 1)]
    with pytest.raises(DataError, match=r"1 of 2 pictures are missing: .*t\.tsv:2 b\.png; paths count from the folder"):
        codec.encode_all(records)
    assert codec.encode(records[0]).picture == tmp_path / "a.png"


def test_a_file_that_is_no_picture_is_named(codec, tmp_path):
    (tmp_path / "no.png").write_text("text")
    with pytest.raises(DataError, match=r"no\.png is no PNG, JPEG or WebP picture"):
        codec.fits(Record(str(tmp_path / "no.png"), None, "input:1"))
    with pytest.raises(DataError, match=r"gone\.png"):
        codec.is_known(Record(str(tmp_path / "gone.png"), None, "input:1"))


def test_a_map_has_a_place_for_each_square_of_the_picture_as_it_is_read(codec):
    example = ImageExample(drawn(10, 64))  # made to fit: 2 or 3 x 16
    assert codec.read_image(example).shape[2] == 16
    assert codec.grid(example) == (1, 2)
    assert codec.pieces(example) == ["1,1", "1,2"]
    assert codec.collate([example]).data.shape == (1, 3, 8, 16)


def test_channels_are_measured(codec):
    pictures = [ImageExample(lambda value=value: torch.full((3, 4, 4), value)) for value in (0.2, 0.6)]
    found = codec.standardise(ImageCache(pictures))
    assert found.mean == (0.4, 0.4, 0.4)
    assert found.deviation == (0.2, 0.2, 0.2)
    assert codec.standardise(ImageCache(pictures[:1])).deviation == (0.001,) * 3


def test_it_is_saved_and_loaded(codec, tmp_path):
    codec.save(tmp_path)
    loaded = ImageTextCodec.load(tmp_path)
    assert loaded.decode(loaded.encode_all(RECORDS, "truncate", [drawn()] * 2).examples[1].target) == "two stars"
    assert (loaded.mean, loaded.height, loaded.over_long) == (codec.mean, 16, "drop")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"reads": "text"}, "it is of another format"),
        ({"stride": "8"}, "stride is missing or of the wrong kind"),
        ({"over_long": "keep"}, "over_long is 'keep', and needs to be truncate or drop"),
        ({"channels": 2}, "1 channel or 3"),
        ({"mean": [0.5]}, "mean and deviation need a number for each channel"),
    ],
)
def test_settings_that_are_none_are_refused(codec, tmp_path, change, text):
    codec.save(tmp_path)
    path = tmp_path / "codec.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(
        ValueError, match=rf"codec\.json needs to be the settings of a codec of pictures, format 1: .*{text}"
    ):
        ImageTextCodec.load(tmp_path)


def test_tokens_need_texts_and_room_for_one():
    with pytest.raises(ValueError, match="max_target_length needs at least 2"):
        ImageTextCodec.fit(RECORDS, ImageTextData(max_target_length=1), 8)
    with pytest.raises(DataError, match="tokens are learnt from pictures with texts, got 1 and 0"):
        ImageTextCodec.fit([Record("a.png", None, "t.tsv:1")], ImageTextData(), 8)
