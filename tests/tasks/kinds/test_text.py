import dataclasses

import pytest
import torch

from regard import registry, tasks
from regard.config import AttentionPart, Data, Model, Train
from regard.data.table import DataError, Record
from regard.errors import ConfigError
from regard.losses.types import Progress
from regard.tasks import Task, TextConfig

TEXT = [name for name in registry.names("tasks") if issubclass(tasks.find(name).Config, TextConfig)]
SMALL = {"model": Model(hidden_size=16), "train": Train(max_steps=2)}


def small(name: str, **data) -> TextConfig:
    usual = tasks.find(name).Config()
    return dataclasses.replace(usual, data=dataclasses.replace(usual.data, samples=60, **data), **SMALL)


@pytest.mark.parametrize("name", TEXT)
def test_every_task_has_the_face_of_one(name):
    task = tasks.find(name)
    assert isinstance(task, Task)
    assert isinstance(task.Config(), TextConfig)


@pytest.mark.parametrize("name", TEXT)
def test_every_task_trains_on_what_it_draws_itself(name):
    experiment, report = tasks.experiment(name, small(name))
    assert report.encoded == report.read > 0
    loss = experiment.loss(experiment.model, experiment.train.batch(0), Progress(0, 2))
    loss.total.backward()
    assert all(parameter.grad is not None for parameter in experiment.model.parameters())
    figures = experiment.evaluate(experiment.model)
    assert figures["perplexity"] == pytest.approx(torch.tensor(figures["loss"]).exp().item(), rel=1e-4)


@pytest.mark.parametrize("baseline", ["none", "moving_average", "learned"])
def test_hard_attention_is_taught_by_what_its_looks_lead_to(baseline):
    config = small("reverse")
    model = dataclasses.replace(config.model, attention=AttentionPart("additive+hard"))
    config = dataclasses.replace(config, model=model, train=Train(max_steps=2, reinforce_baseline=baseline))
    experiment, _ = tasks.experiment("reverse", config)
    loss = experiment.loss(experiment.model.train(), experiment.train.batch(0), Progress(0, 2))
    assert {"nll", "attention_entropy", "baseline_error"} == set(loss.parts)
    loss.total.backward()
    assert all(parameter.grad is not None for parameter in experiment.model.parameters())
    assert bool(experiment.loss_module.state_dict()) == (baseline != "none")


def test_coverage_without_an_attention_is_refused_before_anything_is_trained():
    config = small("reverse")
    model = dataclasses.replace(config.model, attention=AttentionPart("none"))
    with pytest.raises(
        ValueError, match=r"train\.coverage_weight needs an attention over the source, and this model has none"
    ):
        tasks.experiment("reverse", dataclasses.replace(config, model=model, train=Train(coverage_weight=1.0)))


def test_equal_seeds_begin_with_equal_weights_and_others_do_not():
    def first(seed):
        config = dataclasses.replace(small("reverse"), train=Train(max_steps=2, seed=seed))
        return next(tasks.experiment("reverse", config)[0].model.parameters())

    assert torch.equal(first(1), first(1))
    assert not torch.equal(first(1), first(2))


@pytest.mark.parametrize("name", TEXT)
def test_what_is_prepared_and_finished_again_is_the_target_as_it_was(name):
    task = tasks.find(name)
    training, validation = task.synthesise(60, seed=0)
    assert not {record.source for record in training} & {record.source for record in validation}
    for record in training:
        assert task.finish(task.prepare(record).target) == record.target


@pytest.mark.parametrize("name", TEXT)
def test_a_perfect_output_gets_the_best_figures(name):
    task = tasks.find(name)
    records, _ = task.synthesise(40, seed=0)
    targets, sources = [record.target for record in records], [record.source for record in records]
    figures = task.measure(targets, targets, sources, task.Config())
    assert figures["exact"].value == 100
    assert figures.get("bleu", figures["exact"]).value == pytest.approx(100)


