"""Back-translation: targets without a source get one from a model that goes the other way.

Sennrich, Haddow and Birch 2016, https://arxiv.org/abs/1511.06709: the target is real, and that is what the model learns to
write. The decoding of sources matters: sampled or noised ones train better than those of beam search, unless data is very
scarce (Edunov et al. 2018, https://arxiv.org/abs/1808.09381).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import NamedTuple

import torch

from regard.data.lines import Line
from regard.data.loader import SequenceLoader
from regard.data.table import Record
from regard.data.text.noise import Noise
from regard.decoding.sample import sample
from regard.errors import DataError
from regard.inference.sequence_predictor import SequencePredictor
from regard.training.seed import mix_seed

WINDOW = 1024
"""Lines that are answered together."""
BREAKS = str.maketrans({"\t": " ", "\n": " ", "\r": " "})
"""Characters that a table cannot hold inside a text."""


class Pair(NamedTuple):
    """A source that a model wrote for a real target; empty where it found none."""

    source: str
    target: str


@dataclass(frozen=True)
class Way:
    """Decoding of sources: beam search, greedy or sampling at a temperature; with noise; with a tag.

    A tag tells the model which sources are synthetic: Caswell, Chelba and Grangier 2019, https://arxiv.org/abs/1906.06442
    """

    draw: str = "beam"
    beam: int = 5
    temperature: float = 1.0
    noise: bool = False
    tag: str = ""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.draw not in ("beam", "sample", "greedy"):
            raise ValueError(f"a source is found by beam, sample or greedy, got {self.draw!r}")
        if self.draw == "sample" and self.temperature == 0:
            raise ValueError("a temperature of 0 draws nothing; that is greedy search")


def backtranslate(model: SequencePredictor, targets: Iterable[Line], way: Way = Way()) -> Iterator[list[Pair]]:
    """A pair for each line, so many lines at a time.

    A line that is empty, that the model knows nothing of or that is longer than what it reads has no source.

    Samples depend on the seed and the line number alone, for equal neighbouring lines.
    """
    model.text_codec("back-translation")
    lines = iter(targets)
    number = 0
    while window := list(islice(lines, WINDOW)):
        for line in window:
            if "\t" in line.text:
                raise DataError(f"{line.where} has a tab in it, which would part the target in a table; take it out")
        known = [bool(line.text.strip()) and model.fits(line.text) for line in window]
        generated = iter(sources(model, [line.text for line, fine in zip(window, known, strict=True) if fine], way, number))
        pairs = [Pair(next(generated) if fine else "", line.text) for line, fine in zip(window, known, strict=True)]
        yield [_dressed(pair, way, Random(mix_seed(way.seed, number + place))) for place, pair in enumerate(pairs)]
        number += len(window)


def sources(model: SequencePredictor, texts: Sequence[str], way: Way, number: int) -> list[str]:
    """A source for each text, as the model writes it; `number` is that of the first line."""
    if way.draw == "sample":
        return sample_sources(model, texts, way.temperature, torch.Generator().manual_seed(mix_seed(way.seed, number)))
    answers = model.predict(texts, beam=way.beam if way.draw == "beam" else 1)
    return [answer.text for answer in answers]


@torch.no_grad()
def sample_sources(
    model: SequencePredictor, texts: Sequence[str], temperature: float, generator: torch.Generator
) -> list[str]:
    """A source for each text, token by token as often as the model finds it likely; never an unknown word."""
    records = [model.task.prepare(Record(text, None, f"input:{number}")) for number, text in enumerate(texts, 1)]
    examples = model.codec.encode_all(records, over_long="truncate").examples
    answers, device = [""] * len(texts), next(model.model.parameters()).device
    parts = SequenceLoader(examples, model.config.data.batch_tokens, shuffle=False).in_order() if examples else ()
    for indices, batch in parts:
        memory = model.model.encode(batch.source.to(device))
        most = [model.longest(length) for length in batch.source.keep.sum(1).tolist()]
        samples = sample(
            model.model.decoder, memory, length=most, temperature=temperature, generator=generator, unknown=False
        )
        for index, hypothesis in zip(indices, samples, strict=True):
            answers[index] = model.task.finish(model.codec_of(examples[index]).decode(hypothesis.tokens))
    return answers


def _dressed(pair: Pair, way: Way, chance: Random) -> Pair:
    """The source as it goes into a table: on one line, noised and tagged where that is asked for."""
    source = pair.source.translate(BREAKS).strip()
    if source and way.noise:
        source = Noise()(source, chance)
    return pair._replace(source=f"{way.tag} {source}" if source and way.tag else source)
