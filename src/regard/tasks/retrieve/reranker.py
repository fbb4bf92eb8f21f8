"""Re-ranking: a closer look at a picture and a text together, for the few that two towers found near."""

from functools import partial
from typing import NamedTuple, cast

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.types import Attended, Encoded
from regard.models.attention_factory import AttentionFactory, build_attention
from regard.models.layers.transformer import Sublayers
from regard.models.readout import NO_WEIGHTS, Weights, call_attention, collect_weights, require_attention


class Scored(NamedTuple):
    """Score of each pair, with the attention of the text's tokens over the picture."""

    scores: Float[Tensor, " pairs"]
    weights: Weights = NO_WEIGHTS


class Across(nn.Module):
    """Layer of a re-ranker: self-attention over a text, cross-attention to the regions of a picture, and feed-forward."""

    def __init__(self, regions: int, attention: AttentionFactory, sublayers: Sublayers):
        super().__init__()
        self.self, self.around_self = sublayers.build_self_attention(), sublayers.build_residual()
        self.cross = require_attention(attention(sublayers.size, regions), "re-ranking")
        self.fit = nn.Identity() if self.cross.size == sublayers.size else nn.Linear(self.cross.size, sublayers.size)
        self.around_cross = sublayers.build_residual()
        self.feedforward, self.around_feedforward = sublayers.build_feedforward(), sublayers.build_residual()

    def forward(self, text: Encoded, picture: Encoded, weights: bool) -> tuple[Encoded, Attended]:
        entered = self.around_self.normalise_input(text.data)
        heard = self.self(entered, self.self.remember(Encoded(entered, text.keep))).context
        data = self.around_self.add(text.data, heard)
        attended = call_attention(self.cross, self.around_cross.normalise_input(data), self.cross.remember(picture), weights)
        data = self.around_cross.add(data, self.fit(attended.context))
        data = self.around_feedforward.add(data, self.feedforward(self.around_feedforward.normalise_input(data)))
        return Encoded(data, text.keep), attended


class Reranking(nn.Module):
    """Score a picture and a text by what each piece of the text finds in the picture.

        x = layers([text], map),    score = w · relu(W mean(x)) + b

    As the fusion of Li et al. 2021, https://arxiv.org/abs/2107.07651, without their momentum. It reads what the encoders of
    two towers found (`Embedded.encoded`), so that a source is encoded once for all its pairs: `select(encoded, rows)` of
    models/types.py puts them side by side. Weights are called "layers.n.cross": one row for each piece.
    """

    def __init__(
        self,
        regions: int,
        pieces: int,
        size: int = 256,
        *,
        layers: int = 2,
        heads: int = 4,
        attention: AttentionFactory = partial(build_attention, "transformer"),
        dropout: float = 0.0,
    ):
        super().__init__()
        if layers < 1:
            raise ValueError(f"re-ranking needs 1 layer or more, got {layers}")
        sublayers = Sublayers(size, heads, drop_residual=dropout)
        self.enter = nn.Linear(pieces, size)
        self.layers = nn.ModuleList(Across(regions, attention, sublayers) for _ in range(layers))
        self.norm = sublayers.build_final_norm()
        self.output = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, 1))

    def forward(self, picture: Encoded, text: Encoded, *, weights: bool = False) -> Scored:
        """Row n of the pictures with row n of the texts."""
        if picture.data.shape[0] != text.data.shape[0]:
            raise ValueError(
                f"re-ranking scores pairs, as many pictures as texts, got {picture.data.shape[0]} and {text.data.shape[0]}; "
                "repeat what is in several pairs"
            )
        now, looks = Encoded(self.enter(text.data), text.keep), dict[str, Attended]()
        for number, layer in enumerate(self.layers):
            now, looks[f"layers.{number}.cross"] = cast(Across, layer)(now, picture, weights)
        return Scored(
            self.output(mean(now._replace(data=self.norm(now.data))))[:, 0],
            collect_weights(looks) if weights else NO_WEIGHTS,
        )


def mean(encoded: Encoded) -> Float[Tensor, "batch size"]:
    """Mean over the places that are no padding."""
    if encoded.keep is None:
        return encoded.data.mean(1)
    masked = encoded.data.masked_fill(~encoded.keep[..., None], 0.0)
    return masked.sum(1) / encoded.keep.sum(1).clamp_min(1)[:, None]
