"""Prediction: one answer of a trained model."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor

SHOWN_LENGTH = 80
"""Characters of an answer in its repr."""


class Prediction(NamedTuple):
    """One answer: its text, its score, its tokens, and, on request, the attention weights of each target token.

    `weights` are those of the model's alignment head (`head` of the model): unless one was chosen, the last attention over
    the source, averaged over its heads. `links` are (source token, target token) pairs. The source tokens of an image are
    the cells of a feature map, row after row, behind one for the whole image where the model has such; `grid` is the map's
    number of rows and columns. `boxes` are those of detected objects, one for each target token: left, top, right and
    bottom, in pixels of the image as it is; `scores` are their probabilities. `fields` are those that JSON has beside the
    text, of an answer that is a table. `printed` is the answer as a command prints it, where that is not its text. `output`
    is an answer that is no text, such as the samples of a sound, as the codec's `write` takes it.
    """

    text: str
    score: float
    source: list[str]
    target: list[str]
    weights: Float[Tensor, "target source"] | None = None
    links: list[tuple[int, int]] | None = None
    grid: tuple[int, int] | None = None
    boxes: list[tuple[float, float, float, float]] | None = None
    scores: list[float] | None = None
    fields: Mapping[str, Any] | None = None
    printed: str | None = None
    output: Any = None

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= SHOWN_LENGTH else self.text[: SHOWN_LENGTH - 3] + "..."
        parts = [repr(text), f"score {self.score:.4f}", f"{len(self.source)} source and {len(self.target)} target tokens"]
        if self.weights is not None:
            parts.append(f"weights {tuple(self.weights.shape)}")
        parts += [
            f"{len(values)} {name}" for name, values in (("links", self.links), ("boxes", self.boxes)) if values is not None
        ]
        return f"Prediction({', '.join(parts)})"
