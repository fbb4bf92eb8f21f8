"""A closer look: pictures and texts as vectors, and how well chosen pairs of them fit."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.data.batch import pad
from regard.data.image.types import ImageExample
from regard.tasks.retrieve.dual_encoder import Embedded
from regard.tasks.retrieve.model import Matching
from regard.tree import select

TOGETHER = 256
"""How many texts are read, and how many pairs looked at, at a time."""
Batches = Callable[[Sequence[ImageExample]], Iterator[Any]]
"""Cuts pictures into batches, each with the places of its pictures."""
Pair = tuple[int, int]
"""The numbers of a picture and of a text."""


@torch.no_grad()
def seen(model: Matching, pictures: Sequence[ImageExample], batches: Batches) -> Float[Tensor, "pictures space"]:
    """Pictures as vectors, in their order."""
    vectors = torch.zeros(len(pictures), model.space)
    for places, batch in batches(pictures):
        vectors[places] = model.see(batch.source.to(_where(model))).vectors.float().cpu()
    return vectors


@torch.no_grad()
def read(model: Matching, texts: Sequence[list[int]]) -> Float[Tensor, "texts space"]:
    """Texts as vectors, in their order; those of one length are read together."""
    vectors = torch.zeros(len(texts), model.space)
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    for first in range(0, len(order), TOGETHER):
        places = order[first : first + TOGETHER]
        vectors[places] = embedded(model, [texts[place] for place in places]).vectors.float().cpu()
    return vectors


def embedded(model: Matching, texts: Sequence[list[int]]) -> Embedded:
    """Texts as a model reads them."""
    return model.read(pad(texts).to(_where(model)))


@torch.no_grad()
def fits(
    model: Matching, pictures: Sequence[ImageExample], texts: Sequence[list[int]], pairs: Sequence[Pair], batches: Batches
) -> Float[Tensor, " pairs"]:
    """How well each pair fits. A picture is read once for all of its pairs, and no more than a batch of maps is kept."""
    scores, of_picture = torch.zeros(len(pairs)), defaultdict[int, list[int]](list)
    for number, (picture, _) in enumerate(pairs):
        of_picture[picture].append(number)
    wanted = sorted(of_picture)
    for places, batch in batches([pictures[each] for each in wanted]):
        maps = model.see(batch.source.to(_where(model)))
        asked = [(row, number) for row, place in enumerate(places) for number in of_picture[wanted[place]]]
        for first in range(0, len(asked), TOGETHER):
            some = asked[first : first + TOGETHER]
            scores[[number for _, number in some]] = _scored(model, maps, texts, [(row, pairs[n][1]) for row, n in some])
    return scores


def _scored(model: Matching, maps: Embedded, texts: Sequence[list[int]], some: Sequence[Pair]) -> Float[Tensor, " pairs"]:
    """Pairs of a row of the maps and the number of a text, each of which is read once."""
    known = {text: place for place, text in enumerate(dict.fromkeys(text for _, text in some))}
    words = embedded(model, [texts[each] for each in known])
    rows, places = torch.tensor([(row, known[text]) for row, text in some], device=_where(model)).unbind(1)
    return model.fit(chosen(maps, rows), chosen(words, places)).scores.float().cpu()


def chosen(these: Embedded, rows: Tensor) -> Embedded:
    """Some of what was seen or read, each as often as it is named."""
    kept = these.encoded._replace(final=(), tokens=None)
    found: Embedded = Embedded(these.vectors[rows], select(kept._replace(grid=None), rows)._replace(grid=kept.grid))
    return found


def nearest(logits: Float[Tensor, "questions answers"], most: int) -> Bool[Tensor, "questions answers"]:
    """The answers that are looked at more closely: the `most` nearest of each question."""
    places = logits.topk(min(most, logits.shape[1]), dim=1).indices
    return torch.zeros_like(logits, dtype=torch.bool).scatter_(1, places, True)


def arranged(
    logits: Float[Tensor, "questions answers"],
    closer: Float[Tensor, "questions answers"],
    looked: Bool[Tensor, "questions answers"],
) -> Float[Tensor, "questions answers"]:
    """Scores that put what was looked at more closely first, in the order of that look, and the rest as it was."""
    far, near = logits.double(), closer.double()
    least = near.masked_fill(~looked, torch.inf).amin(1, keepdim=True)
    return torch.where(looked, near - least + far.amax(1, keepdim=True) + 1, far)


def _where(model: Matching) -> torch.device:
    return next(model.parameters()).device
