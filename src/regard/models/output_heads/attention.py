"""Output layer by attention over the vocabulary: the weights are the distribution."""

import inspect
import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard import registry
from regard.attention.score import compare, is_positional, prepare
from regard.models.output_heads import build_weight


class Attention(nn.Module):
    """Attention over the vocabulary: the decoder state is the query, the embeddings are the keys, the weights are p(y).

        p(y) = softmax_y(β score(x, E_y))

    The score is any of ours that compares a query with a key: dot, scaled_dot, cosine, distance, bilinear, additive, concat.
    By dot and tied it is the output layer of Press and Wolf 2017, https://arxiv.org/abs/1608.05859, without its bias; the
    pointer of Vinyals, Fortunato and Jaitly 2015, https://arxiv.org/abs/1506.03134, looks at places of the source as this
    looks at words. β is learned and begins at `scale`: without it a cosine could never be sure of a word, since its weights
    differ by e² at most. A score that needs one size gets the query fitted to the key's. What comes out is β score, the
    logarithm of the weights but for a constant.
    Cost: that of the score with V keys, memory T V; additive and concat need T V hidden, so they are for small vocabularies.
    """

    def __init__(self, size: int, vocabulary: int, embedding: int, tie: bool = True, score: str = "dot", scale: float = 1.0):
        super().__init__()
        if not 0 < scale < math.inf:
            raise ValueError(f"the output attention needs a scale above 0, got {scale}; 1 leaves scores as they are")
        key = embedding if tie else size
        query = key if getattr(find_score(score), "one_size", False) else size
        self.fit = nn.Identity() if size == query else nn.Linear(size, query, bias=False)
        self.score = registry.build(score, "score", query=query, key=key)
        self.weight = build_weight(vocabulary, size, tie)
        self.sharpness = nn.Parameter(torch.tensor(math.log(scale)))

    def forward(
        self, data: Float[Tensor, "rows time size"], table: Float[Tensor, "vocabulary embedding"]
    ) -> Float[Tensor, "rows time vocabulary"]:
        keys = prepare(self.score, (table if self.weight is None else self.weight)[None, None])  # 1 1 vocabulary dim
        query = self.fit(data).flatten(0, 1)[None, None]  # all rows ask the one set of keys
        scores = compare(self.score, query, keys)[0, 0] * self.sharpness.exp()
        return torch.unflatten(scores, 0, data.shape[:2])


def find_score(score: str) -> type:
    """Class of a score by its name; it must compare a query with a key and use no positions."""
    score_class = registry.find(score, "score")
    if is_positional(score_class) or "limit" in inspect.signature(score_class).parameters:
        raise ValueError(
            f"model.output.score={score} looks at positions, and the words of a vocabulary have none; "
            "choose a score that compares vectors, such as dot, cosine or bilinear"
        )
    return score_class
