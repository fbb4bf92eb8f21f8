"""The reward of one output: a metric of single sentences, from 0 to 1, that a training can go by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from regard.data.text.vocabulary import EOS

Text = Callable[[Sequence[int]], str]
"""What the numbers of an output say to a person."""


@dataclass(frozen=True)
class Reward:
    """How good an output is beside its reference; both are token numbers, and count up to their first EOS.

        exact   1 where the tokens are the same, else 0
        edit    1 - d / max(n, m), with d the edit distance of the tokens, n and m how many there are
        chrf    chrF of the texts / 100
        bleu    BLEU of the texts / 100, smoothed, of n-grams as long as both have

    A metric of single sentences is not that of a corpus, whose parts do not add up; it moves with it.
    `tokenise` is how BLEU cuts text: auto is zh where the reference has Chinese in it, else 13a.
    """

    metric: Literal["chrf", "bleu", "edit", "exact"]
    text: Text
    tokenise: str = "auto"

    def __call__(self, output: Sequence[int], reference: Sequence[int]) -> float:
        output, reference = until_end(output), until_end(reference)
        if output == reference:
            return 1.0
        if self.metric == "exact":
            return 0.0
        if self.metric == "edit":
            return similarity(output, reference)
        right = self.text(reference)
        metric = _chrf() if self.metric == "chrf" else _bleu(self.cut(right))
        return min(1.0, float(metric.sentence_score(self.text(output), [right]).score) / 100)

    def cut(self, reference: str) -> str:
        """How BLEU cuts this reference."""
        chinese = any("\u4e00" <= letter <= "\u9fff" for letter in reference)
        return self.tokenise if self.tokenise != "auto" else "zh" if chinese else "13a"


def similarity(first: Sequence[int], second: Sequence[int]) -> float:
    """1 less the edit distance (Levenshtein), as a share of the longer one."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_similarity(first, second))


def until_end(numbers: Sequence[int]) -> list[int]:
    """The numbers before the first EOS."""
    numbers = list(numbers)
    return numbers[: numbers.index(EOS)] if EOS in numbers else numbers


@cache
def _chrf() -> Any:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF()


@cache
def _bleu(tokenise: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenise, effective_order=True)
