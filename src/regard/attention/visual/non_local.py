"""Non-local blocks: self-attention over the positions of a feature map."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.attend import attend
from regard.attention.masked_pool import Keep, fill_lowest, zero_padding
from regard.attention.normalise import Allowed, Scores, silence
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.padding import Padding
from regard.attention.score.concat import Concat
from regard.attention.score.dot import Dot
from regard.attention.types import Attended, Normaliser
from regard.attention.visual import Image, Visual

Places = Float[Tensor, "batch 1 places size"]


class QueryKeyValue(NamedTuple):
    """Query, key and value of a map, as attend() takes them: one head."""

    query: Places
    key: Places
    value: Places


@dataclass(frozen=True)
class MeanNormaliser:
    """Normaliser by the number of keys: the weights are the scores over N.

        a_k = s_k / N,    or    max(0, s_k) / N  where `positive`

    The C(x) = N of Wang et al. 2018, section 3.2, https://arxiv.org/abs/1711.07971
    """

    positive: bool = False
    sums_to_one: ClassVar[bool] = False

    def __call__(self, scores: Scores, allowed: Allowed | None = None) -> Scores:
        count = scores.shape[-1] if allowed is None else allowed.sum(-1, keepdim=True).clamp_min(1)
        return silence((scores.clamp_min(0) if self.positive else scores) / count, allowed)


NORMALISERS: dict[str, Normaliser] = {
    "gaussian": Softmax(),
    "embedded": Softmax(),
    "dot": MeanNormaliser(),
    "concat": MeanNormaliser(positive=True),
}
"""The C(x) of each version."""


class NonLocal(Visual):
    """Self-attention over the positions of a feature map with a residual connection.

        y_i = Σ_j f(x_i, x_j) g(x_j) / C(x),    z_i = W_z y_i + x_i
        gaussian  f = exp(x_iᵀ x_j)              embedded  f = exp(θ(x_i)ᵀ φ(x_j)),    C(x) = Σ_j f: the softmax
        dot       f = θ(x_i)ᵀ φ(x_j)             concat    f = max(0, wᵀ [θ(x_i); φ(x_j)]),    C(x) = N

    Wang et al. 2018, section 3, eq. 1 to 6, https://arxiv.org/abs/1711.07971
    θ, φ and g are linear with `inner` output channels, by default half of the input's. `subsample` max-pools keys and values
    over squares of that side. W_z is initialised to zero, so that the block begins as the identity. Unlike the paper, no
    batch norm follows it: the maps of a batch do not influence each other. Weights are (batch, 1, height · width, keys). The
    context includes W_z and the residual, so it is not weights @ g.
    Cost: time O(N² C) for N = H W positions, N² C / s² subsampled by s; memory N² where no fused kernel covers it.
    """

    axes: ClassVar[tuple[str, str, str]] = ("", "place", "place")

    def __init__(
        self,
        channels: int,
        version: Literal["embedded", "gaussian", "dot", "concat"] = "embedded",
        inner: int | None = None,
        subsample: int = 1,
    ):
        super().__init__(channels)
        if version not in NORMALISERS:
            raise ValueError(f"version needs to be one of {', '.join(NORMALISERS)}, got {version!r}")
        if subsample < 1:
            raise ValueError(f"subsample needs to be 1 place or more, got {subsample}")
        inner = inner or max(channels // 2, 1)
        self.subsample = subsample
        self.theta, self.phi = (
            nn.Identity() if version == "gaussian" else nn.Linear(channels, inner) for _ in ("theta", "phi")
        )
        self.g, self.output = nn.Linear(channels, inner), nn.Linear(inner, channels)
        self.score: Any = Concat(inner, inner, hidden=1, tanh=False) if version == "concat" else Dot()
        self.normalise = NORMALISERS[version]
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def sides(self, image: Image, keep: Keep = None) -> QueryKeyValue:
        """Query, key and value."""
        source = image if self.subsample == 1 else self.shrink(fill_lowest(image, keep))
        queries, keys = image.flatten(2).mT[:, None], zero_padding(source, self.pool_mask(keep)).flatten(2).mT[:, None]
        return QueryKeyValue(self.theta(queries), self.phi(keys), self.g(keys))

    def pool_mask(self, keep: Keep) -> Bool[Tensor, "batch rows columns"] | None:
        """The padding mask of the keys: those with a kept position in their square."""
        return keep if keep is None or self.subsample == 1 else self.shrink(keep[:, None].float())[:, 0] > 0

    def shrink(self, image: Image) -> Float[Tensor, "batch channels rows columns"]:
        """Max pooling over squares of `subsample` positions a side."""
        return F.max_pool2d(image, self.subsample, ceil_mode=True)

    def attend(self, image: Image, weights: bool = True, keep: Keep = None) -> Attended:
        """The three stages by attend(), and the residual connection around them."""
        self.check(image, keep)
        image, pooled_keep = zero_padding(image, keep), self.pool_mask(keep)
        scope = Everywhere() if pooled_keep is None else Padding(pooled_keep.flatten(1))
        sides = self.sides(image, keep)
        attended = attend(*sides, score=self.score, normalise=self.normalise, scope=scope, weights=weights)
        residual = self.output(attended.context[:, 0]).mT.unflatten(-1, image.shape[2:])
        return attended._replace(context=zero_padding(image + residual, keep))