def test_files_are_read_by_the_columns_that_are_named(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{n}\tword{n} here\tda Wort{n}\n" for n in range(30)), encoding="utf-8")
    config = small("translate", train=str(path), valid=str(path), source="2", target="3")
    experiment, report = tasks.experiment("translate", config)
    assert report.encoded == 30
    assert experiment.valid[0].record == Record("word0 here", "da Wort0", f"{path}:1")


def test_links_stay_with_their_lines_where_some_are_held_out(tmp_path):
    table, links = tmp_path / "pairs.tsv", tmp_path / "pairs.links"
    table.write_text("".join(f"{word} x\t{word} y\n" for word in "abcdef"), encoding="utf-8")
    links.write_text("0-0\n0-1\n1-0\n1-1\n0-0 1-1\n\n", encoding="utf-8")
    experiment, _ = tasks.experiment("translate", small("translate", train=str(table), alignments=str(links)))
    [out] = experiment.valid
    given = [((0, 0),), ((0, 1),), ((1, 0),), ((1, 1),), ((0, 0), (1, 1)), ()]
    learned = {example.record.source: example.record.links for example in experiment.train.examples}
    assert learned == {f"{w} x": each for w, each in zip("abcdef", given, strict=True) if f"{w} x" != out.record.source}


def test_nothing_left_to_train_on_is_an_error_that_says_what_to_do(tmp_path):
    path = tmp_path / "long.tsv"
    path.write_text("a b c d e f\tg h i j k l\n" * 3, encoding="utf-8")
    with pytest.raises(DataError, match=r"too little is left: 0 of 3 records.*data\.over_long=truncate keep more"):
        tasks.experiment("translate", small("translate", train=str(path), valid=str(path), max_source_length=3))


def test_the_two_sides_may_be_cut_into_tokens_differently():
    experiment, _ = tasks.experiment("pronounce", small("pronounce"))
    assert (experiment.codec.source.kind, experiment.codec.target.kind) == ("characters", "words")


@pytest.mark.parametrize("joint", [False, True])
def test_a_model_that_points_is_told_what_it_copies(joint):
    config = dataclasses.replace(
        small("reverse", joint_vocab=joint), model=Model(hidden_size=16, attention=AttentionPart("pointer"))
    )
    experiment, _ = tasks.experiment("reverse", config)
    codec, table = experiment.codec, experiment.model.decoder.outcome.copying.counterparts
    if joint:
        assert table is None
    else:
        assert table.tolist() == codec.counterparts()
        assert codec.target.decode(table[codec.source.encode("a b c")].tolist()) == "a b c"


def test_a_target_may_be_missing_only_where_nothing_is_learned():
    assert Data().target == "2"
    assert tasks.find("inflect").prepare(Record("Katze|N;PL", None, "input:1")).source == "K a t z e _N _PL"


@pytest.mark.parametrize(("better", "upwards"), [("loss", False), ("exact", True), ("cer", False)])
def test_a_measure_of_the_task_may_decide_which_model_is_kept(better, upwards):
    config = small("inflect")
    config = dataclasses.replace(config, train=dataclasses.replace(config.train, monitor=better))
    experiment, _ = tasks.experiment("inflect", config)
    figures = experiment.evaluate(experiment.model.eval())
    assert experiment.higher_is_better is upwards
    assert experiment.monitored_value(figures) == (-figures[better] if upwards else figures[better])
    assert ("exact" in figures) is (better != "loss")


def test_a_measure_that_the_task_does_not_know_is_refused_before_anything_is_trained():
    config = small("inflect")
    with pytest.raises(ConfigError, match=r"train\.monitor needs to be one of loss, perplexity, exact, cer, got 'bleu'"):
        tasks.experiment("inflect", dataclasses.replace(config, train=Train(monitor="bleu")))


def test_rows_are_packed_where_that_is_asked_for():
    config = small("reverse")
    model = Model(
        encoder="transformer",
        decoder="transformer",
        attention=AttentionPart("transformer", heads=2),
        hidden_size=16,
        heads=2,
    )
    config = dataclasses.replace(config, model=model, train=Train(max_steps=2, packing_length=32))
    experiment, _ = tasks.experiment("reverse", config)
    batch = experiment.train.batch(0)
    assert batch.source.data.shape[1] == batch.target.data.shape[1] == 32
    assert int(batch.source.documents.max()) > 1
    loss = experiment.loss(experiment.model, batch, Progress(0, 2))
    loss.total.backward()
    assert all(parameter.grad is not None for parameter in experiment.model.parameters())
    assert experiment.evaluate(experiment.model)["loss"] > 0


@pytest.mark.parametrize(
    ("model", "train", "told"),
    [
        (
            Model(hidden_size=16),
            {},
            r"train\.packing_length needs a transformer encoder and decoder, got a recurrent encoder",
        ),
        (Model(hidden_size=16), {"sequence_loss": "minimum_risk"}, r"train\.sequence_loss=minimum_risk takes a row for one"),
    ],
)
def test_what_cannot_be_packed_is_refused_before_data_is_read(model, train, told):
    config = dataclasses.replace(small("reverse"), model=model, train=Train(packing_length=32, **train))
    config = dataclasses.replace(config, data=dataclasses.replace(config.data, train="nowhere.tsv"))
    with pytest.raises(ConfigError, match=told):
        tasks.experiment("reverse", config)
