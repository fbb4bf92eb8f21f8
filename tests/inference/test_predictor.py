"""One contract of all predictors: one input and several, best=n, stream, trace, and evaluation of a table."""

from pathlib import Path

import pytest

import regard
from regard import tasks
from regard.config import read
from regard.data.table import Record
from regard.errors import ConfigError, DataWarning
from regard.inference.prediction import Prediction
from regard.inference.predictor import split_inputs
from regard.metrics.text import Measurement
from regard.training.loop import train
from regard.viewer.trace import Trace

PICTURES = ["data.height=32", "data.width=32", "data.samples=60", "model.depth=1"]
SETTINGS = {
    "translate": ["data.samples=60"],
    "caption": [*PICTURES, "data.batch_pixels=8192"],
    "classify": [*PICTURES, "data.batch_pixels=8192"],
    "detect": ["data.samples=20", "model.stride=8", "model.queries=5", "model.heads=2"],
    "vqa": [*PICTURES, "data.batch_pixels=8192"],
    "retrieve": [*PICTURES, "data.batch_pixels=16384", "model.text_layers=1"],
}
METRIC = {"translate": "bleu", "caption": "bleu", "classify": "accuracy", "detect": "map50", "vqa": "accuracy"}


@pytest.fixture(scope="module", params=SETTINGS)
def run(request, tmp_path_factory):
    """A run of each task that has learned next to nothing."""
    name, directory = request.param, tmp_path_factory.mktemp(request.param)
    overrides = [*SETTINGS[name], "model.hidden_size=16", "train.max_steps=2", "train.evaluate_every=2"]
    train(tasks.experiment(name, read(tasks.find(name).Config, overrides=overrides))[0], directory, quiet=True)
    if name == "translate":
        (directory / "samples").mkdir()
        (directory / "samples/pairs.tsv").write_text("Tom chases Jerry\t汤姆追逐杰瑞\nMary likes Tom\t玛丽喜欢汤姆\n")
    return name, directory


@pytest.fixture
def predictor(run):
    return regard.load(run[1])


def table(run: tuple[str, Path]) -> Path:
    """The table of the samples that a run leaves."""
    [path] = [path for path in (run[1] / "samples").iterdir() if path.suffix in (".tsv", ".jsonl")]
    return path


@pytest.fixture
def inputs(run):
    """Two inputs of the task."""
    name, directory = run
    if name in ("translate", "retrieve"):
        return ["Tom chases Jerry", "Mary likes Tom"] if name == "translate" else ["a red circle", "a blue square"]
    pictures = [str(directory / "samples" / f"{number}.png") for number in (1, 2)]
    if name == "vqa":
        return [f"{pictures[0]}\t{question}" for question in ("what colour is the star?", "is there a circle?")]
    return pictures


def test_one_input_has_one_prediction_and_several_have_a_list(predictor, inputs):
    one, several = predictor.predict(inputs[0]), predictor.predict(inputs)
    assert isinstance(one, Prediction)
    assert [type(each) for each in several] == [Prediction] * 2
    assert one.text == several[0].text
    assert predictor.predict(iter(inputs)) == predictor.predict(tuple(inputs)) == several
    assert predictor.predict([]) == []


def test_best_answers_a_list_for_each_input(predictor, inputs):
    one, several = predictor.predict(inputs[0], best=2), predictor.predict(inputs, best=2)
    assert [type(each) for each in one] == [Prediction] * 2
    assert one[0].score >= one[1].score
    assert [[each.text for each in answers] for answers in several] == [
        [each.text for each in predictor.predict(each, best=2)] for each in inputs
    ]
    assert [len(answers) for answers in predictor.predict(inputs, best=1)] == [1, 1]
    with pytest.raises(ValueError, match="best needs to be 1 or more, got 0"):
        predictor.predict(inputs, best=0)


def test_a_record_is_one_input_and_its_target_is_not_read(run, predictor):
    record, *_ = predictor.task.read(predictor.config.data, str(table(run)))
    one = predictor.predict(record)
    assert isinstance(one, Prediction)
    assert predictor.predict([record])[0].text == one.text
    assert predictor.predict(predictor.strip_target(record)).text == one.text


