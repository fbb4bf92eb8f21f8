import os
import re
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from regard import config
from regard.config import AttentionPart, Data, Dropout, Model, Train
from regard.errors import ConfigError


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
    train: Train = field(default_factory=lambda: Train(learning_rate=0.125, label_smoothing=0.5))


def test_one_setting_leaves_the_other_defaults_of_the_task_alone():
    assert config.read(Slow, overrides=["train.seed=7"]).train == Train(learning_rate=0.125, label_smoothing=0.5, seed=7)


def test_later_sources_win_and_overrides_win_over_all(tmp_path):
    path = tmp_path / "配置 😀.toml"
    path.write_text("[train]\nlearning_rate = 0.5\nseed = 3\n", encoding="utf-8")
    found = config.read(Task, path, {"train": {"seed": 4}}, overrides=["train.learning_rate=0.25", "data.train=a=b.tsv"])
    assert (found.train.learning_rate, found.train.seed, found.data.train) == (0.25, 4, "a=b.tsv")


@pytest.mark.parametrize(
    ("text", "expected"), [("3", 3), ("0.5", None), ("many", None)], ids=["a number", "half a step", "a word"]
)
def test_text_becomes_the_kind_that_the_setting_has(text, expected):
    if expected is not None:
        assert config.read(Task, overrides=[f"train.max_steps={text}"]).train.max_steps == expected
    else:
        with pytest.raises(ConfigError, match=rf"^train\.max_steps needs to be a whole number, got '{re.escape(text)}'"):
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
        ("train.learning_rat=1", "there is no setting train.learning_rat; did you mean train.learning_rate?"),
        ("trian.rate=1", "there is no setting trian; did you mean train?"),
        ("model.attention.head=2", "there is no setting model.attention.head; did you mean model.attention.heads?"),
        ("model.zzz=2", "there is no setting model.zzz; there are encoder, decoder"),
    ],
)
def test_a_setting_that_does_not_exist_names_the_nearest(override, hint):
    with pytest.raises(ConfigError, match=re.escape(hint)):
        config.read(Task, overrides=[override])


def test_a_choice_that_is_none_of_the_choices_is_refused():
    with pytest.raises(ConfigError, match=r"^model\.cell needs to be tanh, lstm or gru, got 'gated'"):
        config.read(Task, overrides=["model.cell=gated"])


@pytest.mark.parametrize("override", ["train.learning_rate", "=3"])
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
    settings = Task(train=Train(learning_rate=0.3, ema_decay=0.999), data=Data(train="数据.tsv"))
    assert config.check(Task, config.parse_text(config.write(settings), Path("config.toml"))) == settings


def test_every_setting_has_a_path():
    paths = config.everything(Task)
    assert {"train.learning_rate", "model.attention.name", "data.train"} <= set(paths)
    assert len(paths) == len(set(paths))


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("train.max_steps=-3", "train.max_steps needs to be 1 or more, got -3"),
        ("train.learning_rate=0", "train.learning_rate needs to be above 0, got 0.0"),
        ("train.max_epochs=0", "train.max_epochs needs to be above 0, got 0.0"),
        ("train.max_epochs=-1", "train.max_epochs needs to be above 0, got -1.0"),
        ("train.learning_rate=nan", "train.learning_rate needs to be above 0, got nan"),
        ("train.warmup_steps=-1", "train.warmup_steps needs to be 0 or more, got -1"),
        ("model.hidden_size=0", "model.hidden_size needs to be 1 or more, got 0"),
        ("model.kernel_size=0", "model.kernel_size needs to be 1 or more, got 0"),
        ("model.attention.heads=0", "model.attention.heads needs to be 1 or more, got 0"),
        ("dropout.embedding=1.5", "dropout.embedding needs to be a share below 1, got 1.5"),
        ("train.label_smoothing=1", "train.label_smoothing needs to be a share below 1, got 1.0"),
        ("train.soft_attention_rate=1", "train.soft_attention_rate needs to be a share below 1, got 1.0"),
        ("model.layers=1000000", "model.layers needs to be 256 or less, got 1000000"),
        ("model.hidden_size=65537", "model.hidden_size needs to be 65,536 or less, got 65537"),
        ("model.heads=1025", "model.heads needs to be 1,024 or less, got 1025"),
        ("model.attention.heads=1025", "model.attention.heads needs to be 1,024 or less, got 1025"),
        ("data.vocab_size=16777217", "data.vocab_size needs to be 16,777,216 or less, got 16777217"),
        ("data.max_source_length=1048577", "data.max_source_length needs to be 1,048,576 or less, got 1048577"),
        ("train.seed=9223372036854775808", "train.seed needs to be 9,223,372,036,854,775,807 or less, got 92"),
        (
            "train.max_steps=1" + "0" * 400,
            "train.max_steps needs to be 9,223,372,036,854,775,807 or less, got a number of 1,329 bits",
        ),
    ],
)
def test_a_number_that_no_run_could_make_sense_of_is_refused(override, told):
    with pytest.raises(ConfigError, match=re.escape(told)):
        config.read(Task, overrides=[override])


