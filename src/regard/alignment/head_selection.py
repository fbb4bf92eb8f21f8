"""Choose: the attention, head and step that agree best with gold links."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from torch import Tensor

from regard.alignment.hard import Merge, every
from regard.alignment.head import Head
from regard.alignment.links import Gold
from regard.alignment.score import counts, figures
from regard.alignment.soft import Soft
from regard.decoding.attention_weights import is_cross_attention

By = Literal["aer", "f1", "accuracy"]


class Candidate(NamedTuple):
    """A head, and how good its links are."""

    head: Head
    figures: dict[str, float]


def choose(pairs: Sequence[Soft], gold: Sequence[Gold], by: By = "aer", *, merge: Merge = "weights") -> list[Candidate]:
    """Every candidate, the best first: least error rate, or greatest F1 or accuracy. Of equals the first wins."""
    heads = candidates(pairs[0].weights) if pairs else []
    if not heads:
        Head().named(())  # says that there is no attention over the source
    rated = [Candidate(head, figures(counts(every(pairs, head, by=merge), gold).sum(0))) for head in heads]
    return sorted(rated, key=lambda each: each.figures[by] if by == "aer" else -each.figures[by])


def candidates(weights: Mapping[str, Tensor]) -> list[Head]:
    """The mean and each head of every attention over the source, read both where a token is written and where it is read."""
    found = []
    for name, each in weights.items():
        numbers = [None, *range(each.shape[0])] if each.shape[0] > 1 else [None]
        found += (
            [Head(name, number, shift) for number in numbers for shift in (False, True)] if is_cross_attention(name) else []
        )
    return found
