from dataclasses import replace

import pytest

from regard.config import AttentionPart, ConfigError, Dropout, Model
from regard.models.applies import RULES, buildable, heeded, trainable
from regard.tasks import TextConfig

DEFAULT = TextConfig()
TRANSFORMER = {"encoder": "transformer", "decoder": "transformer"}


def config(attention="additive", heads=4, size=None, dropout=None, **model):
    made = Model(attention=AttentionPart(attention, heads, size), **model)
    return replace(DEFAULT, model=made, dropout=dropout or Dropout())


@pytest.mark.parametrize(
    ("chosen", "path"),
    [
        (config(cell="gru", **TRANSFORMER), "model.cell=gru would change nothing: it needs a recurrent encoder or decoder"),
        (config(bidirectional=False, encoder="transformer"), "model.bidirectional=False"),
        (config(order="bahdanau", **TRANSFORMER), "model.order=bahdanau"),
        (config("none", order="bahdanau"), "model.order=bahdanau"),
        (config(input_feeding=False, order="bahdanau"), "model.input_feeding=False"),
        (config(summary="initial"), "model.summary=initial"),
        (config(heads=4, norm="post"), "model.norm=post"),
        (config(feedforward=64), "model.feedforward=64"),
        (config(positions="learned"), "model.positions=learned"),
        (
            config("additive", heads=8),
            "model.attention.heads=8 would change nothing: it needs an attention that has several",
        ),
        (config("none", size=8), "model.attention.size=8"),
        (config("none", dropout=Dropout(attention=0.5)), "dropout.attention=0.5"),
        (config(dropout=Dropout(variational=True), **TRANSFORMER), "dropout.variational=True"),
    ],
)
def test_a_setting_that_would_change_nothing_is_refused(chosen, path):
    with pytest.raises(ConfigError, match=path):
        heeded([chosen], DEFAULT)


@pytest.mark.parametrize(
    "chosen",
    [
        config(),
        config(cell="gru", encoder="transformer"),
        config(order="bahdanau"),
        config("none", summary="initial"),
        config("transformer", heads=8),
        config("transformer+sparsemax", heads=8, norm="post", **TRANSFORMER),
        config("none", dropout=Dropout(attention=0.5), **TRANSFORMER),
    ],
)
def test_a_setting_that_counts_is_taken(chosen):
    heeded([chosen], DEFAULT)


def test_what_teaches_draws_needs_draws():
    learned = replace(DEFAULT.train, baseline="learned")
    heeded([replace(config("additive+hard"), train=learned)], DEFAULT)
    with pytest.raises(ConfigError, match=r"train.baseline=learned would change nothing: it needs an attention that draws"):
        heeded([replace(config("additive"), train=learned)], DEFAULT)


def test_a_setting_that_is_varied_and_counts_nowhere_is_refused():
    with pytest.raises(ConfigError, match=r"model.norm=post would change nothing"):
        heeded([config(norm="pre"), config(norm="post")], DEFAULT)


def test_tensorboard_that_is_not_there_is_told_before_anything_is_written(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"train.tensorboard needs the tensorboard package, which is not installed"):
        trainable(replace(DEFAULT, train=replace(DEFAULT.train, tensorboard=True)))


def test_a_default_of_the_task_itself_is_no_mistake():
    heeded([config(cell="gru", **TRANSFORMER)], config(cell="gru"))


def test_among_several_configs_it_is_enough_that_one_pays_heed():
    heeded([config("none", order="bahdanau"), config("additive", order="bahdanau")], DEFAULT)


def test_every_rule_is_about_a_setting_that_exists_in_some_config():
    for path in RULES:
        part, _, name = path.partition(".")
        assert hasattr(getattr(DEFAULT, part), name.partition(".")[0]), path


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (config("additve"), "no stage or mechanism is called 'additve'; did you mean 'additive'"),
        (config("transformer", heads=3), "needs a size that its heads divide"),
        (config("additive+padding"), "which needs keep and so cannot be a word alone"),
    ],
)
def test_what_cannot_be_built_is_refused_before_it_is(chosen, text):
    buildable(config())
    with pytest.raises(ConfigError, match=text):
        buildable(chosen)
