"""Two towers and a closer look behind them: how well a picture and a text fit, pair by pair."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.data.batch import Padded
from regard.data.image.batch import Images
from regard.models.encoders.backbones import ImageEncoder
from regard.models.readout import NO_WEIGHTS, Weights
from regard.models.types import Encoder
from regard.tasks.retrieve.dual_encoder import Embedded, Towers
from regard.tasks.retrieve.reranker import Reranking


class Fitted(NamedTuple):
    """Score of each pair, with its attention."""

    scores: Float[Tensor, " pairs"]
    weights: Weights = NO_WEIGHTS


class Matching(Towers):
    """Two-tower model of pairs with, optionally, a re-ranker.

        fit(p, t) = s · p · t + share · reranking(map of p, pieces of t)

    Both are logits, of the right pair against wrong ones, so their sum is one too. How much the closer look counts is
    learned, from nothing on (tasks/retrieve/loss.py). Weights are called
    "picture.query.attention", "text.query.attention" and "reranking.layers.n.cross".
    """

    def __init__(
        self,
        pictures: ImageEncoder,
        texts: Encoder,
        space: int = 256,
        *,
        reranking: Reranking | None = None,
        **options: Any,
    ):
        super().__init__(pictures, texts, space, **options)
        self.reranking = reranking
        if reranking is not None:
            self.share = nn.Parameter(torch.zeros(()))

    def fit(self, pictures: Embedded, texts: Embedded, *, weights: bool = False) -> Fitted:
        """Row n of the pictures with row n of the texts."""
        scores = self.scale * (pictures.vectors.float() * texts.vectors.float()).sum(-1)
        looks = {**pictures.weights, **texts.weights} if weights else {}
        if self.reranking is not None:
            closer = self.reranking(pictures.encoded, texts.encoded, weights=weights)
            scores = scores + self.share * closer.scores.float()
            looks |= {f"reranking.{name}": weight for name, weight in closer.weights.items()}
        return Fitted(scores, looks)

    def paired(self, pictures: Images, texts: Padded, *, weights: bool = False) -> Fitted:
        """Pairs from their beginning: each picture with its text."""
        return self.fit(self.see(pictures, weights=weights), self.read(texts, weights=weights), weights=weights)
