import dataclasses
import re

import pytest
import torch

import regard
from regard import tasks
from regard.config import AttentionPart, Train, read
from regard.data.image.writing import png
from regard.data.table import DataError
from regard.errors import ConfigError, RefusedError
from regard.losses.types import Progress
from regard.tasks._validate import buildable, heeded
from regard.tasks.classify import experiment as classifying
from regard.tasks.classify.config import ClassifyData, ClassifyModel
from regard.tasks.classify.glimpse_model import Glimpses
from regard.tasks.classify.glimpse_predictor import Glimpser
from regard.tasks.classify.loss import reinforce_loss
from regard.tasks.classify.model import Labels, Pooled
from regard.tasks.classify.predictor import Classifier
from regard.tasks.classify.task import Config
from regard.tasks.classify.video_model import Frames
from regard.tasks.classify.video_predictor import Watcher
from regard.training.loop import train

DATA = ClassifyData(height=16, width=16, samples=40, batch_pixels=1 << 12)
MODEL = ClassifyModel(hidden_size=16, depth=1, stride=8)
QUICK = Train(max_steps=4, evaluate_every=2, checkpoint_every=2, learning_rate=1e-2, monitor="accuracy")
GLIMPSES = dataclasses.replace(MODEL, glimpses=3, glimpse_size=4, episodes=2, eval_episodes=2)


def config(data=DATA, model=MODEL, **train) -> Config:
    return Config(data=data, model=model, train=dataclasses.replace(QUICK, **train))


def changed(part, **settings):
    return dataclasses.replace(part, **settings)


