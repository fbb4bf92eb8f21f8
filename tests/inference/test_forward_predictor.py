from dataclasses import replace

import pytest
import torch

import regard
from regard import tasks
from regard.cli.evaluate import measure
from regard.data.image.writing import png
from regard.data.records import Record
from regard.decoding.logprobs import UndistributedError
from regard.errors import DataError, RefusedError
from regard.inference.load import load_sequence_predictor
from regard.tasks.classify import experiment
from regard.tasks.classify.codec import LabelCodec
from regard.tasks.classify.predictor import Classifier

BRIGHT = 0.4
CODEC = LabelCodec(("dark", "light"), several=True, height=8, width=8)


@pytest.fixture
def seeing():
    torch.manual_seed(0)
    found = tasks.find("classify").Config()
    config = replace(found, model=replace(found.model, hidden_size=8), search=replace(found.search, batch_size=2))
    return Classifier(tasks.bind("classify"), config, CODEC, experiment.build(config, CODEC))


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
    assert figures == seeing.evaluate_records(records)


def test_a_file_that_is_missing_is_named(seeing, pictures, tmp_path):
    assert seeing.is_known(pictures[0])
    assert seeing.fits(pictures[0])
    with pytest.raises(DataError, match=r"gone\.png"):
        seeing.fits(str(tmp_path / "gone.png"))
    with pytest.raises(DataError, match=r"1 of 1 pictures are missing: input:1 .*gone\.png"):
        seeing.predict([str(tmp_path / "gone.png")])


def test_what_is_predicted_while_somebody_listens_is_traced(seeing, pictures):
    with regard.record(seeing) as rec:
        seeing.predict(pictures[:2])
    trace = rec.trace()
    assert [example.title for example in trace.examples] == pictures[:2]
    assert {look.name for look in trace.examples[0].attentions} == {"queries.attention"}


def test_a_run_that_writes_no_text_is_refused_where_text_is_needed(monkeypatch, seeing):
    monkeypatch.setattr("regard.inference.load.load", lambda directory, device: seeing)
    with pytest.raises(RefusedError, match="run is a run of classify, which writes no text; predict, evaluate, view and"):
        load_sequence_predictor("run")


def blinded(seeing, monkeypatch, rows):
    """Let a model have scores that are not finite for so many of the pictures: those that are brightest."""
    forward = seeing.forward

    def asking(batch, weights=False):
        output, light = forward(batch, weights), batch.source.data.float().flatten(1).mean(1)
        return output._replace(logits=output.logits.masked_fill((light > rows)[:, None], float("nan")))

    monkeypatch.setattr(seeing, "forward", asking)


@pytest.fixture
def brighter(tmp_path):
    for number, light in enumerate((0.2, 0.9, 0.3, 0.4, 0.8)):
        (tmp_path / f"{number}.png").write_bytes(png(torch.full((3, 8, 8), light)))
    return [str(tmp_path / f"{number}.png") for number in range(5)]


def test_a_picture_without_finite_scores_has_an_error_and_all_others_their_answers(seeing, brighter, monkeypatch):
    whole = dict(seeing.predict_unordered(brighter, best=2, align=True))
    blinded(seeing, monkeypatch, BRIGHT)
    outcomes = dict(seeing.outcomes(brighter, best=2, align=True))
    assert sorted(outcomes) == [0, 1, 2, 3, 4]
    assert [isinstance(outcomes[place], UndistributedError) for place in range(5)] == [False, True, False, False, True]
    for place in (0, 2, 3):
        assert [each.text for each in outcomes[place]] == [each.text for each in whole[place]]
        assert [each.score for each in outcomes[place]] == pytest.approx([each.score for each in whole[place]])
    with pytest.raises(
        UndistributedError, match=r"input:[25]: an answer needs scores that are finite, got NaN or infinity for"
    ):
        seeing.predict(brighter)


def test_batches_whose_answers_are_known_are_not_computed(seeing, brighter, monkeypatch):
    sizes = list[int]()
    infer = seeing.infer
    monkeypatch.setattr(seeing, "infer", lambda batch, weights: sizes.append(batch.rows) or infer(batch, weights))
    whole = list(seeing.outcomes(brighter))
    computed = len(sizes)
    first = [index for index, _ in whole[: sizes[0]]]
    rest = list(seeing.outcomes(brighter, done=frozenset(first)))
    assert len(sizes) == 2 * computed - 1
    assert [index for index, _ in rest] == [index for index, _ in whole]
    assert rest[: len(first)] == [(index, []) for index in first]
    assert rest[len(first) :] == whole[len(first) :]


def test_figures_leave_out_what_has_no_finite_scores(seeing, brighter, monkeypatch):
    records = [Record(picture, "dark", f"table:{line}") for line, picture in enumerate(brighter, 1)]
    expected = seeing.evaluate_records([records[place] for place in (0, 2, 3)])
    blinded(seeing, monkeypatch, BRIGHT)
    figures, errors = measure(seeing, records)
    assert sorted(errors) == [1, 4]
    assert {name: found.value for name, found in figures.items()} == pytest.approx(
        {name: found.value for name, found in expected.items()}
    )
