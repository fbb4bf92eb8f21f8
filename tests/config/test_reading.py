import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from regard import config
from regard.config import AttentionPart, ConfigError, Data, Dropout, Model, Train
from regard.tasks.translate import Config


@dataclass(frozen=True)
class Task:
    dropout: Dropout = field(default_factory=Dropout)
    data: Data = field(default_factory=Data)
    model: Model = field(default_factory=Model)
    train: Train = field(default_factory=Train)


def test_without_a_word_everything_has_its_default():
    assert config.read(Task) == Task()


@dataclass(frozen=True)
class Slow(Task):
    train: Train = field(default_factory=lambda: Train(rate=0.125, smoothing=0.5))


def test_one_setting_leaves_the_other_defaults_of_the_task_alone():
    assert config.read(Slow, overrides=["train.seed=7"]).train == Train(rate=0.125, smoothing=0.5, seed=7)


def test_later_sources_win_and_overrides_win_over_all(tmp_path):
    path = tmp_path / "配置 😀.toml"
    path.write_text("[train]\nrate = 0.5\nseed = 3\n", encoding="utf-8")
    found = config.read(Task, path, {"train": {"seed": 4}}, overrides=["train.rate=0.25", "data.train=a=b.tsv"])
    assert (found.train.rate, found.train.seed, found.data.train) == (0.25, 4, "a=b.tsv")


@pytest.mark.parametrize(
    ("text", "expected"), [("3", 3), ("0.5", None), ("many", None)], ids=["a number", "half a step", "a word"]
)
def test_text_becomes_the_kind_that_the_setting_has(text, expected):
    if expected is not None:
        assert config.read(Task, overrides=[f"train.max_steps={text}"]).train.max_steps == expected
    else:
        with pytest.raises(ConfigError, match=rf"^train\.max_steps: .*, got '{re.escape(text)}'"):
            config.read(Task, overrides=[f"train.max_steps={text}"])


def test_a_bare_name_is_shorthand_for_the_part_that_has_a_name():
    assert config.read(Task, overrides=["model.attention=sparsemax"]).model.attention == AttentionPart("sparsemax")


@pytest.mark.parametrize("order", [1, -1])
def test_the_shorthand_and_the_table_go_together_in_any_order(order):
    overrides = ["model.attention=transformer", "model.attention.heads=2"][::order]
    assert config.read(Task, overrides=overrides).model.attention == AttentionPart("transformer", heads=2)


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("train.rat=1", "there is no setting train.rat; did you mean train.rate?"),
        ("trian.rate=1", "there is no setting trian; did you mean train?"),
        ("model.attention.head=2", "there is no setting model.attention.head; did you mean model.attention.heads?"),
        ("model.zzz=2", "there is no setting model.zzz; there are encoder, decoder"),
    ],
)
def test_a_setting_that_does_not_exist_names_the_nearest(override, hint):
    with pytest.raises(ConfigError, match=re.escape(hint)):
        config.read(Task, overrides=[override])


def test_a_choice_that_is_none_of_the_choices_is_refused():
    with pytest.raises(ConfigError, match=r"^model\.cell: .*'lstm'.*, got 'gated'"):
        config.read(Task, overrides=["model.cell=gated"])


@pytest.mark.parametrize("override", ["train.rate", "=3"])
def test_an_override_has_a_path_and_a_value(override):
    with pytest.raises(ConfigError, match=re.escape(f"{override!r} needs the form part.key=value")):
        config.read(Task, overrides=[override])


def test_a_file_that_is_not_toml_is_named(tmp_path):
    path = tmp_path / "broken.toml"
    path.write_text("rate =", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"broken\.toml is not a TOML file"):
        config.read(Task, path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"broken\.toml is not a TOML file"):
        config.read(Task, path)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match=r"nowhere\.toml cannot be read: No such file"):
        config.read(Task, Path("nowhere.toml"))


def test_what_is_written_reads_back_as_it_was():
    settings = Task(train=Train(rate=0.3, ema=0.999), data=Data(train="数据.tsv"))
    assert config.check(Task, config.parse_text(config.write(settings), Path("config.toml"))) == settings


def test_every_setting_has_a_path():
    paths = config.everything(Task)
    assert {"train.rate", "model.attention.name", "data.train"} <= set(paths)
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("train.max_steps=-3", "train.max_steps needs to be 1 or more, got -3"),
        ("train.rate=0", "train.rate needs to be above 0, got 0.0"),
        ("train.rate=nan", "train.rate needs to be above 0, got nan"),
        ("train.warmup=-1", "train.warmup needs to be 0 or more, got -1"),
        ("model.size=0", "model.size needs to be 1 or more, got 0"),
        ("model.kernel=0", "model.kernel needs to be 1 or more, got 0"),
        ("model.attention.heads=0", "model.attention.heads needs to be 1 or more, got 0"),
        ("dropout.embedding=1.5", "dropout.embedding needs to be a share below 1, got 1.5"),
        ("train.smoothing=1", "train.smoothing needs to be a share below 1, got 1.0"),
        ("train.soft_looks=1", "train.soft_looks needs to be a share below 1, got 1.0"),
    ],
)
def test_a_number_that_no_run_could_make_sense_of_is_refused(override, told):
    with pytest.raises(ConfigError, match=re.escape(told)):
        config.read(Task, overrides=[override])


def test_no_dropout_at_all_is_fine():
    assert config.read(Task, overrides=["dropout.embedding=0", "train.max_minutes=0.5"]).dropout.embedding == 0


def test_a_setting_that_was_removed_is_refused_with_what_to_do_and_left_out_of_a_run(tmp_path):
    told = "there is no setting search.compile any more: `regard predict --compile` compiles a search; remove the line, or"
    for compile in (True, False):
        with pytest.raises(ConfigError, match=told):
            config.check(Config, {"search": {"compile": compile}})
    table = {"task": "translate", "search": {"beam": 3, "compile": True}}
    assert config.without_removed(table) == {"task": "translate", "search": {"beam": 3}}
    assert table["search"]["compile"]
    assert config.without_removed({"search": "nonsense"}) == {"search": "nonsense"}
