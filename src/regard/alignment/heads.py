"""Head: which attention, which of its heads and which step of the decoder an alignment is read from."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.alignment.links import Gold, Links
from regard.alignment.soft import SoftAlignment
from regard.alignment.words import merge_links, merge_weights
from regard.decoding.align import align
from regard.decoding.attention_weights import is_cross_attention
from regard.errors import ConfigError


class Head(NamedTuple):
    """Head that an alignment is read from; by default the last cross-attention and the mean of its heads.

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
        """The weights of this head, from those of every attention: (heads, target, source) by name."""
        heads = weights[self.attention_name(weights)].float()
        head = heads.mean(0) if self.head is None else heads[self.head_index(heads.shape[0])]
        return torch.cat((head[1:], torch.zeros_like(head[:1]))) if self.shift else head

    def attention_name(self, names: Iterable[str]) -> str:
        """The name of the attention, checked against the names of the model's attentions."""
        cross = [name for name in names if is_cross_attention(name)]
        if not cross:
            raise ConfigError("an alignment needs an attention over the source, and this model has none")
        if self.attention is not None and self.attention not in cross:
            raise ConfigError(f"no attention over the source is called {self.attention!r}; there are {', '.join(cross)}")
        return self.attention or cross[-1]

    def head_index(self, heads: int) -> int:
        """The index of the head, checked against the number of heads."""
        if self.head is None or not 0 <= self.head < heads:
            count = "1 head" if heads == 1 else f"{heads} heads"
            raise ConfigError(
                f"{self.attention or 'the last attention'} has {count}, counted from 0, and {self.head} was asked for"
            )
        return self.head


def parse_head(text: str | None, shift: bool = False) -> Head:
    """The head that "decoder.2.cross:1" names; without a number the mean of the heads, without a name the last attention."""
    if not text:
        return Head(shift=shift)
    name, colon, number = text.partition(":")
    if colon and not (number.isascii() and number.isdecimal()):
        raise ConfigError(f"a head is written NAME:NUMBER, such as decoder.cross:0, got {text!r}")
    return Head(name or None, int(number) if colon else None, shift)


Merge = Literal["weights", "links"]
"""Step at which tokens are merged into words: weights before linking, or links after it."""


def align_pair(pair: SoftAlignment, head: Head = Head(), *, threshold: float | None = None, by: Merge = "weights") -> Links:
    """The links of one pair from the weights of one head.

    `by="weights"` merges the weights of tokens into those of words, and then links; `by="links"` links tokens, and then
    words any of whose tokens are linked. EOS of the source is never linked: it is in no word.
    """
    weights = head.read(pair.weights)
    if by == "weights":
        return link_weights(merge_weights(weights, pair.source, pair.target), threshold)
    in_word = pair.source.members.any(0)
    return merge_links(link_weights(weights * in_word, threshold), pair.source, pair.target)


def link_weights(weights: Float[Tensor, "target source"], threshold: float | None = None) -> Links:
    """Link each target to the source with its largest weight, or to every source above a `threshold`.

    link(i, j)  ⇔  p_ji > threshold
    """
    if threshold is None:
        return frozenset(align(weights[None]))
    return frozenset((source, target) for target, source in (weights > threshold).nonzero().tolist())


def align_pairs(
    pairs: Sequence[SoftAlignment], head: Head = Head(), *, threshold: float | None = None, by: Merge = "weights"
) -> list[Links]:
    """The links of many pairs."""
    return [align_pair(pair, head, threshold=threshold, by=by) for pair in pairs]


Criterion = Literal["aer", "f1", "accuracy"]


class Candidate(NamedTuple):
    """A head and the metrics of its links."""

    head: Head
    metrics: dict[str, float]


def rank_heads(
    pairs: Sequence[SoftAlignment], gold: Sequence[Gold], by: Criterion = "aer", *, merge: Merge = "weights"
) -> list[Candidate]:
    """Every head with its metrics, the best first: least error rate, or greatest F1 or accuracy. Ties keep their order."""
    from regard.alignment.score import count_links, metrics_from_counts  # it needs NumPy, which guided alignment does not

    heads = list_heads(pairs[0].weights) if pairs else []
    if not heads:
        Head().attention_name(())  # says that there is no attention over the source
    rated = [
        Candidate(head, metrics_from_counts(count_links(align_pairs(pairs, head, by=merge), gold).sum(0))) for head in heads
    ]
    return sorted(rated, key=lambda candidate: candidate.metrics[by] if by == "aer" else -candidate.metrics[by])


def list_heads(weights: Mapping[str, Tensor]) -> list[Head]:
    """The mean and each head of every cross-attention, each with and without `shift`."""
    heads = []
    for name, tensor in weights.items():
        if is_cross_attention(name):
            numbers = [None, *range(tensor.shape[0])] if tensor.shape[0] > 1 else [None]
            heads += [Head(name, number, shift) for number in numbers for shift in (False, True)]
    return heads
