from dataclasses import replace

import pytest
import torch

import regard
from regard import tasks
from regard.data.image.labelled import LabelCodec
from regard.data.image.writing import png
from regard.data.lines import DataError
from regard.data.record import Record
from regard.families import classifying
from regard.loading import load
from regard.seeing import Seeing
from regard.seeing.classifier import Classifier
from regard.trained import Trained
from regard.training.errors import RefusedError

CODEC = LabelCodec(("dark", "light"), several=True, height=8, width=8)


@pytest.fixture
def seeing():
    torch.manual_seed(0)
    found = tasks.find("classify").Config()
    config = replace(found, model=replace(found.model, size=8), search=replace(found.search, batch=2))
    return Classifier("classify", config, CODEC, classifying.build(config, CODEC))


@pytest.fixture
def pictures(tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(png(torch.rand(3, 8, 8)))
    return [str(tmp_path / f"{number}.png") for number in range(3)]


def test_every_input_is_answered_in_its_place_however_batches_are_cut(seeing, pictures):
    together = seeing.predict(pictures, best=2)
    assert [[answer.text for answer in each] for each in together] == [
        [answer.text for answer in seeing.predict([picture], best=2)[0]] for picture in pictures
    ]
    assert seeing.predict([]) == []


def test_records_with_targets_are_measured(seeing, pictures):
    records = [Record(picture, "dark", f"table:{line}") for line, picture in enumerate(pictures, 1)]
    figures = seeing.evaluate(records)
    assert figures.keys() == {"loss", "accuracy", "f1"}
    assert figures == seeing.measure(records)


def test_a_file_that_is_missing_is_named(seeing, pictures, tmp_path):
    assert seeing.knows(pictures[0])
    assert seeing.reads(pictures[0])
    with pytest.raises(DataError, match=r"gone\.png"):
        seeing.reads(str(tmp_path / "gone.png"))
    with pytest.raises(DataError, match=r"1 of 1 pictures are missing: input:1 .*gone\.png"):
        seeing.predict([str(tmp_path / "gone.png")])


def test_what_is_predicted_while_somebody_listens_is_traced(seeing, pictures):
    with regard.record(seeing) as rec:
        seeing.predict(pictures[:2])
    trace = rec.trace()
    assert [example.title for example in trace.examples] == pictures[:2]
    assert {look.name for look in trace.examples[0].looks} == {"queries.attention"}


def test_a_run_that_writes_no_text_is_opened_by_see_and_refused_by_load(monkeypatch, seeing):
    monkeypatch.setattr("regard.loading.opened", lambda directory, device: seeing)
    assert isinstance(regard.see("run"), Seeing)
    with pytest.raises(RefusedError, match=r"run is a run of classify, which writes no text; regard\.see opens it"):
        load("run")


def test_a_run_that_writes_text_is_refused_by_see(monkeypatch):
    writer = Trained.__new__(Trained)
    writer.name = "translate"
    monkeypatch.setattr("regard.loading.opened", lambda directory, device: writer)
    assert load("run") is writer
    with pytest.raises(RefusedError, match=r"is a run of translate, which writes text; regard\.load opens it"):
        regard.see("run")
