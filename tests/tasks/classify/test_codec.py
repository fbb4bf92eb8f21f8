import json
from dataclasses import replace

import pytest
import torch

from regard.data.image.writing import png
from regard.data.records import Record
from regard.data.table import DataError
from regard.tasks.classify.codec import LabelCodec, split
from regard.tasks.classify.config import ClassifyData

DATA = ClassifyData(height=8, width=8)


def table(folder, *rows):
    for name, _ in rows:
        (folder / name).write_bytes(png(torch.rand(3, 8, 8)))
    return [Record(name, target, f"{folder}/t.tsv:{line}") for line, (name, target) in enumerate(rows, 1)]


def test_one_label_is_the_whole_cell_and_several_stand_between_commas(tmp_path):
    assert split("cat, dog", False) == ["cat, dog"]
    assert split("cat, dog,,cat", True) == ["cat", "dog"]
    records = table(tmp_path, ("1.png", "cat, dog"), ("2.png", "ant"))
    assert LabelCodec.fit(records, DATA, 8).labels == ("ant", "cat, dog")
    assert LabelCodec.fit(records, replace(DATA, multi_label=True), 8).labels == ("ant", "cat", "dog")


def test_records_become_examples_with_the_numbers_of_their_labels(tmp_path):
    records = table(tmp_path, ("1.png", "cat"), ("2.png", "ant"))
    codec = LabelCodec.fit(records, DATA, 8)
    assert [each.labels for each in codec.encode_all(records).examples] == [[1], [0]]
    assert codec.encode(records[0]._replace(target=None)).labels is None
    assert codec.adapt(DATA) is codec
    assert codec.is_known(records[0])


def test_where_several_may_hold_none_may(tmp_path):
    records = table(tmp_path, ("1.png", "cat, ant"), ("2.png", None))
    codec = LabelCodec.fit(records, replace(DATA, multi_label=True), 8)
    assert [each.labels for each in codec.encode_all(records).examples] == [[1, 0], []]


def test_labels_that_were_never_learned_are_listed_with_their_lines(tmp_path):
    records = table(tmp_path, ("1.png", "cat"), ("2.png", "ant"), *[(f"{line}.png", f"x{line}") for line in range(3, 10)])
    codec = LabelCodec.fit(records[:2], DATA, 8)
    with pytest.raises(
        DataError, match=r"7 labels were not there to be learned: .*t.tsv:3 'x3', .* and 2 more; there are ant, cat"
    ):
        codec.encode_all(records)


def test_one_label_tells_nothing_apart(tmp_path):
    with pytest.raises(DataError, match="a classifier needs 2 different labels or more, got cat"):
        LabelCodec.fit(table(tmp_path, ("1.png", "cat")), DATA, 8)
    with pytest.raises(DataError, match="a classifier needs 1 label or more, got none"):
        LabelCodec.fit(table(tmp_path, ("1.png", None)), replace(DATA, multi_label=True), 8)


def test_what_is_missing_is_listed(tmp_path):
    records = table(tmp_path, ("1.png", "cat"), ("2.png", "ant"))
    (tmp_path / "2.png").unlink()
    with pytest.raises(DataError, match=r"1 of 2 pictures are missing: .*t.tsv:2 2.png"):
        LabelCodec.fit(records, DATA, 8).encode_all(records)
    with pytest.raises(DataError, match=r"2 of 2 clips are missing: .*t.tsv:1 1.png"):
        LabelCodec.fit(records, replace(DATA, clips=True), 8).encode_all(records)


def test_a_clip_is_read_from_its_folder(tmp_path):
    (tmp_path / "a").mkdir()
    for name in ("1.png", "2.png"):
        (tmp_path / "a" / name).write_bytes(png(torch.rand(3, 4, 4)))
    codec, record = LabelCodec(("x", "y"), clips=True), Record("a", "x", f"{tmp_path}/t.tsv:1")
    assert codec.cache_images([codec.encode(record)]).sizes == [(2, 4, 4)]
    assert codec.is_known(record)


def test_what_is_saved_is_loaded(tmp_path):
    codec = LabelCodec(("ant", "cat"), True, True, 9, height=8, width=4, channels=1, mean=(0.1,), deviation=(0.2,))
    [path] = codec.save(tmp_path)
    assert LabelCodec.load(tmp_path) == codec
    for wrong, said in (
        ({"format": 9}, "it is of another format"),
        ({"labels": [""]}, "labels need to be words"),
        ({"frames": 0}, "a clip needs 1 frame or more"),
        ({"clips": 1}, "clips is missing or of the wrong kind"),
    ):
        path.write_text(json.dumps({**json.loads(json.dumps(saved(codec, tmp_path))), **wrong}))
        with pytest.raises(ValueError, match=said):
            LabelCodec.load(tmp_path)


def saved(codec, folder):
    [path] = codec.save(folder)
    return json.loads(path.read_text())
