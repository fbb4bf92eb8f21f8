"""Head: which attention, which of its heads and which step of the decoder an alignment is read from."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.alignment.links import Gold, Links
from regard.alignment.score import counts, figures
from regard.alignment.soft import Soft
from regard.alignment.words import joined, merge
from regard.decoding.align import align
from regard.decoding.attention_weights import is_cross_attention
from regard.errors import ConfigError


class Head(NamedTuple):
    """Where to read an alignment. What is None is not chosen: the last attention over the source, the mean of its heads.

    With `shift` a token's row is not that of the step that writes it but of the next one, which has read it: a
    Transformer often looks at a word once it knows it (Chen et al. 2020, https://arxiv.org/abs/2004.14837, SHIFT-ATT).
    The last token has no next step, and so no links.
    """

    attention: str | None = None
    head: int | None = None
    shift: bool = False

    def __str__(self) -> str:
        which = "mean" if self.head is None else str(self.head)
        return f"{self.attention or 'last'}:{which}{' shifted' * self.shift}"

    def read(self, weights: Mapping[str, Float[Tensor, "_ _ _"]]) -> Float[Tensor, "target source"]:
        """What this head looked at, of the weights of every attention: (heads, target, source) by name."""
        found = weights[self.named(weights)].float()
        found = found.mean(0) if self.head is None else found[self.checked(found.shape[0])]
        return torch.cat((found[1:], torch.zeros_like(found[:1]))) if self.shift else found

    def named(self, names: Iterable[str]) -> str:
        """The attention's name, which has to be one of these."""
        over = [name for name in names if is_cross_attention(name)]
        if not over:
            raise ConfigError("an alignment needs an attention over the source, and this model has none")
        if self.attention is not None and self.attention not in over:
            raise ConfigError(f"no attention over the source is called {self.attention!r}; there are {', '.join(over)}")
        return self.attention or over[-1]

    def checked(self, heads: int) -> int:
        """The number of the head, of which there are so many."""
        if self.head is None or not 0 <= self.head < heads:
            count = "1 head" if heads == 1 else f"{heads} heads"
            raise ConfigError(
                f"{self.attention or 'the last attention'} has {count}, counted from 0, and {self.head} was asked for"
            )
        return self.head


def parse(text: str | None, shift: bool = False) -> Head:
    """The head that "decoder.2.cross:1" names; without a number it is the mean of the heads, without anything the last."""
    if not text:
        return Head(shift=shift)
    name, colon, number = text.partition(":")
    if colon and not (number.isascii() and number.isdecimal()):
        raise ConfigError(f"a head is written NAME:NUMBER, such as decoder.cross:0, got {text!r}")
    return Head(name or None, int(number) if colon else None, shift)


Merge = Literal["weights", "links"]
"""What the tokens of a word give to it."""


def hard(pair: Soft, head: Head = Head(), *, threshold: float | None = None, by: Merge = "weights") -> Links:
    """The links of one pair as one head sees them.

    `by="weights"` merges the weights of tokens to those of words, and then links; `by="links"` links tokens, and then
    words any of whose tokens are linked. The end of the source takes part in neither: no word stands there.
    """
    weights = head.read(pair.weights)
    if by == "weights":
        return linked(merge(weights, pair.source, pair.target), threshold)
    real = pair.source.members.any(0)
    return joined(linked(weights * real, threshold), pair.source, pair.target)


def linked(weights: Float[Tensor, "target source"], threshold: float | None = None) -> Links:
    """For each target the source it looked at most; with a `threshold` every source that has more than this weight.

    link(i, j)  ⇔  p_ji > threshold
    """
    if threshold is None:
        return frozenset(align(weights[None]))
    return frozenset((source, target) for target, source in (weights > threshold).nonzero().tolist())


def every(
    pairs: Sequence[Soft], head: Head = Head(), *, threshold: float | None = None, by: Merge = "weights"
) -> list[Links]:
    """The links of many pairs."""
    return [hard(pair, head, threshold=threshold, by=by) for pair in pairs]


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
