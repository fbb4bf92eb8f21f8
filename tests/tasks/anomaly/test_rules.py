import pytest

from regard.config import Train
from regard.errors import ConfigError
from regard.tasks._validate import heeded
from regard.tasks.anomaly.config import AnomalyData, AnomalyModel
from regard.tasks.anomaly.task import Config


@pytest.mark.parametrize(
    ("change", "needed"),
    [
        (
            {"model": AnomalyModel(detector="memory", heads=2)},
            r"model.heads=2 would change nothing: it needs a network of attention",
        ),
        ({"model": AnomalyModel(detector="forecast", latents=2)}, r"model.latents=2 .* needs the attention autoencoder"),
        ({"model": AnomalyModel(temperature=2.0)}, r"model.temperature=2.0 .* needs the Anomaly Transformer"),
        ({"model": AnomalyModel(memory=5)}, r"model.memory=5 .* needs a memory of windows"),
        ({"train": Train(label_smoothing=0.1)}, r"train.label_smoothing=0.1 .* needs a task that chooses among words"),
        ({"data": AnomalyData(constant="score")}, r"data.constant=score .* needs a table of your own"),
    ],
)
def test_a_setting_without_an_effect_is_refused(change, needed):
    with pytest.raises(ConfigError, match=needed):
        heeded([Config(**change)], Config())


def test_a_setting_with_an_effect_is_taken():
    heeded(
        [Config(model=AnomalyModel(heads=2, latents=2)), Config(model=AnomalyModel(detector="memory", memory=5))], Config()
    )
