import pytest
import torch
from torch.testing import assert_close

from regard import tasks
from regard.config import read
from regard.data.image.writing import png
from regard.data.records import Record
from regard.data.table import DataError
from regard.models.detections import Detections
from regard.tasks.detect.data import Annotated
from regard.tasks.detect.model import Detected, Proposals
from regard.tasks.detect.predictor import Detector, select_detections, things
from regard.tasks.detect.task import Config

CONFIG = read(
    Config,
    overrides=[
        "data.samples=20",
        "model.hidden_size=16",
        "model.stride=8",
        "model.layers=2",
        "model.queries=5",
        "model.heads=2",
    ],
)


@pytest.fixture(scope="module")
def made():
    return tasks.experiment("detect", CONFIG)[0]


@pytest.fixture(scope="module")
def detector(made):
    return Detector(tasks.bind("detect"), CONFIG, made.codec, made.model)


@pytest.fixture
def picture(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(png(torch.rand(3, 32, 64)))
    return path


def output(logits, boxes, keep, weights=None):
    """What a model might say, of one layer: queries x classes, queries x 4."""
    logits, boxes, keep = torch.tensor([logits]), torch.tensor([boxes]), torch.tensor([keep])
    looks = {} if weights is None else {"decoder.0.cross": torch.tensor([[weights]])}
    return Detected(logits[None], boxes[None], Proposals(logits, boxes, keep), None, looks)


SURE, UNSURE, NO = 3.0, -1.0, -9.0
SAID = output(
    [[NO] * 7 + [UNSURE], [SURE] + [NO] * 7, [NO, 1.0] + [NO] * 6],
    [[0.5, 0.5, 0.1, 0.1], [0.25, 0.5, 0.5, 1.0], [0.75, 0.5, 0.5, 0.5]],
    [True] * 32 + [False] * 32,
    [[1.0 / 32] * 32 + [0.0] * 32, [1.0] + [0.0] * 63, [0.0] * 31 + [1.0] + [0.0] * 32],
)


def asked(detector, picture, **how):
    [example] = detector.encode([str(picture)])
    [answers] = detector.decode([example], SAID, how.get("best", 1), how.get("align", False))
    return answers


def test_all_that_it_is_sure_of_is_told_in_pixels_the_surest_first(detector, picture):
    labels = detector.codec.labels
    [answer] = asked(detector, picture)
    assert answer.text == f"{labels[0]} 0 0 32 32 0.95; {labels[1]} 32 8 64 24 0.73"
    assert answer.target == list(labels[:2])
    assert answer.boxes == [(0.0, 0.0, 32.0, 32.0), (32.0, 8.0, 64.0, 24.0)]
    assert answer.scores == [0.9526, 0.7311]
    assert answer.weights is None


def test_asked_for_several_it_tells_things_one_by_one_sure_or_not(detector, picture):
    answers = asked(detector, picture, best=3)
    assert [answer.target for answer in answers] == [[detector.codec.labels[each]] for each in (0, 1, 7)]
    assert answers[2].scores == [0.2689]
    assert [len(answer.boxes) for answer in answers] == [1, 1, 1]
    assert len(asked(detector, picture, best=9)) == 3


def test_each_thing_says_where_it_looked_on_its_own_picture(detector, picture):
    [answer] = asked(detector, picture, align=True)
    rows, columns = answer.grid
    assert answer.weights.shape == (2, rows * columns) == (2, 32)
    assert answer.links == [(0, 0), (31, 1)]


def test_nothing_found_is_an_empty_line_of_no_boxes(detector, picture):
    [example] = detector.encode([str(picture)])
    nothing = SAID._replace(logits=torch.full_like(SAID.logits, NO))
    [[answer]] = detector.decode([example], nothing, 1, True)
    assert (answer.text, answer.score, answer.boxes) == ("", 0.0, [])
    assert answer.weights.shape == (0, 32)


def test_a_smaller_picture_beside_a_larger_one_is_read_as_if_alone(detector, picture, tmp_path):
    large = tmp_path / "large.png"
    large.write_bytes(png(torch.rand(3, 90, 80)))
    alone = detector.predict([str(picture)], best=2, align=True)[0][0]
    beside = detector.predict([str(picture), str(large)], best=2, align=True)[0][0]
    assert beside.weights.shape == alone.weights.shape
    assert_close(beside.weights, alone.weights, atol=1e-4, rtol=1e-3)
    assert_close(beside.weights.sum(1), torch.ones(1))


def test_a_trace_has_the_things_by_name_and_a_look_of_each_layer(detector, picture):
    [example] = detector.encode([str(picture)])
    shown = detector.trace_parts(example, SAID)
    names = [f"{detector.codec.labels[0]} 0.95", f"{detector.codec.labels[1]} 0.73"]
    assert list(shown.axes["things"].pieces) == names
    assert shown.axes["picture"].grid == (4, 8)
    assert shown.attentions["decoder.0.cross"].weights.shape == (1, 2, 32)
    trace = detector.trace([str(picture)])
    looks = [look for look in trace.examples[0].attentions if look.key == "picture"]
    assert [look.name for look in looks] == ["decoder.0.cross", "decoder.1.cross"]
    assert looks[0].weights.shape[2] == 32


def test_a_trace_shows_the_surest_thing_where_it_is_sure_of_none(detector, picture):
    [example] = detector.encode([str(picture)])
    unsure = SAID._replace(logits=SAID.logits - 9)
    assert len(detector.trace_parts(example, unsure).axes["things"]) == 1


def test_what_is_measured(detector, made, tmp_path):
    assert detector.evaluate_examples(made.valid).keys() == {"loss", "map50", "map"}
    (tmp_path / "b.png").write_bytes(png(torch.rand(3, 40, 40)))
    record = Record("b.png", None, f"{tmp_path}/t.jsonl:1")
    given = Annotated(record, (detector.codec.labels[0],), ((5.0, 5.0, 30.0, 30.0),))
    figures = detector.evaluate([given])
    assert figures.keys() == {"loss", "map50", "map", f"ap50 {detector.codec.labels[0]}"}
    assert figures["map50"].value == figures[f"ap50 {detector.codec.labels[0]}"].value
    with pytest.raises(DataError, match="average precision needs pictures with things on them, got 1 with none"):
        detector.evaluate_records([Annotated(record, (), ())])


def test_finding_everything_is_a_hundred_per_cent(detector, made, monkeypatch):
    monkeypatch.setattr(detector, "forward", lambda batch, weights=False: perfect(things(batch), len(detector.codec.labels)))
    figures = detector.evaluate_examples(made.valid)
    assert (figures["map50"].value, figures["map"].value) == (100.0, 100.0)
    assert figures["loss"].value < 1e-3


def perfect(objects, classes):
    logits = torch.full((*objects.labels.shape, classes), -20.0)
    logits.scatter_(2, objects.labels[..., None], 40.0 * objects.keep[..., None] - 20)
    return Detected(logits[None], objects.boxes[None], Proposals(logits, objects.boxes, objects.keep), real=objects.keep)


def test_some_of_what_was_found():
    found = Detections(torch.arange(3), torch.rand(3, 4), torch.rand(3))
    assert select_detections(found, 2).labels.tolist() == [0, 1]
    assert select_detections(found, 3, 2).queries is None


def test_a_batch_without_boxes_is_refused(detector, picture):
    [(_, batch)] = detector.batches(detector.encode([str(picture)]))
    with pytest.raises(ValueError, match="a batch needs labels and boxes"):
        things(batch)


def test_scores_are_those_of_classes_and_boxes_of_the_last_layer(detector):
    whole = detector.scores(SAID)
    assert whole.shape[-1] == SAID.logits.shape[-1] + 4
    boxes = SAID.boxes.clone()
    boxes[-1, 0, 0, 2] = float("nan")
    assert not detector.scores(SAID._replace(boxes=boxes))[0].isfinite().all()
