"""Dual encoder: embeddings of pictures and texts in one space, where matching pairs are near."""

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
"""Maximum of the learned log-scale, as in CLIP: a larger one makes training unstable."""


class Embedded(NamedTuple):
    """Embeddings of norm 1, the encoder outputs that they were pooled from, and the attention weights."""

    vectors: Float[Tensor, "batch space"]
    encoded: Encoded
    weights: Weights = NO_WEIGHTS


class Tower(nn.Module):
    """Pooling and projection of one encoder: attention of one learned query, concatenated with the summary of the source.

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
    """Dual encoder of pictures and texts: logits are scaled cosine similarities.

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
        """Scale of the similarities, the inverse of the temperature."""
        return self.heat.clamp_max(HOTTEST).exp()

    def see(self, pictures: Images, *, weights: bool = False) -> Embedded:
        """Embed pictures."""
        encoded = self.pictures(pictures)
        vectors, attended = self.picture(encoded, weights)
        return Embedded(vectors, encoded, collect_weights({"picture.query.attention": attended}))

    def read(self, texts: Padded, *, weights: bool = False) -> Embedded:
        """Embed texts."""
        encoded = self.texts(texts)
        vectors, attended = self.text(encoded, weights)
        return Embedded(vectors, encoded, collect_weights({"text.query.attention": attended}))

    def forward(self, pictures: Images, texts: Padded) -> Float[Tensor, "pictures texts"]:
        """Logits of every picture with every text."""
        return self.compare(self.see(pictures).vectors, self.read(texts).vectors)

    def compare(
        self, pictures: Float[Tensor, "pictures space"], texts: Float[Tensor, "texts space"]
    ) -> Float[Tensor, "pictures texts"]:
        """Logits of embeddings, in float32 even under autocast: half precision cannot separate close similarities."""
        with torch.autocast(pictures.device.type, enabled=False):
            return self.scale * pictures.float() @ texts.float().mT
