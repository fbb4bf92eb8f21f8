import pytest
import torch

from regard.data.image.writing import png
from regard.data.records import Record
from regard.data.special_tokens import EOS
from regard.data.table import DataError
from regard.tasks.retrieve.codec import PairCodec, pairs
from regard.tasks.retrieve.config import RetrieveData


@pytest.fixture
def records(tmp_path):
    """Two pictures, one of which has two texts, and a text that both have."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.png").write_bytes(png(torch.rand(3, 8, 8)))
    rows = [("a", "red star"), ("a", "a star"), ("b", "a  star"), ("b", "blue ring")]
    return [Record(f"{name}.png", text, f"{tmp_path / 't.tsv'}:{n}") for n, (name, text) in enumerate(rows, 1)]


@pytest.fixture
def codec(records):
    return PairCodec.fit(records, RetrieveData(height=8, width=8, max_target_length=4), 8)


def test_a_picture_and_a_text_that_are_there_again_have_one_number(codec, records):
    assert pairs(codec.encode_all(records).examples) == [(0, 0), (0, 1), (1, 1), (1, 2)]


def test_drawn_pictures_are_told_apart_by_their_names(codec, records):
    drawn = [lambda: torch.rand(3, 8, 8)] * 4
    named = [each._replace(where=f"drawn:{n}", source=f"drawn:{n}") for n, each in enumerate(records)]
    assert [picture for picture, _ in pairs(codec.encode_all(named, renderers=drawn).examples)] == [0, 1, 2, 3]


def test_numbers_have_no_holes_where_a_text_was_dropped(codec, records):
    longer = [records[0]._replace(target="a red star and a ring"), *records[1:]]
    assert pairs(codec.encode_all(longer, "drop").examples) == [(0, 0), (1, 0), (1, 1)]


def test_a_picture_alone_has_no_pair(codec, records):
    examples = codec.encode_all([record._replace(target=None) for record in records]).examples
    assert all(each.labels is None for each in examples)
    with pytest.raises(ValueError, match="a pair needs a picture and a text"):
        pairs(examples)


def test_a_text_is_cut_to_what_the_model_reads(codec):
    known, *_ = codec.tokens(["red star"])
    assert known[-1] == EOS
    assert len(known) == 3
    [cut] = codec.tokens(["red star red star red star"])
    assert len(cut) == codec.max_source_length == 4
    assert cut[-1] == EOS


def test_a_text_of_which_nothing_is_known_or_that_is_too_long_is_not_familiar(codec):
    assert codec.familiar("a zebra and")
    assert not codec.familiar("zebra")
    assert not codec.familiar("a star a star")


def test_what_was_saved_comes_back_as_the_same_kind(codec, tmp_path):
    codec.save(tmp_path)
    again = PairCodec.load(tmp_path)
    assert type(again) is PairCodec
    assert again.tokens(["red star"]) == codec.tokens(["red star"])


def test_missing_pictures_are_listed(codec, records):
    with pytest.raises(DataError, match=r"1 of 1 pictures are missing: .*t\.tsv:1 gone\.png"):
        codec.encode_all([records[0]._replace(source="gone.png")])
