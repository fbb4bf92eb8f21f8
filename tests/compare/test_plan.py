import os

import pytest

from regard import config as configuration
from regard.compare.plan import Planned, check_data, check_folders, plan
from regard.compare.variations import Conditional, Varied
from regard.errors import ConfigError, DataError
from regard.tasks.detect.task import Config as Detect
from regard.tasks.reverse import Config

ATTENTION = Varied("model.attention", ("none", "additive"))
DECODER = Varied("model.decoder", ("recurrent", "transformer"))
TRANSFORMER = Conditional((Varied("model.decoder", ("transformer",)),), ("model.encoder=transformer", "model.heads=8"))


def planned(varied, withs=(), seeds=1, options=()):
    def read(extra):
        return configuration.read(Config, overrides=[*options, *extra])

    return plan(read, varied, withs, seeds, Config())


def test_every_combination_is_trained_with_every_seed():
    found = planned([ATTENTION, DECODER], [TRANSFORMER], seeds=2)
    assert [each.folder for each in found[:5]] == [
        "none,recurrent-0",
        "none,recurrent-1",
        "none,transformer-0",
        "none,transformer-1",
        "additive,recurrent-0",
    ]
    assert len(found) == 8
    assert str(found[1]) == "none · recurrent, seed 1"
    assert {each.config.train.seed for each in found} == {0, 1}


def test_settings_go_with_their_value_and_with_no_other():
    recurrent, transformer = planned([DECODER], [TRANSFORMER])
    assert (recurrent.config.model.encoder, recurrent.config.model.heads) == ("recurrent", 4)
    assert (transformer.config.model.encoder, transformer.config.model.heads) == ("transformer", 8)


def test_what_cannot_be_built_stays_in_the_plan_with_the_reason():
    heads = TRANSFORMER._replace(settings=("model.heads=7",))
    recurrent, transformer = planned([DECODER], [heads])
    assert recurrent.refused is None
    assert "needs a size that its heads divide, got size 128 and 7 heads" in transformer.refused


def test_where_nothing_can_be_built_the_plan_is_refused():
    with pytest.raises(ConfigError, match=r"none of 1 combinations can be built: .* its heads divide, got size 128 and 7"):
        planned([Varied("model.decoder", ("transformer",))], options=["model.heads=7"])


def test_a_training_that_contradicts_itself_is_one_that_cannot_be_built():
    constant, noam = planned([Varied("train.schedule", ("constant", "noam"))])
    assert constant.refused is None
    assert noam.refused.startswith("train.schedule=noam needs train.warmup_steps of 1 or more")


@pytest.mark.parametrize(
    ("setting", "value", "kind", "told"),
    [
        ("model.attention", "aditive", LookupError, "did you mean 'additive'?"),
        ("model.attention", "dot+additive", ConfigError, "names two of the kind score"),
        ("model.self_attention", "rotarry", LookupError, "did you mean 'rotary'?"),
        ("model.decoder", "recurent", ConfigError, "model.decoder needs to be recurrent"),
        ("model.depth", "3", ConfigError, "there is no setting model.depth"),
    ],
)
def test_names_that_do_not_exist_are_refused_whatever_else_there_is(setting, value, kind, told):
    with pytest.raises(kind) as raised:
        planned(
            [ATTENTION, Varied(setting, (value,))] if setting != "model.attention" else [Varied(setting, ("none", value))]
        )
    assert told in str(raised.value)


def test_a_setting_that_no_combination_heeds_is_refused():
    with pytest.raises(ConfigError, match=r"model.kernel_size=5 would change nothing"):
        planned([DECODER], options=["model.kernel_size=5"])


def test_data_that_is_not_there_is_told_before_anything_trains(tmp_path):
    (tmp_path / "train.tsv").write_text("a\ta\n", encoding="utf-8")
    there = [f"data.train={tmp_path / 'train.tsv'}", f"data.valid={tmp_path / 'train.tsv'}"]
    assert len(planned([ATTENTION], options=there)) == 2
    with pytest.raises(DataError, match=r"test\.tsv"):
        planned([ATTENTION], options=[*there, f"data.test={tmp_path / 'test.tsv'}"])


def test_a_table_of_more_than_two_columns_is_read_as_its_task_reads_it(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"image": "a.png", "labels": ["cat"], "boxes": [[1, 2, 3]]}\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.jsonl:1 box 1 \(cat\) needs four numbers, got \[1, 2, 3\]"):
        check_data(str(tmp_path / "a.jsonl"), Detect())
    check_data(None, Detect())


def test_standard_input_cannot_be_read_for_each_training():
    with pytest.raises(DataError, match="standard input can be read once; name a file"):
        planned([ATTENTION], options=["data.train=-", "data.valid=-"])


def test_a_pipe_cannot_be_read_for_each_training(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match=r"pipe is a pipe, which can be read once; name a file"):
        check_data(f"{tmp_path}/a.tsv+{tmp_path}/pipe", Config())


def test_two_trainings_never_share_a_directory():
    with pytest.raises(ConfigError, match=r"a/b, seed 0 and a:b, seed 0 would both train in a_b-0; compare them in two"):
        check_folders([Planned(("a/b",), 0, None), Planned(("a:b",), 0, None)])
    check_folders([Planned(("additive+hard",), 0, None), Planned(("additive_hard",), 0, None)])
