"""Alignment metrics: alignment error rate, precision, recall and F1 of links against gold ones, over a corpus.

Like every metric here it sums rows: a row of counts for each pair, and metrics of their sum, in per cent.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.alignment.links import Gold, Link

if TYPE_CHECKING:
    from regard.metrics.text import Measurement

Rows = NDArray[np.float64]
SIGNATURES = {
    "aer": "1 - (|A∩S| + |A∩P|) / (|A| + |S|)",
    "precision": "|A∩P| / |A|",
    "recall": "|A∩S| / |S|",
    "f1": "of precision and recall",
    "accuracy": "targets with a gold link, one of whose links is gold",
    "within_one": "accuracy that allows one position to either side",
}
WORDS = ("aer", "precision", "recall", "f1")
LETTERS = ("accuracy", "within_one")


def error_rate(agreed: Any, links: Any, sure: Any) -> Any:
    """Alignment error rate, from numbers or arrays of counts; 0 is perfect.

        AER = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)        A: the links found; S: sure ones; P: possible ones, S among them

    Och and Ney 2003, section 5, https://aclanthology.org/J03-1002/
    """
    return 1 - agreed / (links + sure)


def measure(
    alignments: Sequence[Iterable[Link]], gold: Sequence[Gold], names: Sequence[str] = WORDS, seed: int = 0
) -> "dict[str, Measurement]":
    """Alignment metrics with 95 % intervals: AER, precision, recall and F1 of links, and for letters their accuracy."""
    from regard.metrics.text import Measurement, bootstrap

    rows = count_links(alignments, gold)
    values = metrics_from_counts(rows.sum(0))

    def interval(name: str) -> tuple[float, float]:
        return bootstrap(rows, lambda total: metrics_from_counts(total)[name], seed=seed)

    return {name: Measurement(values[name], *interval(name), SIGNATURES[name]) for name in names}


def count_links(alignments: Sequence[Iterable[Link]], gold: Sequence[Gold]) -> Rows:
    """Counts of each pair: |A|, |S|, |A ∩ S|, |A ∩ P|, and of targets with a gold link: exact, within one, all."""
    if len(alignments) != len(gold):
        raise ValueError(f"a score needs gold links for each pair, got {len(gold)} for {len(alignments)} pairs")
    rows = np.array([_count_pair(*pair) for pair in zip(alignments, gold, strict=True)], dtype=np.float64).reshape(-1, 7)
    if not rows[:, 1].any():
        raise ValueError(
            "a score needs at least one sure gold link, got none; are all links of the gold file possible ones?"
        )
    return rows


def metrics_from_counts(total: Rows) -> dict[str, float]:
    """Metrics from summed counts, in per cent; without any link precision is 100."""
    links, sure, right, allowed, hits, near, targets = (float(count) for count in total)
    precision, recall = _percent(allowed, links), _percent(right, sure)
    return {
        "aer": 100 * error_rate(right + allowed, links, sure) if links + sure else 0.0,
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        "accuracy": _percent(hits, targets),
        "within_one": _percent(near, targets),
    }


def _count_pair(alignment: Iterable[Link], gold: Gold) -> tuple[int, ...]:
    links, sure = frozenset(alignment), frozenset(gold.sure)
    possible = sure | frozenset(gold.possible)
    near = {(source + step, target) for source, target in possible for step in (-1, 0, 1)}
    hits, nears = ({target for _, target in links & golds} for golds in (possible, near))
    targets = {target for _, target in possible}
    return len(links), len(sure), len(links & sure), len(links & possible), len(hits), len(nears), len(targets)


def _percent(part: float, whole: float) -> float:
    return 100 * part / whole if whole else 100.0