def test_no_dropout_at_all_is_fine():
    assert config.read(Task, overrides=["dropout.embedding=0", "train.max_minutes=0.5"]).dropout.embedding == 0


@pytest.mark.parametrize("path", ["data.train", "train.record_example", "model.attention.name"])
def test_a_text_that_a_file_of_toml_could_not_hold_is_refused(path):
    told = (
        f"{path} needs to be UTF-8, since config.toml has it in, got 'x\\udcff'; give the file another name, or link to it"
    )
    with pytest.raises(ConfigError, match=re.escape(told)):
        config.read(Task, overrides=[f"{path}=x\udcff"])


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a = " + "9" * 60_000, "it has a date or a number that is too large"),
        ("a = " + "[" * 60_000, "its lists or tables are nested too deep"),
        ("a = " + "{a=" * 20_000, "its lists or tables are nested too deep"),
        ("a = 1e400000\n[data]\ntrain = 7", "data.train|no setting a"),
        ("x" * (1 << 16) + " = 1", "has more than 65,536 bytes, the most of a TOML file"),
        ("k" * 60_000 + " = 1", r"there is no setting k+\.\.\.; there are"),
        ("a." * 200 + "a = 1", "there is no setting a"),
        ("a." * 30_000 + "a = 1", "it has a line with more than 200 dots"),
        (
            "[train]\nseed = 9223372036854775808",
            "train.seed needs to be 9,223,372,036,854,775,807 or less, got 9223372036854775808",
        ),
        (
            "[train]\nseed = 0x" + "f" * 9000,
            "train.seed needs to be 9,223,372,036,854,775,807 or less, got a number of 36,000 bits",
        ),
        ("[train]\ndevice = [[[]]]", "train.device needs to be text, got a list of 1"),
        ("[train]\nlearning_rate = '" + "z" * 9000 + "'", r"train.learning_rate needs to be a number, got 'z{80}'\.\.\."),
        ('"a\\nb\\u001b[31m" = 1', "there is no setting a b .31m;"),
        ("a = 1979-99-99", "is not a TOML file"),
    ],
    ids=lambda each: each[:20],
)
def test_what_no_config_holds_is_refused_in_a_short_sentence(tmp_path, text, fault):
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=fault) as raised:
        config.read(Task, path)
    assert len(str(raised.value)) < 2000
    assert str(raised.value).isprintable()


def test_settings_are_read_from_a_pipe_and_never_from_a_device(tmp_path, monkeypatch):
    monkeypatch.setattr("regard.inputs.WAIT", 0.2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="pipe cannot be read: it is a pipe that nobody has written to"):
        config.parse(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="/dev/zero cannot be read: it is a device"):
        config.parse(Path("/dev/zero"))
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        config.parse(tmp_path)
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=("a = 1",))
    writer.start()
    assert config.parse(tmp_path / "pipe") == {"a": 1}
    writer.join()
