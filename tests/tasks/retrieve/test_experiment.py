import dataclasses
import re

import pytest
import torch

import regard
from regard import tasks
from regard.config import AttentionPart, Train
from regard.data.batch import pad
from regard.data.image.writing import png
from regard.data.table import DataError
from regard.errors import ConfigError, RefusedError
from regard.losses.types import Progress
from regard.tasks._validate import buildable, heeded
from regard.tasks.retrieve.config import RetrieveData, RetrieveDropout, RetrieveModel
from regard.tasks.retrieve.experiment import PositivePairs, drop_tokens
from regard.tasks.retrieve.task import Config
from regard.training.loop import train
from regard.training.run_directory import verify

DATA = RetrieveData(height=32, width=32, samples=60, batch_pixels=1 << 14, max_target_length=32)
MODEL = RetrieveModel(hidden_size=16, depth=1, projection_size=8, text_layers=1)
QUICK = Train(max_steps=4, evaluate_every=2, checkpoint_every=2, learning_rate=1e-2, monitor="recall")


def config(data=DATA, model=MODEL, words=0.0, **settings) -> Config:
    dropout = RetrieveDropout(embedding=0.0, residual=0.0, words=words)
    return Config(data=data, model=model, dropout=dropout, train=dataclasses.replace(QUICK, **settings))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("retrieve")
    experiment, _ = tasks.experiment("retrieve", config(words=0.3))
    train(experiment, directory, quiet=True)
    return directory, experiment


@pytest.fixture
def table(tmp_path):
    """Four pictures, the last of which has two texts."""
    for number in range(4):
        picture = torch.rand(3, 16, 24) if number % 2 else torch.rand(3, 24, 16)
        (tmp_path / f"{number}.png").write_bytes(png(picture))
    path = tmp_path / "texts.tsv"
    path.write_text("".join(f"{min(number, 3)}.png\tpicture number {number}\n" for number in range(5)))
    return path


def test_a_run_is_whole_and_leaves_pictures_and_texts_to_begin_with(run):
    directory, _ = run
    assert not any(name.startswith("samples") for name in verify(directory))
    lines = (directory / "samples" / "texts.tsv").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == [f"{number}.png" for number in range(1, 7)]  # a tenth is held out
    assert all((directory / "samples" / f"{number}.png").is_file() for number in range(1, 7))


def test_what_is_asked_may_be_chinese():
    experiment, _ = tasks.experiment("retrieve", config(dataclasses.replace(DATA, language="chinese")))
    assert any("一个" in example.record.target for example in experiment.valid)
    experiment.train.close()


def test_a_training_that_was_stopped_comes_to_the_same_weights(run, tmp_path):
    whole = regard.load(run[0]).model.state_dict()
    train(tasks.experiment("retrieve", config(max_steps=2, words=0.3))[0], tmp_path, quiet=True)
    train(tasks.experiment("retrieve", config(words=0.3))[0], tmp_path, quiet=True)
    gone_on = regard.load(tmp_path).model.state_dict()
    assert all(torch.equal(whole[name], gone_on[name]) for name in whole)


def test_a_training_may_begin_with_another_run(run):
    experiment, _ = tasks.experiment("retrieve", config(init_from=str(run[0])))
    begun, there = experiment.model.state_dict(), regard.load(run[0]).model.state_dict()
    assert all(torch.equal(begun[name], there[name]) for name in there)
    with pytest.raises(RefusedError, match=r"was trained with data\.height=32, and now it is 16"):
        tasks.experiment("retrieve", config(dataclasses.replace(DATA, height=16), init_from=str(run[0])))


@pytest.mark.parametrize("reranking", [0, 2])
@pytest.mark.parametrize("reader", ["transformer", "recurrent", "convolution"])
def test_everything_learns(table, reranking, reader):
    data = dataclasses.replace(DATA, train=str(table), valid=str(table), augment="affine+light", channels=1)
    model = dataclasses.replace(MODEL, reranking_layers=reranking, text_encoder=reader)
    experiment, report = tasks.experiment("retrieve", config(data, model, words=0.5))
    assert report.encoded == 5
    assert not experiment.extra_files
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = experiment.loss(experiment.model.train(), experiment.train.batch(0), Progress(0, 2))
    assert loss.total.dtype == torch.float32
    assert ("closer_nll" in loss.parts) == (reranking > 0)
    loss.total.backward()
    idle = [name for name, parameter in experiment.model.named_parameters() if parameter.grad is None]
    assert not idle
    experiment.train.close()


