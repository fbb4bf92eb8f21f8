import json

import pytest
import torch
from torch.testing import assert_close

from regard.data.codec import SETTINGS
from regard.data.image.synthetic.boxes import draw
from regard.data.image.writing import png
from regard.data.records import Record
from regard.data.table import DataError
from regard.tasks.detect.codec import ObjectCodec
from regard.tasks.detect.config import DetectData
from regard.tasks.detect.data import Annotated
from regard.tasks.detect.synthetic import SyntheticScene

DATA = DetectData(height=32, width=32)


def things(tmp_path, *labels, boxes=None, name="a.png"):
    (tmp_path / name).write_bytes(png(torch.zeros(3, 40, 80)))
    given = ((0.0, 0.0, 40.0, 20.0),) * len(labels) if boxes is None else boxes
    return Annotated(Record(name, None, f"{tmp_path}/t.jsonl:1"), labels, given)


def test_labels_are_numbered_in_alphabetical_order_and_boxes_are_shares(tmp_path):
    both = things(tmp_path, "dog", "cat")
    codec = ObjectCodec.fit([both], DATA, 8)
    assert codec.labels == ("cat", "dog")
    found = codec.encode(both)
    assert found.labels == [1, 0]
    assert_close(found.boxes, torch.tensor([[0.25, 0.25, 0.5, 0.5]] * 2))
    assert codec.is_known(both)
    assert codec.fits(both)
    assert codec.select_fitting([both, both]) == [0, 1]


def test_drawn_pictures_have_boxes_in_pixels_and_are_read_from_no_file():
    training, _ = draw(4, most=2)
    drawn = [SyntheticScene(each, 64) for each in training]
    codec = ObjectCodec.fit([each.annotated for each in drawn], DATA, 8)
    examples = codec.encode_all([each.annotated for each in drawn], renderers=drawn).examples
    assert_close(examples[0].boxes, training[0].boxes, atol=1e-3, rtol=0)
    assert [codec.labels[number] for number in examples[0].labels] == list(drawn[0].annotated.labels)
    assert codec.extent(examples[0]) == (64, 64)


def test_what_was_found_is_told_in_pixels_of_the_picture_as_it_is(tmp_path):
    codec = ObjectCodec.fit([things(tmp_path, "cat")], DATA, 8)
    example = codec.encode(things(tmp_path, "cat"))
    assert codec.grid(example) == (2, 4)  # 80 x 40 was made 32 x 16
    assert codec.pixels(example, torch.tensor([[-0.1, 0.25, 0.5, 1.2]])) == [(0.0, 10.0, 40.0, 40.0)]
    assert codec.extent(example._replace(picture=torch.zeros(3, 5, 7))) == (5, 7)


def test_pictures_that_are_missing_are_listed(tmp_path):
    codec = ObjectCodec.fit([things(tmp_path, "cat")], DATA, 8)
    lost = Annotated(Record("lost.png", None, f"{tmp_path}/t.jsonl:3"))
    with pytest.raises(DataError, match=r"1 of 2 pictures are missing: .*t\.jsonl:3 lost\.png"):
        codec.encode_all([things(tmp_path, "cat"), lost])


def test_a_label_that_was_not_learned_is_listed_with_its_line(tmp_path):
    codec = ObjectCodec.fit([things(tmp_path, "cat")], DATA, 8)
    with pytest.raises(DataError, match=r"2 labels were not there to be learned: .*t\.jsonl:1 'cow', .* there are cat$"):
        codec.encode(things(tmp_path, "cow", "cat", "cow"))


def test_pictures_with_nothing_on_them_teach_nothing(tmp_path):
    with pytest.raises(DataError, match="detection needs pictures with objects, got 1 pictures with none"):
        ObjectCodec.fit([things(tmp_path)], DATA, 8)


def test_it_is_saved_and_read_again_and_takes_boxes_of_another_form(tmp_path):
    codec = ObjectCodec.fit([things(tmp_path, "猫")], DATA, 8)
    codec.save(tmp_path)
    assert ObjectCodec.load(tmp_path) == codec
    other = codec.adapt(DetectData(box_format="xywh"))
    assert (other.form, other.labels) == ("xywh", codec.labels)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 9}, "it is of another format"),
        ({"labels": [""]}, "labels need to be words"),
        ({"labels": []}, "labels need to be words"),
        ({"form": "round"}, "the form of boxes needs to be one of xyxy, xywh, cxcywh"),
        ({"form": 3}, "form is missing or of the wrong kind"),
    ],
)
def test_settings_that_are_not_its_own_are_refused(tmp_path, change, said):
    ObjectCodec.fit([things(tmp_path, "cat")], DATA, 8).save(tmp_path)
    path = tmp_path / SETTINGS
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | change), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"the settings of a codec of pictures with things on them, format 1: {said}"):
        ObjectCodec.load(tmp_path)
