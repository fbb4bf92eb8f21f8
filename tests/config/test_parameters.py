"""Parameters of stages as settings: which there are, their types, where they are written, and who gets them."""

import re
from dataclasses import asdict
from typing import Any, Literal

import pytest

from regard import config as configuration
from regard import registry, tasks
from regard.attention import Concat, Entmax, Local, Relative
from regard.config.parameters import assign_parameters, explain, list_parameters, list_stages
from regard.config.section import named_settings
from regard.errors import ConfigError
from regard.models.attention_factory import build_attention, split_name

Config = tasks.find("translate").Config


def read(*options, table=None):
    return configuration.read(Config, table or {}, overrides=[f"model.attention{option}" for option in options])


def part(*options, table=None):
    return read(*options, table=table).model.attention


class Documented:
    """A score. Its `width` is explained here. Other things are not.

    slope: steepness of the score
    """

    def __init__(
        self, key: int, width: int = 3, slope: float | None = None, mode: Literal["a", "b"] = "a", tensor: Any = None
    ):
        pass

    def prepare(self, key):
        return key


def test_numbers_texts_and_switches_are_parameters_and_sizes_are_not():
    parameters = list_parameters(Documented, "score")
    kinds = {name: parameter.kind for name, parameter in parameters.items()}
    assert kinds == {"width": "a whole number", "slope": "a number or none", "mode": "a or b"}
    assert [parameter.default for parameter in parameters.values()] == [3, None, "a"]


def test_a_docstring_explains_by_a_line_of_its_own_or_by_the_sentence_that_names_it():
    assert explain(Documented, "slope") == "steepness of the score"
    assert explain(Documented, "width") == "Its `width` is explained here."
    assert explain(Documented, "mode") == ""


def test_every_parameter_of_every_stage_is_explained():
    for kind in ("score", "normalise", "scope", "mechanisms"):
        for name in registry.names(kind):
            for parameter in list_parameters(registry.find(name, kind), kind).values():
                assert parameter.meaning, f"{name} does not say what {parameter.name} is"
                assert not parameter.meaning.endswith((":", ",")), (
                    f"{name}.{parameter.name} ends in the middle of a sentence"
                )


def test_options_that_a_parent_names_are_parameters_unless_the_class_sets_them():
    assert {"width", "renormalise"} == list_parameters(registry.find("local_p"), "mechanisms").keys()
    assert "centre" not in list_parameters(registry.find("luong"), "mechanisms")


def test_stages_that_a_name_leaves_out_are_there():
    assert list(list_stages("entmax")) == ["entmax", "scaled_dot"]
    assert list(list_stages("bahdanau")) == ["bahdanau"]
    assert list_stages("none") == {}


def test_a_parameter_has_the_type_of_its_stage():
    assert part("=entmax", ".alpha=1.3", ".learn=true").parameters == {"alpha": 1.3, "learn": True}
    assert part("=memory_network", ".hops=2").parameters == {"hops": 2}
    assert part("=luong", ".window=local_m").parameters == {"window": "local_m"}