KINDS = {
    "queries": (config(), Labels, Classifier),
    "pooled": (config(model=changed(MODEL, attention=AttentionPart("none"))), Pooled, Classifier),
    "vit": (config(model=changed(MODEL, encoder="vit")), Labels, Classifier),
    "glimpses": (config(model=GLIMPSES), Glimpses, Glimpser),
    "clips": (config(changed(DATA, clips=True)), Frames, Watcher),
    "one": (config(changed(DATA, multi_label=False)), Labels, Classifier),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_trained_saved_opened_and_asked(kind, tmp_path):
    told, network, seeing = KINDS[kind]
    buildable(told)
    experiment, report = tasks.experiment("classify", told)
    assert (report.read, len(experiment.valid)) == (36, 4)
    assert isinstance(experiment.model, network)
    assert experiment.codec.several == (kind in ("queries", "pooled", "vit"))
    train(experiment, tmp_path / "run", quiet=True)
    model = regard.load(tmp_path / "run")
    assert type(model) is seeing
    sample = "1" if kind == "clips" else "1.png"
    [answer] = model.predict([str(tmp_path / "run/samples" / sample)])
    assert set(answer.target) <= set(experiment.codec.labels)
    figures = model.evaluate(classifying.read(told.data, f"{tmp_path}/run/samples/labels.tsv"))
    assert {"loss", "accuracy"} <= set(figures)


def test_glimpses_cost_the_mean_over_copies_of_a_picture():
    experiment, _ = tasks.experiment("classify", config(model=GLIMPSES))
    batch = experiment.train.batch(0)
    loss = experiment.loss(experiment.model.train(), batch, Progress(0, 1))
    assert loss.tokens == len(batch.records)
    assert 0 <= float(loss.parts["right"]) <= loss.tokens
    experiment.model.eval()  # every copy is looked at alike, so that the mean is that of one
    mean = experiment.loss(experiment.model, batch, Progress(0, 1)).total
    torch.testing.assert_close(mean, reinforce_loss(experiment.model(batch.source), batch.labels.data[:, 0]).total)
    experiment.train.close()


def test_what_can_be_better_depends_on_what_is_measured():
    for told, known in (
        (config(), "loss, accuracy, f1, looks"),
        (config(changed(DATA, multi_label=False)), "loss, accuracy, looks"),
        (config(model=GLIMPSES), "loss, accuracy"),
    ):
        with pytest.raises(ConfigError, match=f"train.monitor needs to be one of {known}, got 'bleu'"):
            tasks.experiment("classify", changed(told, train=changed(QUICK, monitor="bleu")))


def test_glimpses_are_for_pictures_that_have_one_label():
    with pytest.raises(
        ConfigError, match=r"model.glimpses=3 is for pictures that have one label, not for clips \(data.clips\)"
    ):
        buildable(config(changed(DATA, clips=True), GLIMPSES))
    with pytest.raises(ConfigError, match=r"one label, not for several labels a picture \(data.multi_label\)"):
        buildable(config(changed(DATA, multi_label=True), GLIMPSES))
    with pytest.raises(ConfigError, match="glimpses need a deviation above 0, got 0"):
        buildable(config(model=changed(GLIMPSES, location_std=0.0)))


@pytest.mark.parametrize(
    ("setting", "needs"),
    [
        (
            ["model.glimpse_size=4"],
            r"model.glimpse_size=4 would change nothing: it needs a model that takes glimpses at a picture \(model.gl",
        ),
        (
            ["model.glimpses=3", "model.encoder=densenet"],
            "model.encoder=densenet would change nothing: it needs a model that reads the whole",
        ),
        (
            ["model.glimpses=3", "model.attention=none"],
            "model.attention.name=none would change nothing: it needs a model that",
        ),
        (["model.glimpses=3", "model.visual_attention=channel"], "model.visual_attention=channel would change nothing"),
        (["data.max_frames=9"], r"data.max_frames=9 would change nothing: it needs clips \(data.clips=true\)"),
    ],
)
def test_settings_that_change_nothing_are_refused(setting, needs):
    with pytest.raises(ConfigError, match=needs):
        heeded([read(Config, overrides=setting)], Config())


def table(folder, rows):
    folder.mkdir(exist_ok=True)
    for number, (name, _) in enumerate(rows):
        (folder / name).write_bytes(png(torch.full((3, 12, 10 + number), number / 10)))
    (folder / "t.tsv").write_text("".join(f"{name}\t{label}\n" for name, label in rows))
    return str(folder / "t.tsv")


def test_a_table_has_one_label_a_picture_unless_it_is_told_otherwise(tmp_path):
    path = table(tmp_path, [("1.png", "cat, dog"), ("2.png", "ant"), ("3.png", "ant")])
    told = config(changed(DATA, train=path, valid=path))
    experiment, _ = tasks.experiment("classify", told)
    assert experiment.codec.labels == ("ant", "cat, dog")
    assert not experiment.extra_files
    experiment.train.close()
    experiment, _ = tasks.experiment("classify", config(changed(DATA, train=path, valid=path, multi_label=True)))
    assert experiment.codec.labels == ("ant", "cat", "dog")
    experiment.train.close()


def test_bad_pictures_of_both_tables_are_told_before_anything_is_trained(tmp_path):
    rows = [("1.png", "cat"), ("2.png", "ant"), ("3.png", "ant")]
    good, bad = table(tmp_path / "good", rows), table(tmp_path / "bad", rows)
    for name in ("1.png", "3.png"):
        (tmp_path / "bad" / name).write_text("no picture at all")
    with pytest.raises(DataError) as error:
        tasks.experiment("classify", config(changed(DATA, train=good, valid=bad)))
    for said in ("2 of 3 pictures cannot be read: ", "bad/t.tsv:1: ", "1.png is no PNG", "bad/t.tsv:3: "):
        assert said in str(error.value)


def test_a_run_goes_on_from_another_and_resumes(tmp_path):
    first = tmp_path / "first"
    train(tasks.experiment("classify", config())[0], first, quiet=True)
    again = config(init_from=str(first))
    experiment, _ = tasks.experiment("classify", again, tmp_path / "second")
    assert torch.equal(experiment.model.bias, regard.load(first).model.bias)
    train(experiment, tmp_path / "second", quiet=True)
    with pytest.raises(RefusedError, match=re.escape("data.multi_label=None, and now it is False")):
        tasks.experiment("classify", config(changed(DATA, multi_label=False), init_from=str(first)))


def test_a_table_that_has_no_label_on_any_line_is_refused_where_pictures_may_have_none(tmp_path):
    path, data = tmp_path / "t.tsv", changed(DATA, multi_label=True)
    path.write_text("1.png\n2.png\n")
    said = f"{path} has no label on any of its 2 lines, and labels are in column 2; put a tab between the picture and its labels"
    with pytest.raises(DataError, match=re.escape(said)):
        classifying.read(data, str(path))
    path.write_text("1.png\n2.png\tstar, ring\n")
    assert [record.target for record in classifying.read(data, str(path))] == [None, "star, ring"]
