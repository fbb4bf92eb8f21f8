"""Soft alignments: the weights of every cross-attention over a source and its target, by teacher forcing.

Of a latent alignment whose likelihood is the exact marginal, the weights are the posterior, given the target.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.alignment import words
from regard.alignment.words import Units
from regard.data.batch import Batch, shifted
from regard.data.special_tokens import EOS
from regard.data.table import Record
from regard.data.text.codec import Example, TextCodec
from regard.decoding.attention_weights import is_cross_attention

Weights = dict[str, Float[Tensor, "batch heads target source"]]


@runtime_checkable
class AlignmentModel(Protocol):
    """Trained model of pairs of texts: what an alignment needs of a predictor."""

    model: Any
    config: Any
    task: Any
    head: Any

    def text_codec(self, wanted: str) -> TextCodec: ...

    def longest(self, source: int) -> int: ...

    @property
    def search(self) -> Callable[..., Any]: ...


class SoftAlignment(NamedTuple):
    """The weights of one pair by attention: a row for each token of the target, a column for each of the source.

    Both end with EOS. `source` and `target` say which tokens make up which words, for `merge_weights`.
    """

    source: Units
    target: Units
    weights: dict[str, Float[Tensor, "heads target source"]]


def compute_soft_alignments(
    model: AlignmentModel, records: Sequence[Record], *, tokens: bool = False, beam: int | None = None
) -> list[SoftAlignment]:
    """Align each source with its target, or, where a record has none, with the best output of beam search.

    With `tokens`, units are tokens in place of words.
    """
    codec = model.text_codec("regard align")
    prepared = [model.task.prepare(record) for record in records]
    examples = codec.encode_all(prepared, over_long="truncate").examples
    untranslated = [index for index, example in enumerate(examples) if example.target is None]
    outputs = _search_targets(model, [examples[index] for index in untranslated], beam)
    for index, numbers in zip(untranslated, outputs, strict=True):
        examples[index] = examples[index]._replace(target=numbers)
    no_units = Units((), torch.zeros(0, 0, dtype=torch.bool))
    alignments = [SoftAlignment(no_units, no_units, {}) for _ in examples]
    for index, weights in _forced_weights(model, examples):
        record, numbers = prepared[index], examples[index].target or []
        if record.target is None:
            target = words.output_units(codec, numbers, tokens)
        else:
            target = words.target_units(codec, record, tokens)
        alignments[index] = SoftAlignment(words.source_units(codec, record, tokens), target, weights)
    return alignments


def posterior_weights(model: nn.Module, batch: Batch) -> Weights:
    """The weights of every cross-attention, by teacher forcing; of a latent alignment with an exact marginal, its posterior.

        p(s | y_t) = a_ts p(y_t | s) / Σ_k a_tk p(y_t | k) = a_ts (1 + ∂ log p(y_t) / ∂a_ts)

    The weights a are the prior of such an attention (models/layers/marginal.py), before y_t is known. The gradient of the
    log of a marginal that is divided by Σ_k a_tk = 1 is p(y_t | s) / p(y_t) - 1, which is the second equation.
    Deng et al. 2018, https://arxiv.org/abs/1807.03756
    """
    assert batch.target is not None, "an alignment is one of a source and a target"
    outcome = getattr(getattr(model, "decoder", None), "outcome", None)
    exact = getattr(outcome, "exact", False) and getattr(outcome, "copying", None) is None
    with torch.enable_grad() if exact else torch.no_grad():
        step = model(batch.source, shifted(batch.target.data), weights=True)
        weights = {
            name: attended.weights
            for name, attended in step.attended.items()
            if is_cross_attention(name) and attended.weights is not None
        }
        if exact and weights:
            name, prior = list(weights.items())[-1]  # the last one is marginalised in the output
            log_probs = step.output.float().log_softmax(-1).gather(-1, batch.target.data[..., None])[..., 0]
            [gradient] = torch.autograd.grad(log_probs.masked_fill(~batch.target.keep, 0.0).sum(), prior)
            weights[name] = prior * (1 + gradient)
    return {name: tensor.detach() for name, tensor in weights.items()}


def _search_targets(model: AlignmentModel, examples: list[Example], beam: int | None) -> list[list[int]]:
    """The best output for each source; EOS is appended to one cut off, so that its last token has a step after it."""
    outputs: list[list[int]] = [[] for _ in examples]
    for indices, batch in _batches(model, examples):
        with torch.no_grad():
            memory = model.model.encode(batch.source)
        lengths = [model.longest(int(length)) for length in batch.source.keep.sum(1)]
        hypotheses = model.search(memory, lengths, beam or model.config.search.beam)
        for index, [best, *_] in zip(indices, hypotheses, strict=True):
            outputs[index] = best.tokens if best.tokens[-1:] == [EOS] else [*best.tokens, EOS]
    return outputs


def _forced_weights(model: AlignmentModel, examples: list[Example]) -> Iterator[tuple[int, dict[str, Tensor]]]:
    """The weights of every example, in any order, without padding."""
    for indices, batch in _batches(model, examples):
        assert batch.target is not None, "every example has one by now"
        weights = posterior_weights(model.model, batch)
        for row, index in enumerate(indices):
            rows, keys = len(examples[index].target or ()), len(examples[index].source)
            yield index, {name: tensor[row, :, :rows, :keys].float().cpu() for name, tensor in weights.items()}


def _batches(model: AlignmentModel, examples: list[Example]) -> Iterator[tuple[list[int], Batch]]:
    from regard.data.loader import SequenceLoader  # it needs NumPy, which guided alignment does not

    device = next(model.model.parameters()).device
    if examples:
        loader = SequenceLoader(examples, model.config.data.batch_tokens, shuffle=False)
        yield from ((indices, batch.to(device)) for indices, batch in loader.in_order())
