"""Memory of normal windows: a window attends to those of the training, and their weighted mean is what is expected of it."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention import attend
from regard.attention.scope import Scope
from regard.attention.score.distance import Distance
from regard.data.series.batch import SeriesSource

FIRST_WIDTH = 0.1
"""Width τ before the training, in mean squared deviations."""


@dataclass(frozen=True, eq=False)
class Stored(Scope):
    """Windows of the memory, but for those that overlap with the window itself, by the places of their ends.

    allowed(q, k)  ⇔  k is stored and |place_q - place_k| >= window
    """

    keep: Bool[Tensor, " keys"]
    keys: Int[Tensor, " keys"]
    queries: Int[Tensor, " queries"] | None
    """None: windows that are not of the training rows."""
    window: int

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        if self.queries is None:
            return self.keep[k] & (q >= 0)
        return self.keep[k] & ((self.queries[q] - self.keys[k]).abs() >= self.window)


class WindowMemory(nn.Module):
    """Attention to stored windows, by their distance.

        x̂ = Σ_i softmax_i(-‖x - m_i‖² / (d τ)) m_i

    The width τ is learned: windows of the training rows are expected from all that do not overlap with them. As τ goes to 0
    this is the nearest neighbour. Nadaraya 1964; Gong et al. 2019, https://arxiv.org/abs/1904.02639, learn the m_i instead.
    """

    def __init__(self, count: int, window: int, targets: int):
        super().__init__()
        self.window, self.targets = window, targets
        self.log_width = nn.Parameter(torch.tensor(math.log(FIRST_WIDTH)))
        self.windows: Tensor
        self.places: Tensor
        self.keep: Tensor
        self.register_buffer("windows", torch.zeros(count, window * targets))
        self.register_buffer("places", torch.zeros(count, dtype=torch.int64))
        self.register_buffer("keep", torch.zeros(count, dtype=torch.bool))

    @torch.no_grad()
    def fit(self, windows: Float[Tensor, "windows features"], places: Int[Tensor, " windows"]) -> None:
        """Store windows, as many as there is room for, evenly; `places` are those of their ends."""
        count = min(len(windows), len(self.windows))
        chosen = torch.linspace(0, len(windows) - 1, count).round().long()
        self.windows[:count], self.places[:count] = windows[chosen], places[chosen]
        self.keep[:count], self.keep[count:] = True, False

    def forward(
        self, source: SeriesSource, places: Int[Tensor, " batch"] | None = None, weights: bool = False
    ) -> tuple[Float[Tensor, "batch time targets"], Float[Tensor, "batch 1 1 keys"] | None]:
        """Expected values of windows; `places` are those of the ends of windows of the training rows."""
        values = (source.data * source.observed).flatten(1)
        factor = torch.sqrt(2 / (values.shape[1] * self.log_width.exp()))
        attended = attend(
            (values * factor)[None, None],
            (self.windows * factor)[None, None],
            self.windows[None, None],
            score=Distance(1.0),
            scope=Stored(self.keep, self.places, places, self.window),
            offset=0,
            impl="reference",
            weights=weights,
        )
        looked = None if attended.weights is None else attended.weights[0, 0][:, None, None]
        return attended.context[0, 0].reshape(-1, self.window, self.targets), looked
