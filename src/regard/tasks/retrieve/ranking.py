"""Embedding and re-ranking: vectors of pictures and texts, and cross-attention scores of selected pairs."""

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
"""Texts encoded, and pairs scored, at a time."""
Batches = Callable[[Sequence[ImageExample]], Iterator[Any]]
"""Splits pictures into batches, each with the indices of its pictures."""
Pair = tuple[int, int]
"""The numbers of a picture and of a text."""


@torch.no_grad()
def encode_pictures(model: Matching, pictures: Sequence[ImageExample], batches: Batches) -> Float[Tensor, "pictures space"]:
    """Embeddings of pictures, in their order."""
    vectors = torch.zeros(len(pictures), model.space)
    for places, batch in batches(pictures):
        vectors[places] = model.see(batch.source.to(_device(model))).vectors.float().cpu()
    return vectors


@torch.no_grad()
def encode_texts(model: Matching, texts: Sequence[list[int]]) -> Float[Tensor, "texts space"]:
    """Embeddings of texts, in their order; texts of similar length are batched together."""
    vectors = torch.zeros(len(texts), model.space)
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    for first in range(0, len(order), TOGETHER):
        places = order[first : first + TOGETHER]
        vectors[places] = embed_texts(model, [texts[place] for place in places]).vectors.float().cpu()
    return vectors


def embed_texts(model: Matching, texts: Sequence[list[int]]) -> Embedded:
    """Text encoder output of a batch of texts."""
    return model.read(pad(texts).to(_device(model)))


@torch.no_grad()
def score_pairs(
    model: Matching, pictures: Sequence[ImageExample], texts: Sequence[list[int]], pairs: Sequence[Pair], batches: Batches
) -> Float[Tensor, " pairs"]:
    """Re-ranker score of each pair. A picture is encoded once for all of its pairs; one batch of maps is in memory."""
    scores, of_picture = torch.zeros(len(pairs)), defaultdict[int, list[int]](list)
    for number, (picture, _) in enumerate(pairs):
        of_picture[picture].append(number)
    wanted = sorted(of_picture)
    for places, batch in batches([pictures[index] for index in wanted]):
        maps = model.see(batch.source.to(_device(model)))
        pairs_here = [(row, number) for row, place in enumerate(places) for number in of_picture[wanted[place]]]
        for first in range(0, len(pairs_here), TOGETHER):
            some = pairs_here[first : first + TOGETHER]
            scores[[number for _, number in some]] = _score_part(model, maps, texts, [(row, pairs[n][1]) for row, n in some])
    return scores


def _score_part(
    model: Matching, maps: Embedded, texts: Sequence[list[int]], some: Sequence[Pair]
) -> Float[Tensor, " pairs"]:
    """Scores of pairs of a row of the feature maps and a text, each text encoded once."""
    known = {text: place for place, text in enumerate(dict.fromkeys(text for _, text in some))}
    words = embed_texts(model, [texts[index] for index in known])
    rows, places = torch.tensor([(row, known[text]) for row, text in some], device=_device(model)).unbind(1)
    return model.fit(select_rows(maps, rows), select_rows(words, places)).scores.float().cpu()


def select_rows(these: Embedded, rows: Tensor) -> Embedded:
    """Rows of an encoder output, with repetition."""
    base = these.encoded._replace(final=(), tokens=None)
    selected: Embedded = Embedded(these.vectors[rows], select(base._replace(grid=None), rows)._replace(grid=base.grid))
    return selected


def select_nearest(logits: Float[Tensor, "questions answers"], most: int) -> Bool[Tensor, "questions answers"]:
    """Mask of the candidates to re-rank: the `most` nearest of each query."""
    places = logits.topk(min(most, logits.shape[1]), dim=1).indices
    return torch.zeros_like(logits, dtype=torch.bool).scatter_(1, places, True)


def merge_rankings(
    logits: Float[Tensor, "questions answers"],
    closer: Float[Tensor, "questions answers"],
    reranked: Bool[Tensor, "questions answers"],
) -> Float[Tensor, "questions answers"]:
    """Scores that put re-ranked candidates first, in the order of the re-ranker, and the rest in their own order."""
    far, near = logits.double(), closer.double()
    least = near.masked_fill(~reranked, torch.inf).amin(1, keepdim=True)
    return torch.where(reranked, near - least + far.amax(1, keepdim=True) + 1, far)


def _device(model: Matching) -> torch.device:
    return next(model.parameters()).device
