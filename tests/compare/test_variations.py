import pytest

from regard import registry
from regard.compare.variations import Conditional, Varied, choices, expand_value, members, parse_conditional, parse_varied
from regard.errors import ConfigError
from regard.tasks.reverse import Config

BOTH = [Varied("model.attention", ("none", "additive")), Varied("model.decoder", ("recurrent", "transformer"))]


def test_a_setting_and_its_values_are_read_each_once():
    assert parse_varied(["model.attention=none,additive,none"], Config) == [Varied("model.attention", ("none", "additive"))]


def test_every_is_all_that_a_setting_can_be():
    assert parse_varied(["model.decoder=every"], Config)[0].values == ("recurrent", "convolution", "transformer")
    assert parse_varied(["model.bidirectional=every"], Config)[0].values == ("false", "true")
    assert parse_varied(["model.output=every"], Config)[0].values == ("attention", "mixture", "projection")
    assert choices(Config, "data.target_tokenizer") == ["words", "characters", "bytes", "bpe", "unigram"]
    assert choices(Config, "data.no.such") == []


def test_every_attention_is_what_the_folders_hold_and_none():
    found = expand_value("model.attention", "every", Config)
    assert found[0] == "none"
    assert {*registry.names("mechanisms"), *registry.names("score")} < set(found)
    assert {"sparsemax", "local"} < set(found)
    assert not {"padding", "document"} & set(found), "they need to be told more than their name"
    assert not {"softmax", "everywhere"} & set(found), "these are what every score has anyway"
    assert len(found) == len(set(found))


def test_a_kind_is_all_of_its_names():
    assert expand_value("model.attention", "mechanisms", Config) == members("mechanisms") == registry.names("mechanisms")
    assert expand_value("model.self_attention", "score", Config) == registry.names("score")
    assert "none" not in expand_value("model.self_attention", "every", Config)
    assert expand_value("data.train", "score", Config) == ["score"], "a kind is a word only where attentions are named"


@pytest.mark.parametrize("text", ["model.attention", "=none", "model.attention=", "model.attention=none,,additive"])
def test_a_setting_needs_values(text):
    with pytest.raises(ConfigError, match=r"compare needs --vary SETTING=VALUE,VALUE with no value empty, got"):
        parse_varied([text], Config)


def test_a_setting_is_varied_once():
    with pytest.raises(ConfigError, match=r"--vary names model.layers twice; put all its values behind one ="):
        parse_varied(["model.layers=1", "model.layers=2"], Config)


def test_the_seed_is_not_for_the_user_to_vary():
    with pytest.raises(ConfigError, match=r"compare sets train.seed itself: --seeds N trains each kind N times"):
        parse_varied(["train.seed=1,2"], Config)


def test_every_number_means_nothing():
    with pytest.raises(
        ConfigError, match=r"train.learning_rate has no list of values, so --vary train.learning_rate=every means nothing"
    ):
        parse_varied(["train.learning_rate=every"], Config)


def test_settings_go_with_a_value_and_with_several():
    text = "model.decoder=transformer model.attention=none,additive: model.encoder=transformer train.record_example='a b'"
    [found] = parse_conditional([text], BOTH, Config)
    when = (Varied("model.decoder", ("transformer",)), Varied("model.attention", ("none", "additive")))
    assert found == Conditional(when, ("model.encoder=transformer", "train.record_example=a b"))
    assert found.holds({"model.attention": "none", "model.decoder": "transformer"})
    assert not found.holds({"model.attention": "none", "model.decoder": "recurrent"})


@pytest.mark.parametrize("text", ["model.decoder=transformer", "model.decoder=transformer: heads", ": a=b", "x: "])
def test_what_goes_with_a_value_has_one_spelling(text):
    with pytest.raises(ConfigError, match=r"--with needs SETTING=VALUE: SETTING=VALUE ..., got .*; for example --with"):
        parse_conditional([text], BOTH, Config)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "model.hidden_size=64: model.heads=4",
            "--with asks for model.hidden_size, which nothing varies; --vary names model.attention, ",
        ),
        ("model.decoder=transformers: model.heads=4", "which --vary does not name; did you mean 'transformer'?"),
        ("model.decoder=convolution: model.heads=4", "which --vary does not name; it takes recurrent, transformer"),
        (
            "model.decoder=transformer: model.attention=dot",
            "sets model.attention, which compare varies itself; leave it out",
        ),
        ("model.decoder=transformer: train.seed=3", "sets train.seed, which compare varies itself"),
        ("model.decoder=transformer: train.record_example='a", "cannot be read: No closing quotation"),
    ],
)
def test_a_condition_that_nothing_meets_is_refused(text, told):
    with pytest.raises(ConfigError) as raised:
        parse_conditional([text], BOTH, Config)
    assert told in str(raised.value)
