"""Outputs of a forecast: points, quantiles, and the parameters of normal, Student's t and negative binomial distributions.

A network gives `size` numbers for each value of the horizon. An output says what they mean: the loss that trains them, the
point that is forecast, and quantiles. Numbers come scaled; those of the negative binomial distribution are counts, and its
parameters are of the original units.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

Parameters = Float[Tensor, "*values size"]
Values = Float[Tensor, "*values"]
Quantiles = Float[Tensor, "*values levels"]

LEVELS = tuple(level / 10 for level in range(1, 10))
"""Levels of the quantiles that are forecast unless others are named: 0.1 to 0.9."""
SMALLEST = 1e-4
"""Smallest deviation, so that a series that is forecast exactly has a finite likelihood."""
LARGEST_COUNT = 10_000_000
"""Largest count that a quantile of the negative binomial distribution may have."""


class Scale(NamedTuple):
    """Mean and scale of values: value = mean + scale * scaled."""

    mean: Float[Tensor, "*#values"]
    scale: Float[Tensor, "*#values"]


@runtime_checkable
class Output(Protocol):
    """Meaning of the numbers of a network."""

    @property
    def size(self) -> int:
        """Numbers for each value."""

    @property
    def point_place(self) -> int:
        """Place of the number that a decoder feeds back: the median, or the mean."""

    def shift(self, parameters: Parameters, window: Scale) -> Parameters:
        """Parameters of the values whose normalised form they are of: the end of a reversible normalisation."""

    def losses(self, parameters: Parameters, truth: Values, scale: Scale) -> Values:
        """Loss of each value; `scale` leads from scaled to original values."""

    def point(self, parameters: Parameters, scale: Scale) -> Values:
        """Point forecast, scaled: the mean, or the median where the loss is one of medians."""

    def quantiles(self, parameters: Parameters, levels: Sequence[float], scale: Scale) -> Quantiles | None:
        """Quantiles, scaled; None where an output says nothing of them."""


@dataclass(frozen=True)
class Points:
    """Points, trained on the squared, absolute or Huber error."""

    error: str = "mse"

    @property
    def size(self) -> int:
        """One number: the point."""
        return 1

    @property
    def point_place(self) -> int:
        """The first: the point, mean or location."""
        return 0

    def shift(self, parameters: Parameters, window: Scale) -> Parameters:
        """Points in the units of the window."""
        return parameters * window.scale[..., None] + window.mean[..., None]

    def losses(self, parameters: Parameters, truth: Values, scale: Scale) -> Values:
        """Error of each point."""
        functions = {"mse": functional.mse_loss, "mae": functional.l1_loss, "huber": functional.smooth_l1_loss}
        return functions[self.error](parameters[..., 0], truth, reduction="none")

    def point(self, parameters: Parameters, scale: Scale) -> Values:
        """The points themselves."""
        return parameters[..., 0]

    def quantiles(self, parameters: Parameters, levels: Sequence[float], scale: Scale) -> Quantiles | None:
        """None: a point has no quantiles."""
        return None


@dataclass(frozen=True)
class QuantileOutput:
    """Quantiles at fixed levels, trained on the pinball loss, sorted where they are read.

    Wen et al. 2017, https://arxiv.org/abs/1711.11053, section 2
    """

    levels: tuple[float, ...] = LEVELS

    @property
    def size(self) -> int:
        """A number for each level."""
        return len(self.levels)

    @property
    def point_place(self) -> int:
        """The level nearest to the median."""
        return int(np.argmin(np.abs(np.array(self.levels) - 0.5)))

    def shift(self, parameters: Parameters, window: Scale) -> Parameters:
        """Quantiles in the units of the window."""
        return parameters * window.scale[..., None] + window.mean[..., None]

    def losses(self, parameters: Parameters, truth: Values, scale: Scale) -> Values:
        """Twice the mean pinball loss over levels: the CRPS, as far as they tell it."""
        levels = torch.tensor(self.levels, device=truth.device, dtype=truth.dtype)
        excess = truth[..., None] - parameters
        return 2 * torch.maximum(levels * excess, (levels - 1) * excess).mean(-1)

    def point(self, parameters: Parameters, scale: Scale) -> Values:
        """The median."""
        return self._at(parameters, (0.5,))[..., 0]

    def quantiles(self, parameters: Parameters, levels: Sequence[float], scale: Scale) -> Quantiles:
        """Quantiles, between the levels by linear interpolation, beyond them by the outermost."""
        return self._at(parameters, levels)

    def _at(self, parameters: Parameters, levels: Sequence[float]) -> Quantiles:
        ordered, own = parameters.sort(-1).values, np.array(self.levels)
        columns = []
        for level in levels:
            right = int(np.clip(np.searchsorted(own, level), 1, len(own) - 1)) if len(own) > 1 else 0
            left = max(0, right - 1)
            share = float(np.clip((level - own[left]) / (own[right] - own[left]), 0, 1)) if right > left else 0.0
            columns.append(torch.lerp(ordered[..., left], ordered[..., right], share))
        return torch.stack(columns, -1)


@dataclass(frozen=True)
class Normal:
    """Normal distribution: mean, and deviation through a softplus.

    Salinas et al. 2020, https://arxiv.org/abs/1704.04110, section 3.1
    """

    @property
    def size(self) -> int:
        """Mean and raw deviation."""
        return 2

    @property
    def point_place(self) -> int:
        """The first: the point, mean or location."""
        return 0

    def shift(self, parameters: Parameters, window: Scale) -> Parameters:
        """Parameters in the units of the window."""
        return _shift_location(parameters, window)

    def losses(self, parameters: Parameters, truth: Values, scale: Scale) -> Values:
        """Negative log-likelihood."""
        mean, deviation = parameters[..., 0], parameters[..., 1]
        return ((truth - mean) / deviation) ** 2 / 2 + deviation.log() + math.log(2 * math.pi) / 2

    def point(self, parameters: Parameters, scale: Scale) -> Values:
        """The mean."""
        return parameters[..., 0]

    def quantiles(self, parameters: Parameters, levels: Sequence[float], scale: Scale) -> Quantiles:
        """Mean plus deviation times the quantiles of the standard normal distribution."""
        standard = torch.special.ndtri(torch.tensor(levels, dtype=torch.float64)).to(parameters)
        return parameters[..., :1] + parameters[..., 1:2] * standard


@dataclass(frozen=True)
class StudentT:
    """Student's t distribution: location, scale, and more than 2 degrees of freedom, for heavy tails."""

    @property
    def size(self) -> int:
        """Location, raw scale and raw degrees of freedom."""
        return 3

    @property
    def point_place(self) -> int:
        """The first: the point, mean or location."""
        return 0

    def shift(self, parameters: Parameters, window: Scale) -> Parameters:
        """Parameters in the units of the window; degrees of freedom have none."""
        freedom = 2 + functional.softplus(parameters[..., 2:])
        return torch.cat((_shift_location(parameters[..., :2], window), freedom), -1)

    def losses(self, parameters: Parameters, truth: Values, scale: Scale) -> Values:
        """Negative log-likelihood."""
        location, deviation, freedom = parameters.unbind(-1)
        spread = ((truth - location) / deviation) ** 2 / freedom
        normaliser = torch.lgamma(freedom / 2) - torch.lgamma((freedom + 1) / 2) + (freedom * math.pi).log() / 2
        return normaliser + deviation.log() + (freedom + 1) / 2 * torch.log1p(spread)

    def point(self, parameters: Parameters, scale: Scale) -> Values:
        """The location, which is mean and median."""
        return parameters[..., 0]

    def quantiles(self, parameters: Parameters, levels: Sequence[float], scale: Scale) -> Quantiles:
        """Location plus scale times the quantiles of the standard distribution of those degrees of freedom."""
        table = torch.from_numpy(_student_table(tuple(levels))).to(parameters)
        places = (2 / parameters[..., 2]).clamp(0, 1) * (len(table) - 1)
        left = places.floor().long().clamp(max=len(table) - 2)
        standard = torch.lerp(table[left], table[left + 1], (places - left)[..., None])
        return parameters[..., :1] + parameters[..., 1:2] * standard


