"""Small networks and random windows for the tests of forecasting."""

from importlib import import_module
from pathlib import Path

import torch

import regard.tasks.forecast.models as folder
from regard.config import Dropout
from regard.data.batch import Padded
from regard.data.series.batch import SeriesSource
from regard.tasks.forecast.config import ForecastModel
from regard.tasks.forecast.model import Forecaster, Network, ReversibleNorm, Sizes
from regard.tasks.forecast.output import OUTPUTS

NAMES = sorted(path.stem for path in Path(folder.__file__).parent.glob("[!_]*.py"))
SIZES = Sizes(targets=2, look_back=12, horizon=4, past=1, known=3, static=(3, 5), output=1)
SMALL = {
    "hidden_size": 8,
    "feedforward_size": 16,
    "layers": 2,
    "heads": 2,
    "patch_length": 4,
    "patch_stride": 2,
    "trend_steps": 5,
}


def draw_source(batch=3, sizes=SIZES, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator)

    time, horizon = sizes.look_back, sizes.horizon
    observed = torch.rand(batch, time, sizes.targets, generator=generator) > 0.1
    static = torch.stack([torch.randint(size, (batch,), generator=generator) for size in sizes.static], 1)
    return SeriesSource(
        draw(batch, time, sizes.targets) * observed,
        torch.ones(batch, time, dtype=torch.bool),
        observed,
        draw(batch, time, sizes.past),
        draw(batch, time + horizon, sizes.known),
        static,
        torch.zeros(batch, sizes.targets),
        torch.ones(batch, sizes.targets),
    )


def draw_target(batch=3, sizes=SIZES):
    data = torch.randn(batch, sizes.horizon, sizes.targets, generator=torch.Generator().manual_seed(9))
    return Padded(data, torch.ones(batch, sizes.horizon, dtype=torch.bool))


def build(name, output="points", sizes=SIZES, norm="window", **settings):
    torch.manual_seed(0)
    model, meaning = ForecastModel(network=name, **(SMALL | settings)), OUTPUTS[output]
    sized = sizes._replace(output=meaning.size)
    network = import_module(f"regard.tasks.forecast.models.{name}").build(model, Dropout(), sized)
    assert isinstance(network, Network)
    return Forecaster(network, ReversibleNorm(sizes.targets, norm), meaning, sized).eval()
