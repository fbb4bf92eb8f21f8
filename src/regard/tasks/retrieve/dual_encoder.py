"""Two towers: pictures and texts as vectors of one space, in which those that belong together are near."""

import math
from functools import partial
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.types import Attended, Encoded
from regard.data.batch import Padded
from regard.data.image.batch import Images
from regard.models.attention_factory import AttentionFactory, build_attention
from regard.models.encoders import find_summary
from regard.models.layers.learned_queries import LearnedQueries
from regard.models.readout import NO_WEIGHTS, ImageEncoder, Weights, collect_weights
from regard.models.types import Encoder

HOTTEST = math.log(100.0)
"""The highest logarithm of a scale: beyond it a softmax is a maximum, and training unsteady."""


class Embedded(NamedTuple):
    """Vectors of length 1, what they were made from, and where was looked."""

    vectors: Float[Tensor, "batch space"]
    encoded: Encoded
    weights: Weights = NO_WEIGHTS


class Tower(nn.Module):
    """One vector for a source: what one learned query finds in it, beside its mean, in the common space.

    e = W [attention(q, source); summary(source)],    e / |e|
    """

    def __init__(self, encoder: int, space: int, attention: AttentionFactory, dropout: float = 0.0):
        super().__init__()
        self.query = LearnedQueries(1, encoder, encoder, attention)
        self.drop = nn.Dropout(dropout)
        self.output = nn.Linear(2 * encoder, space, bias=False)

    def forward(self, encoded: Encoded, weights: bool = False) -> tuple[Float[Tensor, "batch space"], Attended]:
        attended = self.query(encoded, weights)
        both = torch.cat((attended.context[:, 0], find_summary(encoded)), dim=-1)
        return F.normalize(self.output(self.drop(both)), dim=-1), attended


class Towers(nn.Module):
    """A tower for pictures and one for texts; the nearer two vectors, the likelier they belong together.

        logits_ij = s · p_i · t_j,    s = exp(learned), at most 100

    Radford et al. 2021, https://arxiv.org/abs/2103.00020
    Weights are called "picture.query.attention" and "text.query.attention": one row each.
    """

    def __init__(
        self,
        pictures: ImageEncoder,
        texts: Encoder,
        space: int = 256,
        *,
        attention: AttentionFactory = partial(build_attention, "transformer"),
        scale: float = 1 / 0.07,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.pictures, self.texts, self.space = pictures, texts, space
        self.picture = Tower(pictures.size, space, attention, dropout)
        self.text = Tower(texts.size, space, attention, dropout)
        self.heat = nn.Parameter(torch.tensor(math.log(scale)))

    @property
    def scale(self) -> Float[Tensor, ""]:
        """How much a similarity counts: one over the temperature."""
        return self.heat.clamp_max(HOTTEST).exp()

    def see(self, pictures: Images, *, weights: bool = False) -> Embedded:
        """Pictures as vectors."""
        encoded = self.pictures(pictures)
        vectors, attended = self.picture(encoded, weights)
        return Embedded(vectors, encoded, collect_weights({"picture.query.attention": attended}))

    def read(self, texts: Padded, *, weights: bool = False) -> Embedded:
        """Texts as vectors."""
        encoded = self.texts(texts)
        vectors, attended = self.text(encoded, weights)
        return Embedded(vectors, encoded, collect_weights({"text.query.attention": attended}))

    def forward(self, pictures: Images, texts: Padded) -> Float[Tensor, "pictures texts"]:
        """The logits of every picture with every text."""
        return self.compare(self.see(pictures).vectors, self.read(texts).vectors)

    def compare(
        self, pictures: Float[Tensor, "pictures space"], texts: Float[Tensor, "texts space"]
    ) -> Float[Tensor, "pictures texts"]:
        """The logits of vectors, in float32 whatever an autocast computes in: a half cannot tell near ones apart."""
        with torch.autocast(pictures.device.type, enabled=False):
            return self.scale * pictures.float() @ texts.float().mT
