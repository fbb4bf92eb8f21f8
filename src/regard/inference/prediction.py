"""What a trained model answers."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor


class Prediction(NamedTuple):
    """One answer: its text, what the model thinks of it, and, where asked for, what each piece of it looked at.

    `weights` are those of the head that was chosen for the model (`Trained.head`): unless one was, the last attention over
    the source, averaged over its heads. `links` are (source piece, target piece) pairs. The pieces of a picture are the
    places of a map, row after row, behind one for the whole where the model has such, and `grid` says how many rows and
    columns the map has. `boxes` are those of things that were
    found on it, one for each target piece: left, top, right and bottom, in pixels of the picture as it is; `scores` say how
    likely each of them is.
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
