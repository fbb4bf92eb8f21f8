"""Forecaster: a network between the reversible normalisation of a window and the output that its numbers mean."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from regard.data.batch import Padded
from regard.data.series.batch import SeriesSource
from regard.tasks.forecast.calibration import Calibration
from regard.tasks.forecast.linear import MOST_STEPS, LinearMap
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
    point: int = 0
    """Place of the number that a decoder feeds back: the median, or the mean."""


class Look(NamedTuple):
    """Weights of one attention, and what its queries and keys are.

    Places are steps of the look-back ("look-back"), of the horizon ("horizon"), patches of the look-back ("patches") or
    variates ("variables").
    """

    query: str
    key: str
    weights: Float[Tensor, "batch heads queries keys"]


Looks = dict[str, Look]
"""Attention weights of a forecast by the name of the attention."""


@runtime_checkable
class Network(Protocol):
    """Network from the values of a look-back to numbers for each value of the horizon."""

    def __call__(
        self,
        values: Values,
        source: SeriesSource,
        target: Horizon | None = None,
        sampling: float = 0.0,
        looks: Looks | None = None,
    ) -> Float[Tensor, "batch horizon targets size"]:
        """`values` are normalised; `target` are the horizon's, of a decoder with teacher forcing; else it runs freely.

        A value of `target` that is missing is NaN. With `looks` attention weights are added to it.
        """


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


class CovariateHead(nn.Module):
    """Contribution of covariates to the forecast of a network that does not read them: a small network of each step's own.

        added_t = W₂ gelu(W₁ [known_t; static])

    W₂ begins at 0, so that a training begins with the network alone.
    """

    def __init__(self, sizes: Sizes, size: int):
        super().__init__()
        self.static = StaticEmbedding(sizes.static, size)
        self.inner = nn.Linear(sizes.known, size)
        self.outer = nn.Linear(size, sizes.targets * sizes.output)
        self.sizes = sizes
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, source: SeriesSource) -> Float[Tensor, "batch horizon targets size"]:
        known = source.known[:, -self.sizes.horizon :]
        hidden = functional.gelu(self.inner(known) + self.static(source.static)[:, None])
        added: Tensor = self.outer(hidden).unflatten(-1, (self.sizes.targets, self.sizes.output))
        return added


class Forecast(NamedTuple):
    """Parameters of an output for each value of the horizon, scaled, and attention weights where they were asked for."""

    parameters: Float[Tensor, "batch horizon targets size"]
    looks: Looks | None = None


class Forecaster(nn.Module):
    """Network with a reversible normalisation around it, for values scaled as the codec scales them.

    It holds the conformal calibration of its quantiles and the linear baseline, which belong to the same training rows.
    """

    def __init__(
        self, network: nn.Module, norm: ReversibleNorm, output: Output, sizes: Sizes, head: CovariateHead | None = None
    ):
        super().__init__()
        self.network, self.norm, self.head = network, norm, head
        self.output, self.sizes = output, sizes
        self.calibration = Calibration(sizes.horizon, sizes.targets)
        self.linear = LinearBuffers(sizes.look_back, sizes.horizon, sizes.targets)

    def forward(
        self,
        source: SeriesSource,
        target: Padded | None = None,
        observed: Bool[Tensor, "batch horizon targets"] | None = None,
        sampling: float = 0.0,
        weights: bool = False,
        hidden: Bool[Tensor, "batch time targets"] | None = None,
    ) -> Forecast:
        """Forecast of each window; with a `target` by teacher forcing, where the network has a decoder.

        `hidden` values of the look-back are missing for the network, and not for the statistics of the window.
        """
        scale = self.norm.measure(source.data, source.observed)
        if hidden is not None:
            source = source._replace(observed=source.observed & ~hidden)
        values = self.norm.normalise(source.data, scale) * source.observed
        looks: Looks | None = {} if weights else None
        teacher = None if target is None else self.norm.normalise(target.data, scale)
        if teacher is not None and observed is not None:
            teacher = teacher.masked_fill(~observed, torch.nan)
        parameters = self.network(values, source, teacher, sampling, looks)
        if self.head is not None:
            parameters = parameters + self.head(source)
        return Forecast(self.output.shift(parameters, self.norm.restore(scale)), looks)

    def losses(
        self,
        source: SeriesSource,
        target: Padded,
        observed: Bool[Tensor, "batch horizon targets"] | None = None,
        sampling: float = 0.0,
    ) -> Horizon:
        """Loss of each value of the horizon; those that were not observed count for nothing in a mean."""
        parameters = self(source, target, observed, sampling).parameters
        return self.output.losses(parameters, target.data, original_scale(source))

    def extra_repr(self) -> str:
        """The output."""
        return f"output={self.output!r}"


class LinearBuffers(nn.Module):
    """The linear baseline that was fitted on the training rows, beside the network that has to beat it."""

    weight: Tensor
    deviation: Tensor

    def __init__(self, look_back: int, horizon: int, targets: int):
        super().__init__()
        self.register_buffer("weight", torch.zeros(horizon, min(look_back, MOST_STEPS)))
        self.register_buffer("deviation", torch.ones(horizon, targets))

    def set(self, linear: LinearMap) -> None:
        """Take over a map that was fitted."""
        self.weight.copy_(torch.from_numpy(linear.weight))
        self.deviation.copy_(torch.from_numpy(linear.deviation))

    def read(self) -> LinearMap:
        """The map."""
        return LinearMap(self.weight.double().cpu().numpy(), self.deviation.double().cpu().numpy())


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
