"""The stacks of attentions of an encoder-decoder, or of a model of one stack, and how each becomes looks of an example."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from regard.data.axis import Array, Axis
from regard.viewer.io.errors import TraceError
from regard.viewer.source import TRANSFORMERS
from regard.viewer.trace import AttentionMap

EAGER = "load it with attn_implementation='eager' and ask with output_attentions=True"

Kept = list[int]
"""Places that are no padding."""


class Stacks(NamedTuple):
    """Attentions of the encoder, of the decoder or only stack, and from one to the other; None where there are none."""

    encoder: Any
    own: Any
    cross: Any

    @property
    def single(self) -> bool:
        """True if this is a model of one stack."""
        return self.encoder is None and self.cross is None


def stacks_of(output: Any) -> Stacks:
    """Outputs of a model, whichever of its classes of output it returns; or a tuple of layers, such as its attentions alone."""
    if isinstance(output, tuple | list) and not hasattr(output, "_fields"):
        return Stacks(None, check_layers(output, "the attentions"), None)
    own = getattr(output, "decoder_attentions", None) or getattr(output, "attentions", None)
    groups = (getattr(output, "encoder_attentions", None), own, getattr(output, "cross_attentions", None))
    stacks = Stacks(*(stack if _there(stack) else None for stack in groups))
    if getattr(output, "sequences", None) is None:
        for stack, what in zip(stacks, ("encoder_attentions", "attentions", "cross_attentions"), strict=True):
            check_layers(stack or (), what)
    if stacks == Stacks(None, None, None):
        raise TraceError(f"this {type(output).__name__} holds no attention weights: {EAGER}")
    return stacks


def check_layers(layers: Any, what: str) -> Any:
    """Raise where a layer is not (batch, heads, queries, keys): a batch is never taken for heads, or heads for a batch."""
    batch = None
    for number, layer in enumerate(layers):
        shape = tuple(getattr(layer, "shape", ()))
        if len(shape) != 4:
            raise TraceError(
                f"layer {number} of {what} needs to be (batch, heads, queries, keys), as transformers returns it, got "
                f"{shape or type(layer).__name__}; arrays of one example go to Trace.from_arrays"
            )
        batch = shape[0] if batch is None else batch
        if shape[0] != batch:
            raise TraceError(
                f"layer {number} of {what} has {shape[0]} rows and the first {batch}: attention within windows of a picture "
                "is not one matrix of an example; regard.record(model) leaves it out and says so"
            )
    if batch is None and layers != ():
        raise TraceError(f"{what} hold no layer: {EAGER}")
    return layers


@dataclass
class Draft:
    """The axes and looks of one example in the making."""

    sums_to_one: bool
    axes: dict[str, Axis] = field(default_factory=dict)
    attentions: list[AttentionMap] = field(default_factory=list)
    causal: bool = False
    """True where a stack without a mask turned out to be causal."""

    def single(
        self, layers: Sequence[Array], tokens: Axis, recorded: Kept, name: str = "attention.{}", side: str = "tokens"
    ) -> None:
        """One stack, whose tokens look at one another: causally where none ever looks ahead."""
        self.axes[side] = tokens
        self._add(name, layers, (side, side), (recorded, recorded))
        self.causal = self.causal or self.attentions[-1].allowed is not None

    def encoder(self, layers: Sequence[Array] | None, source: Axis, recorded: Kept) -> None:
        """The source, and how it looks at itself."""
        self.axes["source"] = source
        self._add("encoder.{}.self", layers, ("source", "source"), (recorded, recorded))

    def decoder(self, own: Sequence[Array] | None, target: Axis, written: Axis, recorded: Kept) -> None:
        """The target, and how it looks at what was written before."""
        self.axes["target"] = target
        if own:
            self.axes["written"] = written
        self._add("decoder.{}.self", own, ("target", "written"), (recorded, recorded))

    def cross(self, layers: Sequence[Array] | None, rows: Kept, columns: Kept) -> None:
        """Cross-attention of the target over the source."""
        self._add("decoder.{}.cross", layers, ("target", "source"), (rows, columns))

    def _add(self, name: str, layers: Sequence[Array] | None, ends: tuple[str, str], recorded: tuple[Kept, Kept]) -> None:
        cut = [layer[:, recorded[0]][:, :, recorded[1]] for layer in layers or ()]
        queries, keys = (len(places) for places in recorded)
        own = ends != ("target", "source")
        ahead = any(np.triu(layer, 1).any() for layer in cut)
        allowed = np.tri(queries, dtype=bool) if own and queries == keys > 1 and not ahead else None
        for layer, weights in enumerate(cut):
            attention_map = AttentionMap(
                name.format(layer), *ends, weights, layer, allowed, sums_to_one=self.sums_to_one, source=TRANSFORMERS
            )
            self.attentions.append(attention_map)


def _there(stack: Any) -> bool:
    """True if it contains a tensor: some models return empty tuples, or None for each layer."""
    while isinstance(stack, tuple | list):
        stack = stack[0] if stack else None
    return stack is not None