def test_a_path_is_one_input(run, predictor):
    name, directory = run
    if name not in ("caption", "classify", "detect"):
        pytest.skip(f"an input of {name} is no path of a picture alone")
    path = directory / "samples" / "1.png"
    assert predictor.predict(path).text == predictor.predict(str(path)).text


def test_what_is_no_input_is_refused_with_its_place(predictor, inputs):
    with pytest.raises(TypeError, match=r"an input is a text, a path or a record, got int at input:2|Expected type"):
        predictor.read(3, 2)


def test_a_stream_joined_is_the_text_of_the_prediction(predictor, inputs):
    assert "".join(predictor.stream(inputs[0])) == predictor.predict(inputs[0]).text


def test_a_trace_is_of_one_input_or_of_several(predictor, inputs):
    one, several = predictor.trace(inputs[0]), predictor.trace(inputs)
    assert isinstance(one, Trace)
    assert (len(one.examples), len(several.examples)) == (1, 2)
    with pytest.raises(ValueError, match="trace needs one input or more, got none"):
        predictor.trace([])


def test_a_table_is_evaluated_by_its_path_as_by_its_records(run, predictor):
    name, path = run[0], table(run)
    metrics = predictor.evaluate(str(path))
    assert isinstance(metrics, dict)
    assert isinstance(metrics[METRIC.get(name, "text_recall1")], Measurement)
    assert metrics == predictor.evaluate(path)
    assert metrics == predictor.evaluate(predictor.task.read(predictor.config.data, str(path)))


def test_columns_of_a_table_may_have_other_names(run, predictor, tmp_path):
    if run[0] != "translate":
        pytest.skip("columns are read alike by all tasks")
    (tmp_path / "test.tsv").write_text("zh\ten\n汤姆追逐杰瑞\tTom chases Jerry\n")
    [record] = predictor.read_table(tmp_path / "test.tsv", source="en", target="zh")
    assert (record.source, record.target) == ("Tom chases Jerry", "汤姆追逐杰瑞")
    assert "bleu" in predictor.evaluate(tmp_path / "test.tsv", source="en", target="zh")
    with pytest.raises(ConfigError, match="text is no column of translate; it has source and target"):
        predictor.evaluate(tmp_path / "test.tsv", text="en")
    with pytest.raises(ConfigError, match="source name columns of a table, and records have none"):
        predictor.evaluate([record], source="en")


def test_a_single_input_is_told_from_several():
    assert split_inputs("Tom") == (True, ["Tom"])
    assert split_inputs(Record("Tom", None, "input:1")) == (True, [Record("Tom", None, "input:1")])
    assert split_inputs(Path("a.png")) == (True, [Path("a.png")])
    assert split_inputs(["Tom", "Jerry"]) == (False, ["Tom", "Jerry"])


def test_a_guess_is_warned_of(run, predictor):
    if run[0] != "translate":
        pytest.skip("a model of pictures has no unknown words")
    with pytest.warns(DataWarning, match="^input:2 has nothing in it that the model knows, and its answer is a guess$"):
        predictor.predict(["Tom", "☃"])
    told = (
        r"^input:1 has more than the 255 tokens that the model reads, and its beginning alone is answered \(2 inputs are unk"
    )
    with pytest.warns(DataWarning, match=told):
        predictor.predict(["Tom " * 300, "☃"])


def test_an_option_that_there_is_not_is_answered_with_the_nearest(predictor, inputs):
    with pytest.raises(
        TypeError, match=rf"predict has no option bes for a model of the task {predictor.name}; did you mean best\?"
    ):
        predictor.predict(inputs, bes=3)
    with pytest.raises(TypeError, match=r"predict has no option quux for a model of the task \w+; it has .*best"):
        predictor.predict(inputs, quux=3)


@pytest.mark.unhooked  # the check of types would raise first
def test_what_is_neither_an_input_nor_several_is_refused():
    with pytest.raises(TypeError, match="an input is a text, a path or a record, got int; several are a list of them"):
        split_inputs(3)
