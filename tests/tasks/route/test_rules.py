import pytest

from regard.config import Dropout
from regard.errors import ConfigError
from regard.tasks._validate import heeded
from regard.tasks.route.config import RouteData, RouteModel, RouteTrain
from regard.tasks.route.task import Config


@pytest.mark.parametrize(
    ("change", "needed"),
    [
        ({"data": RouteData(train="a.jsonl", points=30)}, r"data\.points=30 would change nothing: it needs points that are"),
        ({"data": RouteData(train="a.jsonl", samples=30)}, r"data\.samples=30 .* needs points that are generated"),
        ({"train": RouteTrain(label_smoothing=0.1)}, r"train\.label_smoothing=0\.1 .* needs a task that chooses among"),
        ({"dropout": Dropout(residual=0.1)}, r"dropout\.residual=0\.1 .* needs a network with dropout: a policy has none"),
    ],
)
def test_a_setting_without_an_effect_is_refused(change, needed):
    with pytest.raises(ConfigError, match=needed):
        heeded([Config(**change)], Config())


def test_settings_with_an_effect_are_taken():
    heeded([Config(data=RouteData(points=30), model=RouteModel(heads=2, feedforward_size=32))], Config())
    heeded([Config(data=RouteData(train="a.jsonl", max_points=30), train=RouteTrain(baseline="greedy"))], Config())
