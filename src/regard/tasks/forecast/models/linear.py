"""Linear forecast: a linear map for the trend of a look-back and one for the rest, shared by all targets (DLinear)."""

from jaxtyping import Float
from torch import Tensor, nn

from regard.config import Dropout
from regard.data.series.batch import SeriesSource
from regard.tasks.forecast.config import ForecastModel
from regard.tasks.forecast.layers import MovingAverage
from regard.tasks.forecast.model import Horizon, Looks, Sizes, Values


class Linear(nn.Module):
    """Two linear maps over time.

        forecast = W_t trend + W_s (x - trend)        trend = moving average of x

    Zeng et al. 2023, section 3.3, https://arxiv.org/abs/2205.13504; the same maps for all targets.
    """

    def __init__(self, sizes: Sizes, trend_steps: int):
        super().__init__()
        self.average = MovingAverage(trend_steps)
        self.trend = nn.Linear(sizes.look_back, sizes.horizon * sizes.output)
        self.rest = nn.Linear(sizes.look_back, sizes.horizon * sizes.output)
        self.horizon, self.output = sizes.horizon, sizes.output

    def forward(
        self,
        values: Values,
        source: SeriesSource,
        target: Horizon | None = None,
        sampling: float = 0.0,
        looks: Looks | None = None,
    ) -> Float[Tensor, "batch horizon targets size"]:
        rows = values.mT
        trend = self.average(rows)
        mapped = self.trend(trend) + self.rest(rows - trend)
        return mapped.unflatten(-1, (self.horizon, self.output)).transpose(1, 2)


def build(settings: ForecastModel, dropout: Dropout, sizes: Sizes) -> nn.Module:
    """The network of settings."""
    return Linear(sizes, settings.trend_steps)
