import pytest

from regard.api import read_config
from regard.config import everything
from regard.errors import ConfigError
from regard.tasks._validate import heeded
from regard.tasks.forecast.rules import RULES
from regard.tasks.forecast.task import Config


def test_every_rule_is_of_a_setting():
    assert RULES.keys() <= set(everything(Config))


@pytest.mark.parametrize(
    ("setting", "network", "needs"),
    [
        ("model.patch_length=8", "recurrent", "model.network=patch"),
        ("model.trend_steps=5", "patch", "model.network=linear"),
        ("model.heads=2", "recurrent", "model.network=patch, inverted, transformer or temporal_fusion"),
        ("model.attention=dot", "patch", "model.network=recurrent or transformer"),
        ("model.error=mae", "patch", "model.output=points"),
        ("train.scheduled_sampling=linear", "patch", "model.network=recurrent"),
        ("dropout.variational=true", "recurrent", "a task whose recurrent networks read text"),
    ],
)
def test_a_setting_without_an_effect_is_an_error(setting, network, needs):
    config = read_config("forecast", overrides=[setting, f"model.network={network}"])
    with pytest.raises(
        ConfigError, match=f"would change nothing: it needs {needs}, and this model is {network}; leave it out"
    ):
        heeded([config], Config())


def test_settings_that_a_network_reads_are_heeded():
    overrides = ["model.network=recurrent", "model.cell=gru", "model.attention=dot", "train.scheduled_sampling=linear"]
    heeded([read_config("forecast", overrides=overrides)], Config())
    heeded([read_config("forecast", overrides=["model.patch_length=8", "model.heads=2", "model.norm=batch"])], Config())
