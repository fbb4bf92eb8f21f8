import dataclasses
import re

import pytest
import torch
from PIL import Image

import regard
from regard import tasks
from regard.config import AttentionPart, Train
from regard.data.image.writing import png
from regard.errors import ConfigError, DataError, RefusedError
from regard.losses.types import Progress
from regard.tasks._validate import buildable, heeded
from regard.tasks.vqa.config import VqaData, VqaModel
from regard.tasks.vqa.experiment import synthesise_samples
from regard.tasks.vqa.task import Config
from regard.training.loop import train
from regard.training.run_directory import verify

DATA = VqaData(height=32, width=32, samples=90, batch_pixels=1 << 13)
MODEL = VqaModel(hidden_size=16, depth=1)
QUICK = Train(max_steps=4, evaluate_every=2, checkpoint_every=2, learning_rate=1e-2, monitor="accuracy")


def config(data=DATA, model=MODEL, **settings) -> Config:
    return Config(data=data, model=model, train=dataclasses.replace(QUICK, **settings))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("vqa")
    experiment, _ = tasks.experiment("vqa", config())
    train(experiment, directory, quiet=True)
    return directory, experiment


@pytest.fixture
def table(tmp_path):
    """Three pictures of two sizes, with two questions about each."""
    for number in range(3):
        (tmp_path / f"{number}.png").write_bytes(png(torch.rand(3, 16, 24) if number % 2 else torch.rand(3, 24, 16)))
    path = tmp_path / "questions.tsv"
    path.write_text("".join(f"{n}.png\tis it {n}?\tyes\n{n}.png\twhat is {n}?\ta thing\n" for n in range(3)))
    return path


def files(table, **changes):
    return dataclasses.replace(DATA, train=str(table), valid=str(table), **changes)


@pytest.mark.parametrize(("read", "drawn"), [(32, 32), (64, 48)])
def test_pictures_are_drawn_as_large_as_they_are_read_or_as_the_task_has_them(read, drawn):
    first, _ = synthesise_samples(tasks.find("vqa"), config(dataclasses.replace(DATA, height=read, width=read)))
    assert first[0]().shape == (3, drawn, drawn)


def test_a_run_is_whole_and_leaves_pictures_to_begin_with(run):
    directory, experiment = run
    assert not any(name.startswith("samples") for name in verify(directory))
    lines = [line.split("\t") for line in (directory / "samples" / "questions.tsv").read_text().splitlines()]
    assert {picture for picture, *_ in lines} == {path.name for path in (directory / "samples").glob("*.png")}
    first = experiment.valid[0].record
    assert lines[0] == ["1.png", first.question, first.target]
    [answer] = regard.load(directory).predict([f"{directory / 'samples' / '1.png'}\t{first.question}"])
    assert answer.text in experiment.codec.answers


def test_what_it_learns_from_is_every_question_of_a_picture_at_once(run):
    _, experiment = run
    batch = experiment.train.batch(0)
    assert len(batch.question.data) > 2 * len(batch.source.data)
    loss = experiment.loss(experiment.model.train(), batch, Progress(0, 2))
    assert loss.tokens == len(batch.question.data)
    loss.total.backward()
    assert all(parameter.grad is not None for parameter in experiment.model.parameters())


def test_halves_of_a_batch_cost_what_the_whole_costs(run):
    model, batch = run[1].model.eval(), max((run[1].train.batch(step) for step in range(2)), key=lambda each: each.rows)
    assert batch.rows == 8
    whole = run[1].loss(model, batch, Progress(0, 2))
    halves = [run[1].loss(model, batch.select_rows(rows), Progress(0, 2)) for rows in (range(3), range(3, batch.rows))]
    torch.testing.assert_close(sum(each.total for each in halves), whole.total, rtol=1e-4, atol=1e-4)
    assert sum(each.tokens for each in halves) == whole.tokens


def test_a_training_that_was_stopped_comes_to_the_same_weights(run, tmp_path):
    whole = regard.load(run[0]).model.state_dict()
    train(tasks.experiment("vqa", config(max_steps=2))[0], tmp_path, quiet=True)
    train(tasks.experiment("vqa", config())[0], tmp_path, quiet=True)
    gone_on = regard.load(tmp_path).model.state_dict()
    assert all(torch.equal(whole[name], gone_on[name]) for name in whole)


def test_a_training_may_begin_with_another_run(run):
    other = config(init_from=str(run[0]))
    experiment, _ = tasks.experiment("vqa", other)
    assert (experiment.codec.mean, experiment.codec.answers) == (run[1].codec.mean, run[1].codec.answers)
    experiment.train.close()
    with pytest.raises(RefusedError, match=r"was trained with data\.lowercase=True, and now it is False"):
        tasks.experiment("vqa", dataclasses.replace(other, data=dataclasses.replace(DATA, lowercase=False)))
    with pytest.raises(RefusedError, match="is a run of vqa, which reads pictures with questions"):
        tasks.experiment("caption", dataclasses.replace(tasks.find("caption").Config(), train=Train(init_from=str(run[0]))))


