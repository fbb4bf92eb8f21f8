"""Forecaster: a network between the reversible normalisation of a window and the output that its numbers mean."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.data.batch import Padded
from regard.data.series.batch import SeriesSource
from regard.tasks.forecast.output import Output, Scale

Values = Float[Tensor, "batch time targets"]
Horizon = Float[Tensor, "batch horizon targets"]
EPSILON = 1e-5
"""Added to the variance of a window, so that a constant one has a scale."""


class Sizes(NamedTuple):
    """Sizes that a network is built for."""

    targets: int
    look_back: int
    horizon: int
    past: int
    known: int
    static: tuple[int, ...]
    """Size of the vocabulary of each static covariate."""
    output: int
    """Numbers for each value of the horizon."""


@runtime_checkable
class Network(Protocol):
    """Network from the values of a look-back to numbers for each value of the horizon."""

    def __call__(
        self, values: Values, source: SeriesSource, target: Horizon | None = None, sampling: float = 0.0
    ) -> Float[Tensor, "batch horizon targets size"]:
        """`values` are normalised; `target` are the horizon's, of a decoder with teacher forcing; else it runs freely."""


class ReversibleNorm(nn.Module):
    """Reversible instance normalisation (RevIN): statistics of a window are taken off, and put back on its forecast.

        x' = (x - mean) / √(var + ε) · γ + β        over the observed values of the look-back

    Kim et al. 2022, https://openreview.net/forum?id=cGDAkQo1C0p, section 3. With `kind` "last" the mean is the last observed
    value and the deviation is 1, as in NLinear (Zeng et al. 2023, section 3.3, https://arxiv.org/abs/2205.13504).
    """

    def __init__(self, targets: int, kind: str = "window", affine: bool = True):
        super().__init__()
        if kind not in ("window", "last", "none"):
            raise ValueError(f"a reversible normalisation is 'window', 'last' or 'none', got {kind!r}")
        self.kind = kind
        self.affine = affine and kind == "window"
        if self.affine:
            self.gain, self.bias = nn.Parameter(torch.ones(targets)), nn.Parameter(torch.zeros(targets))

    def measure(self, values: Values, observed: Bool[Tensor, "batch time targets"]) -> Scale:
        """Statistics of each window as (batch, 1, targets)."""
        if self.kind == "none":
            return Scale(torch.zeros_like(values[:, :1]), torch.ones_like(values[:, :1]))
        if self.kind == "last":
            steps = torch.arange(1, values.shape[1] + 1, device=values.device)[:, None]
            last = (steps * observed).argmax(1, keepdim=True)
            return Scale(values.gather(1, last), torch.ones_like(values[:, :1]))
        count = observed.sum(1, keepdim=True).clamp_min(1)
        mean = (values * observed).sum(1, keepdim=True) / count
        variance = ((values - mean).square() * observed).sum(1, keepdim=True) / count
        return Scale(mean, (variance + EPSILON).sqrt())

    def normalise(self, values: Values, scale: Scale) -> Values:
        """Values with the statistics taken off."""
        normalised = (values - scale.mean) / scale.scale
        return normalised * self.gain + self.bias if self.affine else normalised

    def restore(self, scale: Scale) -> Scale:
        """Scale that leads from normalised values back."""
        if not self.affine:
            return scale
        gain = self.gain + EPSILON**2
        return Scale(scale.mean - self.bias / gain * scale.scale, scale.scale / gain)


class Forecast(NamedTuple):
    """Parameters of an output for each value of the horizon, scaled."""

    parameters: Float[Tensor, "batch horizon targets size"]


class Forecaster(nn.Module):
    """Network with a reversible normalisation around it, for values scaled as the codec scales them."""

    def __init__(self, network: nn.Module, norm: ReversibleNorm, output: Output, sizes: Sizes):
        super().__init__()
        self.network, self.norm = network, norm
        self.output, self.sizes = output, sizes

    def forward(self, source: SeriesSource, target: Padded | None = None, sampling: float = 0.0) -> Forecast:
        """Forecast of each window; with a `target` by teacher forcing, where the network has a decoder."""
        scale = self.norm.measure(source.data, source.observed)
        values = self.norm.normalise(source.data, scale) * source.observed
        teacher = None if target is None else self.norm.normalise(target.data, scale)
        parameters = self.network(values, source, teacher, sampling)
        return Forecast(self.output.shift(parameters, self.norm.restore(scale)))

    def losses(self, source: SeriesSource, target: Padded, sampling: float = 0.0) -> Horizon:
        """Loss of each value of the horizon; those that were not observed count for nothing in a mean."""
        parameters = self(source, target, sampling).parameters
        return self.output.losses(parameters, target.data, original_scale(source))

    def extra_repr(self) -> str:
        """The output."""
        return f"output={self.output!r}"


def original_scale(source: SeriesSource) -> Scale:
    """Scale that leads from scaled to original values."""
    return Scale(source.mean[:, None], source.scale[:, None])


def network_input(values: Values, source: SeriesSource) -> Float[Tensor, "batch time features"]:
    """Values of a look-back with the mask of those missing and with all covariates."""
    time = values.shape[1]
    missing = (~source.observed).to(values)
    return torch.cat((values, missing, source.past, source.known[:, :time]), -1)


def input_size(sizes: Sizes) -> int:
    """Features of `network_input`."""
    return 2 * sizes.targets + sizes.past + sizes.known


class StaticEmbedding(nn.Module):
    """Sum of an embedding of each static covariate: 0 where there are none."""

    def __init__(self, vocabularies: tuple[int, ...], size: int):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(vocabulary, size) for vocabulary in vocabularies])
        self.size = size

    def forward(self, static: Any) -> Float[Tensor, "batch size"]:
        embedded = [table(column) for table, column in zip(self.tables, static.unbind(1), strict=True)]
        zeros = torch.zeros(len(static), self.size, device=static.device)
        return sum(embedded, zeros)
