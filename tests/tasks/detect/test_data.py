import json

import pytest
import torch
from torch.testing import assert_close

from regard.data.image.writing import png
from regard.data.records import Record
from regard.data.table import DataError
from regard.tasks.detect.config import DetectData
from regard.tasks.detect.data import Annotated, normalise_boxes, raise_mistakes, read

PICTURE = torch.zeros(3, 50, 100)


def table(tmp_path, *rows, name="things.jsonl"):
    (tmp_path / "a.png").write_bytes(png(PICTURE))
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def line(labels, boxes, image="a.png"):
    return {"image": image, "labels": labels, "boxes": boxes}


def given(*boxes, labels=None, where="t:1"):
    return Annotated(
        Record("a.png", None, where), labels or ("cell",) * len(boxes), tuple(tuple(map(float, box)) for box in boxes)
    )


def test_a_line_has_a_picture_its_labels_and_their_boxes(tmp_path):
    path = table(tmp_path, line(["cat", " dog "], [[0, 0, 10, 20], [1.5, 2, 3, 4]]), line([], []))
    first, second = read(path, DetectData())
    assert first == Annotated(Record("a.png", None, f"{path}:1"), ("cat", "dog"), ((0, 0, 10, 20), (1.5, 2, 3, 4)))
    assert second.labels == second.boxes == ()


def test_columns_have_other_names_or_numbers_and_tables_are_joined(tmp_path):
    row = {"file": "a.png", "names": ["cat"], "where": [[1, 2, 3, 4]]}
    one, two = table(tmp_path, row), table(tmp_path, row, name="more.json")
    named = read(f"{one}+{two}", DetectData(image="file", labels="names", boxes="where"))
    assert [each.record.where for each in named] == [f"{one}:1", f"{two}:1"]
    assert read(one, DetectData(image="1", labels="2", boxes="3")) == named[:1]


def test_another_form_of_table_is_refused():
    with pytest.raises(DataError, match=r"need to be JSONL, one object with image, labels and boxes .* got 'boxes\.tsv'"):
        read("boxes.tsv", DetectData())


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (line(["cat"], [[1, 2, 3, 4]], image=" "), ":1 names no picture"),
        (line("cat", [[1, 2, 3, 4]]), ":1 needs a list of words in 'labels', got 'cat'"),
        (line(["cat", 3], [[1, 2, 3, 4]] * 2), r":1 needs a list of words in 'labels', got \['cat', 3\]"),
        (line(["cat"], []), ":1 needs a box for each of its 1 labels, got 0 boxes"),
        (line(["cat"], None), ":1 needs a box for each of its 1 labels, got None"),
        (line(["cat", "dog"], [[1, 2, 3, 4], [1, 2, 3]]), r":1 box 2 \(dog\) needs four numbers, got \[1, 2, 3\]"),
        (line(["cat"], [[1, 2, "3", 4]]), r":1 box 1 \(cat\) needs four numbers, got \[1, 2, '3', 4\]"),
        (line(["cat"], [[1, 2, True, 4]]), r":1 box 1 \(cat\) needs four numbers"),
        (line(["cat"], [[1, 2, float("inf"), 4]]), r":1 box 1 \(cat\) needs four numbers"),
        (line(["cat"], [list(range(99))]), r"got \[0, 1, 2, .*\.\.\.\. Correct them"),
    ],
)
def test_a_line_that_makes_no_sense_is_told_with_its_number(tmp_path, row, said):
    with pytest.raises(DataError, match=said):
        read(table(tmp_path, row), DetectData())


def test_all_mistakes_are_counted_and_the_first_are_listed(tmp_path):
    wrong = line(["cat"], [])
    with pytest.raises(DataError, match=r"^7 errors in the annotations: .*:2 needs .*:6 needs .*; and 2 more\. Correct"):
        read(table(tmp_path, line([], []), *[wrong] * 7), DetectData())
    raise_mistakes([])


@pytest.mark.parametrize(
    ("form", "box"), [("xyxy", (20, 10, 60, 40)), ("xywh", (20, 10, 40, 30)), ("cxcywh", (0.4, 0.5, 0.4, 0.6))]
)
def test_boxes_of_every_form_become_centres_and_sides_in_shares(form, box):
    [found, nothing, unknown] = normalise_boxes(
        [given(box), given(), Annotated(Record("a", None, "t:2"))], form, [(50, 100)] * 3
    )
    assert_close(found, torch.tensor([[0.4, 0.5, 0.4, 0.6]]))
    assert nothing.shape == (0, 4)
    assert unknown is None


def test_the_sizes_of_files_are_in_their_headers(tmp_path):
    [found] = normalise_boxes(read(table(tmp_path, line(["cat"], [[0, 0, 100, 50]])), DetectData()), "xyxy")
    assert_close(found, torch.tensor([[0.5, 0.5, 1.0, 1.0]]))


def test_pictures_that_cannot_be_read_are_told_all_at_once(tmp_path):
    given = []
    for line, name in enumerate(("one.png", "two.png"), 1):
        (tmp_path / name).write_text("no picture")
        given.append(Annotated(Record(name, None, f"{tmp_path}/t.jsonl:{line}"), (), ()))
    with pytest.raises(
        DataError, match=r"2 of 2 pictures cannot be read: .*t\.jsonl:1: .*one\.png is no .*t\.jsonl:2: .*two\.png"
    ):
        normalise_boxes(given, "xyxy")


def test_a_box_that_rounding_moved_over_the_edge_is_cut_there():
    [found] = normalise_boxes([given((0, 0, 100.005, 50))], "xyxy", [(50, 100)])
    assert_close(found, torch.tensor([[0.5, 0.5, 1.0, 1.0]]))


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ((60, 10, 20, 40), r"t:1 box 1 \(cell: 60, 10, 20, 40\) has no size"),
        ((20, 10, 60, 10), "has no size"),
        ((20, 10, 60, 51), r"t:1 box 1 \(cell: 20, 10, 60, 51\) reaches outside its picture of 100 x 50"),
        ((-1, 10, 60, 40), "reaches outside its picture of 100 x 50"),
    ],
)
def test_a_box_outside_its_picture_or_of_no_size_is_told(box, said):
    with pytest.raises(DataError, match=said):
        normalise_boxes([given(box)], "xyxy", [(50, 100)])


def test_boxes_in_another_form_than_was_said_are_told_all_at_once():
    with pytest.raises(
        DataError, match=r"2 errors .* t:1 box 2 .*; t:7 box 1 .*data\.box_format says what the four numbers"
    ):
        normalise_boxes(
            [given((0, 0, 9, 9), (90, 10, 20, 30)), given((90, 10, 20, 30), where="t:7")], "xyxy", [(50, 100)] * 2
        )