def test_what_belongs_together_on_another_line_is_no_wrong_answer():
    known = PositivePairs.of([(0, 0), (0, 1), (1, 2)])
    given = torch.tensor([[0, 0], [0, 1], [1, 2]])
    assert known.match(given).tolist() == [[True, True, False], [True, True, False], [False, False, True]]


def test_the_loss_leaves_those_out(table):
    data = dataclasses.replace(DATA, train=str(table), valid=str(table))
    experiment, _ = tasks.experiment("retrieve", config(data, dataclasses.replace(MODEL, reranking_layers=0)))
    batch, model = experiment.train.batch(0), experiment.model.eval()
    logits = model(batch.source, batch.target)
    match = torch.eye(5, dtype=torch.bool)
    pictures = batch.labels.data[:, 0]
    match |= (pictures[:, None] == pictures) & (pictures[:, None] == 3)
    against = logits.masked_fill(match & ~torch.eye(5, dtype=torch.bool), -torch.inf)
    right = (against.log_softmax(1).diagonal() + against.log_softmax(0).diagonal()).sum() / -2
    torch.testing.assert_close(experiment.loss(model, batch, Progress(0, 1)).total, right)
    experiment.train.close()


def test_a_batch_without_texts_teaches_nothing(run):
    experiment = run[1]
    batch = experiment.train.batch(0)._replace(target=None)
    with pytest.raises(ValueError, match="a batch needs texts to learn from, and this one has only pictures"):
        experiment.loss(experiment.model, batch, Progress(0, 1))


def test_words_are_left_out_and_the_rest_moves_together():
    torch.manual_seed(0)
    texts = pad([[5, 6, 7, 8, 2], [9, 2]])
    assert drop_tokens(texts, 0.0) is texts
    thin = drop_tokens(texts, 0.5)
    kept = [row[keep].tolist() for row, keep in zip(thin.data, thin.keep, strict=True)]
    assert all(row[-1] == 2 for row in kept)
    assert kept[0] == [token for token in [5, 6, 7, 8, 2] if token in kept[0]]
    assert len(kept[0]) < 5
    assert not (thin.keep[:, 1:] & ~thin.keep[:, :-1]).any()


def test_pictures_that_are_missing_are_listed_before_anything_is_trained(table):
    table.write_text(table.read_text() + "gone.png\tnothing\n")
    data = dataclasses.replace(DATA, train=str(table), valid=str(table))
    with pytest.raises(DataError, match=rf"2 of 12 pictures are missing: {re.escape(str(table))}:6 gone\.png"):
        tasks.experiment("retrieve", config(data))


def test_what_is_no_picture_is_named_with_its_line(table):
    (table.parent / "3.png").write_text("no picture")
    data = dataclasses.replace(DATA, train=str(table), valid=str(table))
    with pytest.raises(DataError, match=r"texts\.tsv:4: .*3\.png is no PNG, JPEG or WebP picture"):
        tasks.experiment("retrieve", config(data))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"model": dataclasses.replace(MODEL, attention=AttentionPart("none"))},
            "retrieve needs an attention, which pools each",
        ),
        ({"data": dataclasses.replace(DATA, channels=2)}, r"data\.channels needs to be 3, in colour, or 1, grey, got 2"),
    ],
)
def test_what_cannot_be_built_is_refused_before_it_is(changes, text):
    buildable(config())
    with pytest.raises(ConfigError, match=text):
        buildable(config(**changes))


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {"label_smoothing": 0.1},
            r"train\.label_smoothing=0\.1 would change nothing: it needs a task that chooses among words or labels",
        ),
        (
            {"data": dataclasses.replace(DATA, bleu_tokenizer="zh")},
            r"data\.bleu_tokenizer=zh would change nothing: it needs a task whose models",
        ),
        (
            {"model": dataclasses.replace(MODEL, reranking_layers=0, rerank_top_k=5)},
            r"model\.rerank_top_k=5 would change nothing: it needs cross-attention layers over a picture and a text",
        ),
        (
            {"model": dataclasses.replace(MODEL, text_encoder="recurrent", heads=2, reranking_layers=0)},
            r"model\.heads=2 would change nothing",
        ),
    ],
)
def test_what_would_change_nothing_is_refused(changes, text):
    heeded([config(model=dataclasses.replace(MODEL, heads=2, positions="none"))], Config())
    with pytest.raises(ConfigError, match=text):
        heeded([config(**changes)], Config())


def test_a_figure_that_is_none_is_refused():
    with pytest.raises(ConfigError, match=r"train\.monitor needs to be one of recall, text_recall1, .*, got 'loss'"):
        tasks.experiment("retrieve", config(monitor="loss"))