def test_a_table_of_ones_own_is_read_from_its_folder(table):
    experiment, report = tasks.experiment("vqa", config(files(table, augment="flip", channels=1)))
    assert (report.encoded, experiment.codec.answers, experiment.extra_files) == (6, ("a thing", "yes"), {})
    assert experiment.train.steps_per_epoch() == 1
    assert "looks" not in experiment.evaluate(experiment.model.eval())
    experiment.train.close()


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "CMYK"])
def test_pictures_of_any_colours_are_read(table, mode):
    Image.new(mode, (1, 1) if mode == "L" else (20, 9)).save(table.parent / "0.png", "JPEG" if mode == "CMYK" else "PNG")
    experiment, _ = tasks.experiment("vqa", config(files(table)))
    assert experiment.train.batch(0).source.data.isfinite().all()
    experiment.train.close()


def test_what_is_wrong_with_a_table_is_said_before_anything_is_trained(table):
    whole = table.read_text()
    table.write_text(whole + "gone.png\tis it?\tyes\n")
    with pytest.raises(DataError, match=rf"of \d+ pictures are missing: {re.escape(str(table))}:7 gone\.png"):
        tasks.experiment("vqa", config(files(table)))
    table.write_text(whole + "text.png\tis it?\tyes\n")
    (table.parent / "text.png").write_text("no picture")
    with pytest.raises(DataError, match=r"questions\.tsv:7: .*text\.png is no PNG, JPEG or WebP"):
        tasks.experiment("vqa", config(files(table)))
    Image.new("1", (8000, 6000)).save(table.parent / "text.png")
    with pytest.raises(DataError, match=r"questions\.tsv:7: .*8,000 x 6,000 = 48,000,000 pixels"):
        tasks.experiment("vqa", config(files(table)))
    other = table.with_name("valid.tsv")
    other.write_text("0.png\tis it?\tperhaps\n")
    table.write_text(whole)
    with pytest.raises(
        DataError, match=r"1 answers were not there to be learned: .*valid\.tsv:1 'perhaps'; there are a thing"
    ):
        tasks.experiment("vqa", config(dataclasses.replace(files(table), valid=str(other))))


def test_questions_that_are_all_too_long_leave_nothing(table):
    with pytest.raises(DataError, match="too little is there: 0 pictures to train on, 6 to validate with"):
        tasks.experiment("vqa", config(files(table, max_question_length=3)))


@pytest.mark.parametrize(
    "model",
    [
        VqaModel(hidden_size=16, depth=1, question_encoder="recurrent", word_attention="none", hops=1),
        VqaModel(hidden_size=16, encoder="vit", depth=1, attention=AttentionPart("transformer"), question_layers=2),
        VqaModel(hidden_size=16, depth=1, attention=AttentionPart("scaled_dot+sparsemax"), positions="none"),
    ],
    ids=["recurrent", "vit", "sparsemax"],
)
def test_every_part_may_be_another_and_computes_in_half_precision(model):
    buildable(config(model=model))
    experiment, _ = tasks.experiment("vqa", config(model=model))
    with torch.autocast("cpu", torch.bfloat16):
        loss = experiment.loss(experiment.model.train(), experiment.train.batch(0), Progress(0, 2))
    assert loss.total.dtype == torch.float32
    loss.total.backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in experiment.model.parameters())
    experiment.train.close()


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"data": dataclasses.replace(DATA, channels=2)}, r"data\.channels needs to be 3, in colour, or 1, grey, got 2"),
        ({"data": dataclasses.replace(DATA, max_question_length=1)}, r"data\.max_question_length needs to be 2 or more"),
        ({"model": dataclasses.replace(MODEL, attention=AttentionPart("none"))}, "stacked attention reads by an attention"),
        ({"model": dataclasses.replace(MODEL, word_attention="nothing")}, "nothing"),
        ({"model": dataclasses.replace(MODEL, hidden_size=18, map_size=16, question_encoder="recurrent")}, "multiple of 4"),
    ],
)
def test_what_cannot_be_built_is_refused_before_it_is(changes, text):
    with pytest.raises(ConfigError, match=text):
        buildable(config(**changes))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"model": dataclasses.replace(MODEL, question_encoder="recurrent", feedforward_size=32)},
            r"model\.feedforward_size=32 would change",
        ),
        (
            {"guided_alignment": 1.0},
            r"train\.guided_alignment=1\.0 would change nothing: it needs a task whose models write text",
        ),
        ({"data": dataclasses.replace(DATA, train="t.tsv", valid="t.tsv")}, r"data\.samples=90 would change nothing"),
    ],
)
def test_what_would_change_nothing_is_refused(changes, text):
    heeded([config(model=dataclasses.replace(MODEL, feedforward_size=32))], Config())
    with pytest.raises(ConfigError, match=text):
        heeded([config(**changes)], Config())


def test_a_figure_that_is_not_measured_decides_nothing(table):
    with pytest.raises(ConfigError, match=r"train\.monitor needs to be one of loss, accuracy, looks, got 'bleu'"):
        tasks.experiment("vqa", config(monitor="bleu"))
    with pytest.raises(ConfigError, match=r"train\.monitor needs to be one of loss, accuracy, got 'looks'"):
        tasks.experiment("vqa", config(files(table), monitor="looks"))
