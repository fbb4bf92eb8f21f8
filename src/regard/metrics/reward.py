"""Sentence-level rewards, from 0 to 1, for sequence-level training."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from regard.data.special_tokens import EOS

Detokenize = Callable[[Sequence[int]], str]
"""Function from token ids to text."""


@dataclass(frozen=True)
class Reward:
    """Reward of an output given its reference; both are token ids, and count up to their first EOS.

        exact   1 where the tokens are the same, else 0
        edit    1 - d / max(n, m), with d the edit distance of the tokens, n and m how many there are
        chrf    chrF of the texts / 100
        bleu    BLEU of the texts / 100, smoothed, of n-grams as long as both have

    A sentence-level metric is not the corpus metric, whose parts do not add up; it correlates with it. `tokenize` is BLEU's
    tokenizer: auto is zh where the reference has Chinese in it, else 13a.
    """

    metric: Literal["chrf", "bleu", "edit", "exact"]
    text: Detokenize
    tokenize: str = "auto"

    def __call__(self, output: Sequence[int], reference: Sequence[int]) -> float:
        output, reference = cut_at_eos(output), cut_at_eos(reference)
        if output == reference:
            return 1.0
        if self.metric == "exact":
            return 0.0
        if self.metric == "edit":
            return edit_similarity(output, reference)
        right = self.text(reference)
        metric = _chrf() if self.metric == "chrf" else _bleu(self.cut(right))
        return min(1.0, float(metric.sentence_score(self.text(output), [right]).score) / 100)

    def cut(self, reference: str) -> str:
        """BLEU's tokenizer for this reference."""
        chinese = any("\u4e00" <= letter <= "\u9fff" for letter in reference)
        return self.tokenize if self.tokenize != "auto" else "zh" if chinese else "13a"


def edit_similarity(first: Sequence[int], second: Sequence[int]) -> float:
    """Edit similarity: 1 minus the Levenshtein distance divided by the longer length."""
    from rapidfuzz.distance import Levenshtein

    return float(Levenshtein.normalized_similarity(first, second))


def cut_at_eos(numbers: Sequence[int]) -> list[int]:
    """Token ids before the first EOS."""
    numbers = list(numbers)
    return numbers[: numbers.index(EOS)] if EOS in numbers else numbers


@cache
def _chrf() -> Any:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF()


@cache
def _bleu(tokenize: str) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenize, effective_order=True)
