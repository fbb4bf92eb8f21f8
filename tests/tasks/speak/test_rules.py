import pytest

from regard.api import read_config
from regard.config import everything
from regard.errors import ConfigError
from regard.registry import task_options
from regard.tasks._validate import heeded
from regard.tasks.speak.options import OPTIONS
from regard.tasks.speak.rules import RULES
from regard.tasks.speak.task import Config, prepare, synthesise


def test_every_rule_is_of_a_setting():
    assert RULES.keys() <= set(everything(Config))


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        (["model.heads=2"], "model.network=transformer"),
        (["model.postnet_size=8", "model.postnet_layers=0"], "a postnet"),
        (["dropout.always=false", "dropout.prenet=0"], "a prenet with dropout"),
        (["dropout.variational=true"], "a task whose recurrent networks read text"),
        (["train.label_smoothing=0.1"], "a task that chooses among words or labels"),
        (["search.beam=3"], "a task whose models write text"),
    ],
)
def test_a_setting_without_an_effect_is_an_error(settings, needs):
    with pytest.raises(ConfigError, match=f"would change nothing: it needs {needs}"):
        heeded([read_config("speak", overrides=settings)], Config())


def test_settings_that_a_network_reads_are_heeded():
    settings = ["model.network=transformer", "model.attention=transformer", "model.heads=2", "dropout.embedding=0.2"]
    heeded([read_config("speak", overrides=[*settings, "train.guided_attention=3"])], Config())
    heeded([read_config("speak", overrides=["model.attention=gmm", "model.attention.version=1"])], Config())


def test_an_option_that_two_tasks_declare_is_one():
    [times] = [option for option in task_options() if option.name == "times"]
    assert set(OPTIONS["times"]["commands"]) <= set(times.commands)


def test_synthetic_speech_has_one_voice_and_is_the_same_each_time():
    (first, valid), (again, _) = synthesise(5, 0), synthesise(5, 0)
    assert (len(first), len(valid)) == (5, 4)
    assert {(sentence.pitch, sentence.noise) for sentence in [*first, *valid]} == {(130.0, 1e-4)}
    assert first == again
    assert prepare(first[0].record) is not None