def test_toml_has_them_beside_the_name_and_the_bare_name_still_works(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('[model]\nattention = {name = "entmax", alpha = 1.3}\n')
    assert configuration.read(Config, path).model.attention.parameters == {"alpha": 1.3}
    path.write_text('[model]\nattention = "entmax"\n')
    assert configuration.read(Config, path).model.attention.parameters == {}


@pytest.mark.parametrize(
    "options",
    [
        ("=entmax", ".alpha=1.3"),
        ("=relative+local", ".local.window=4", ".scale=0.5"),
        ("=blocks", ".blocks.size=2"),
        ("=additive",),
    ],
)
def test_what_is_written_is_read_back(options, tmp_path):
    config = read(*options)
    path = tmp_path / "config.toml"
    path.write_text(configuration.write(config))
    again = configuration.read(Config, path)
    assert again == config
    assert hash(again.model) == hash(config.model)


def test_a_table_of_a_config_is_read_back_and_overridden():
    table = asdict(read("=entmax", ".alpha=1.3"))
    assert configuration.read(Config, table) == read("=entmax", ".alpha=1.3")
    assert configuration.read(Config, table, overrides=["model.attention.alpha=1.4"]).model.attention.parameters == {
        "alpha": 1.4
    }
    assert configuration.read(Config, asdict(read("=additive"))) == read("=additive")


def test_two_spellings_of_one_parameter_are_one_config():
    assert read("=entmax", ".entmax.alpha=1.3") == read("=entmax", ".alpha=1.3")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            ("=entmax", ".alhpa=1.3"),
            "there is no setting model.attention.alhpa; did you mean model.attention.alpha? "
            "parameters of its stages: entmax has alpha and learn; scaled_dot has scale",
        ),
        (
            (".head=2",),
            "did you mean model.attention.heads? parameters of its stages: additive has hidden; softmax has none",
        ),
        (("=entmax", ".alpha=much"), "model.attention.alpha needs a number, got 'much'"),
        (("=entmax", ".alpha=nan"), "model.attention.alpha needs to be a finite number, got nan"),
        (("=local_p", ".width=2.5"), "model.attention.width needs a whole number, got '2.5'"),
        (("=local_p", ".width=70000"), "model.attention.width needs to be 65,536 or less"),
        (("=memory_network", ".hops=257"), "model.attention.hops needs to be 256 or less"),
        (("=transformer", ".merge=both"), "model.attention.merge needs concat or sum or mean, got 'both'"),
        (
            ("=relative+local", ".window=3"),
            "model.attention.window: relative and local both have a parameter window; "
            "write model.attention.relative.window or model.attention.local.window",
        ),
        (("=relative+local", ".local.widow=3"), "did you mean model.attention.local.window?"),
        (("=none", ".alpha=2"), "parameters of its stages: there are none"),
        (("=entmaks", ".alpha=2"), "model.attention: no stage or mechanism is called 'entmaks'; did you mean 'entmax'?"),
    ],
)
def test_a_wrong_parameter_is_refused_with_those_there_are(options, text):
    with pytest.raises(ConfigError, match=re.escape(text)):
        read(*options)


@pytest.mark.parametrize(
    "table",
    [
        {"parameters": 1.3},
        {"parameters": {"parameters": {"alpha": 1.3}}},
        {"__class__": 1},
        {"alpha": {"a": {"b": 1}}},
        {"alpha": [1.3]},
        {"entmax": {"__init__": 1}},
        {"entmax": {"heads": 4}},
        {"alpha": 10**400},
    ],
)
def test_hostile_tables_are_refused(table):
    with pytest.raises(ConfigError, match=r"model\.attention\."):
        configuration.check(Config, {"model": {"attention": {"name": "entmax"} | table}})


def test_each_stage_gets_its_own():
    made = build_attention("relative+local", 8, 8, parameters={"relative": {"window": 5}, "local": {"window": 3}})
    assert (type(made.score), made.score.window, made.scope) == (Relative, 5, Local(3))
    made = build_attention("concat+entmax", 8, 6, parameters={"tanh": False, "alpha": 1.3})
    assert (type(made.score), made.score.tanh, type(made.normalise), made.normalise.alpha) == (Concat, False, Entmax, 1.3)
    assert build_attention("sparsemax", 8, 8, parameters={"scale": 0.5}).score.scale == 0.5
    assert build_attention("memory_network", 8, 8, parameters={"hops": 2}).hops == 2


def test_a_section_in_python_has_them_too():
    section = configuration.Model(attention=configuration.AttentionPart("entmax", parameters={"alpha": 1.3}))
    assert named_settings(section, "model") == {"attention": {"name": "entmax", "alpha": 1.3}}
    with pytest.raises(ConfigError, match=r"no setting model\.attention\.beta; .*entmax has alpha and learn"):
        build_attention("entmax", 8, 8, parameters={"beta": 1.3})


def test_without_parameters_a_name_builds_what_it_did():
    assert assign_parameters("entmax", {}) == {}
    assert split_name("concat+entmax") == {"score": "concat", "normalise": "entmax"}
