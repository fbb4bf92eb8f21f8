"""Pointing accuracy: how often a captioning model attends to the object that a word names."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.normalise import widen
from regard.data.batch import shifted
from regard.data.image.synthetic.captioned import Drawing
from regard.data.image.types import ImageExample
from regard.data.text.tokenizers.offsets import Span, spans
from regard.decoding.attention_weights import is_cross_attention
from regard.metrics.text import Measurement, Rows, bootstrap
from regard.models.encoders.feature_map import downsample_mask

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import SequencePredictor

LOOKS = "looks"
SAYS = "words of the right caption that name a thing, and whose largest weight lies on the box of one, in per cent"


def measure_pointing(trained: "SequencePredictor", examples: Sequence[Any]) -> dict[str, Measurement]:
    """Share of words whose attention peaks on the object they name, for synthetic pictures; empty for others.

    Teacher forcing on the right caption, so that every word has its objects whatever the model would have written. Weights
    of a word in several tokens are added up.
    """
    synthetic = [
        example for example in examples if isinstance(example, ImageExample) and isinstance(example.picture, Drawing)
    ]
    if not synthetic or not any(map(is_cross_attention, trained.model.attentions())):
        return {}
    rows: Rows = np.array(list(count_hits(trained, synthetic)), dtype=np.float64)

    def score(total: Rows) -> float:
        return float(100 * total[0] / max(total[1], 1.0))

    return {LOOKS: Measurement(score(rows.sum(0)), *bootstrap(rows, score), SAYS)}


def count_hits(trained: "SequencePredictor", examples: Sequence[ImageExample]) -> Iterator[tuple[int, int]]:
    """Number of words with a correct peak, and of words that name an object, for each example."""
    codec, device = trained.codec, next(trained.model.parameters()).device
    table = codec.target.table
    budget = codec.budget(examples, trained.config.search.select_batch_size())
    for indices, batch in codec.loader(examples, budget).in_order():
        with torch.no_grad():
            step = trained.model(batch.source.to(device), shifted(batch.target.data.to(device)), weights=True)
        attended = {
            name: widen(result.weights)
            for name, result in step.attended.items()
            if is_cross_attention(name) and result.weights is not None
        }
        keep = downsample_mask(batch.source.keep, codec.stride).flatten(1)
        for row, index in enumerate(indices):
            example = examples[index]
            read = trained.head.read(
                {name: weights[row].cpu()[..., -keep.shape[1] :][..., keep[row]] for name, weights in attended.items()}
            )
            text = codec.target.decode(example.target[:-1])
            yield count_word_hits(example.picture, read, spans(codec.target, example.target, text, table), codec.stride)


def count_word_hits(
    drawing: Drawing, weights: Float[Tensor, "target places"], covered: Sequence[Span], stride: int
) -> tuple[int, int]:
    """Count the words of a caption with a correct peak, and those that name an object; `covered` are the tokens' spans."""
    hits = objects = 0
    for word in drawing.caption.words:
        rows = [row for row, span in enumerate(covered) if span and span[0] < word.end and span[1] > word.start]
        if not word.things or not rows:
            continue
        on = downsample_mask(drawing.region(word.things)[None], stride)[0].flatten()
        hits += bool(on[int(weights[rows].sum(0).argmax())])
        objects += 1
    return hits, objects
