"""Pointing: whether a model that tells what is on a picture looks at what it names."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.normalise import widen
from regard.data.batch import shifted
from regard.data.image.synthetic.captioned import Drawing
from regard.data.image.types import Pictured
from regard.data.text.tokenizers.offsets import Span, spans
from regard.decoding.attention_weights import crosses
from regard.metrics.text import Measured, Rows, bootstrap
from regard.models.encoders.feature_map import shrink

if TYPE_CHECKING:
    from regard.inference.predictor import Trained

LOOKS = "looks"
SAYS = "words of the right caption that name a thing, and whose largest weight lies on the box of one, in per cent"


def pointing(trained: "Trained", examples: Sequence[Any]) -> dict[str, Measured]:
    """The share of words whose attention is where what they name is, for pictures that were drawn; nothing for others.

    The model is shown the right caption word by word, so that every word has its things whatever it would have written. Of
    a word in several tokens the weights are added up.
    """
    drawn = [example for example in examples if isinstance(example, Pictured) and isinstance(example.picture, Drawing)]
    if not drawn or not any(map(crosses, trained.model.attentions())):
        return {}
    rows: Rows = np.array(list(hits(trained, drawn)), dtype=np.float64)

    def score(total: Rows) -> float:
        return float(100 * total[0] / max(total[1], 1.0))

    return {LOOKS: Measured(score(rows.sum(0)), *bootstrap(rows, score), SAYS)}


def hits(trained: "Trained", examples: Sequence[Pictured]) -> Iterator[tuple[int, int]]:
    """For each example how many of its words look at what they name, and how many name something."""
    codec, device = trained.codec, next(trained.model.parameters()).device
    table = codec.target.table
    for indices, batch in codec.loader(examples, codec.budget(examples, trained.config.search.batch)).in_order():
        with torch.no_grad():
            step = trained.model(batch.source.to(device), shifted(batch.target.data.to(device)), weights=True)
        looks = {
            name: widen(each.weights) for name, each in step.attended.items() if crosses(name) and each.weights is not None
        }
        kept = shrink(batch.source.keep, codec.stride).flatten(1)
        for row, index in enumerate(indices):
            example = examples[index]
            read = trained.head.read(
                {name: weights[row].cpu()[..., -kept.shape[1] :][..., kept[row]] for name, weights in looks.items()}
            )
            text = codec.target.decode(example.target[:-1])
            yield hit(example.picture, read, spans(codec.target, example.target, text, table), codec.stride)


def hit(drawing: Drawing, weights: Float[Tensor, "target places"], covered: Sequence[Span], stride: int) -> tuple[int, int]:
    """How many words of a caption look at what they name, where `covered` is what each token covers of it."""
    found = told = 0
    for word in drawing.caption.words:
        rows = [row for row, span in enumerate(covered) if span and span[0] < word.end and span[1] > word.start]
        if not word.things or not rows:
            continue
        on = shrink(drawing.region(word.things)[None], stride)[0].flatten()
        found += bool(on[int(weights[rows].sum(0).argmax())])
        told += 1
    return found, told