@dataclass(frozen=True)
class NegativeBinomial:
    """Negative binomial distribution of counts: mean μ and dispersion α, with variance μ + α μ².

    Salinas et al. 2020, https://arxiv.org/abs/1704.04110, section 3.1. Its parameters are those of the original units.
    """

    @property
    def size(self) -> int:
        """Raw mean, scaled, and raw dispersion."""
        return 2

    @property
    def point_place(self) -> int:
        """The first: the point, mean or location."""
        return 0

    def shift(self, parameters: Parameters, window: Scale) -> Parameters:
        """Mean in the units of the window; the dispersion has none."""
        mean = parameters[..., :1] * window.scale[..., None] + window.mean[..., None]
        return torch.cat((mean, functional.softplus(parameters[..., 1:]) + SMALLEST), -1)

    def losses(self, parameters: Parameters, truth: Values, scale: Scale) -> Values:
        """Negative log-likelihood of the counts; what is no count is rounded to one."""
        mean, dispersion = self._originals(parameters, scale)
        count = (truth * scale.scale + scale.mean).round().clamp_min(0)
        shape = 1 / dispersion
        coefficient = torch.lgamma(count + shape) - torch.lgamma(shape) - torch.lgamma(count + 1)
        product = dispersion * mean
        return -(coefficient - shape * torch.log1p(product) + count * (product.log() - torch.log1p(product)))

    def point(self, parameters: Parameters, scale: Scale) -> Values:
        """The mean, scaled."""
        return (self._originals(parameters, scale)[0] - scale.mean) / scale.scale

    def quantiles(self, parameters: Parameters, levels: Sequence[float], scale: Scale) -> Quantiles:
        """Smallest counts whose cumulative probability reaches the levels, scaled."""
        mean, dispersion = (part.double() for part in self._originals(parameters, scale))
        counts = _negative_binomial_quantiles(mean, dispersion, levels).to(parameters)
        return (counts - scale.mean[..., None]) / scale.scale[..., None]

    def _originals(self, parameters: Parameters, scale: Scale) -> tuple[Values, Values]:
        """Mean in original units, positive through a softplus of one scale's width, and dispersion."""
        mean = functional.softplus(parameters[..., 0] + scale.mean / scale.scale) * scale.scale + SMALLEST
        return mean, parameters[..., 1]


OUTPUTS: dict[str, Output] = {
    "points": Points(),
    "quantiles": QuantileOutput(),
    "normal": Normal(),
    "student_t": StudentT(),
    "negative_binomial": NegativeBinomial(),
}
"""Outputs by the name of the setting."""


def _shift_location(parameters: Parameters, window: Scale) -> Parameters:
    """Location and deviation in the units of the window."""
    location = parameters[..., :1] * window.scale[..., None] + window.mean[..., None]
    deviation = (functional.softplus(parameters[..., 1:]) + SMALLEST) * window.scale[..., None]
    return torch.cat((location, deviation), -1)


@lru_cache(maxsize=16)
def _student_table(levels: tuple[float, ...], nodes: int = 257, steps: int = 20_001) -> NDArray[np.float64]:
    """Quantiles of Student's t distributions with 2/ν from 0 (normal) to 1, as (nodes, levels).

    With t = √ν tan θ the density is proportional to cos^(ν-1) θ, which is integrated from -π/2 to π/2; close to the normal
    distribution, where that peak is narrow, the grid is the peak's.
    """
    table = np.empty((nodes, len(levels)))
    table[0] = torch.special.ndtri(torch.tensor(levels, dtype=torch.float64)).numpy()
    for node in range(1, nodes):
        freedom = 2 * (nodes - 1) / node
        widest = min(math.pi / 2, 40 / math.sqrt(freedom))
        angles = np.linspace(-widest, widest, steps)
        density = np.cos(angles) ** (freedom - 1)
        density[[0, -1]] = 0 if widest == math.pi / 2 else density[[0, -1]]
        cumulative = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
        reached = np.interp(levels, cumulative / cumulative[-1], angles)
        table[node] = math.sqrt(freedom) * np.tan(reached)
    return table


def _negative_binomial_quantiles(mean: Values, dispersion: Values, levels: Sequence[float]) -> Quantiles:
    """Smallest counts whose cumulative probability reaches the levels; NaN for parameters that are not finite."""
    flat = [
        _sum_up(*part, levels)
        for part in zip(torch.split(mean.flatten(), 4096), torch.split(dispersion.flatten(), 4096), strict=True)
    ]
    return torch.cat(flat).view(*mean.shape, len(levels))


def _sum_up(mean: Values, dispersion: Values, levels: Sequence[float], block: int = 1024) -> Quantiles:
    """Quantiles of some values: probabilities are summed a block of counts at a time, so that memory is bounded."""
    shape, product = 1 / dispersion[:, None], (dispersion * mean)[:, None]
    quantiles = torch.full((len(mean), len(levels)), math.nan, dtype=mean.dtype, device=mean.device)
    finite = (mean.isfinite() & dispersion.isfinite())[:, None]
    sums, first = torch.zeros_like(mean)[:, None], 0
    while (quantiles.isnan() & finite).any() and first < LARGEST_COUNT:
        counts = torch.arange(first, first + block, dtype=mean.dtype, device=mean.device)
        logs = torch.lgamma(counts + shape) - torch.lgamma(shape) - torch.lgamma(counts + 1)
        logs = logs - shape * torch.log1p(product) + counts * (product.log() - torch.log1p(product))
        cumulative = sums + logs.exp().cumsum(-1)
        for column, level in enumerate(levels):
            reached = cumulative >= level
            first_reached = reached.int().argmax(-1).to(mean) + first
            new = reached.any(-1) & quantiles[:, column].isnan()
            quantiles[:, column] = torch.where(new, first_reached, quantiles[:, column])
        sums, first = cumulative[:, -1:], first + block
    return quantiles
