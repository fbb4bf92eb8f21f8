"""Steps of any decoder with a state of fixed shape: recurrent and convolutional ones, as modules."""

from copy import deepcopy
from typing import Any
from weakref import proxy

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.positions.learned import Learned
from regard.decoding.engines.cuda.buckets import pad_rows
from regard.decoding.engines.cuda.types import Counter
from regard.decoding.engines.eager import attention
from regard.decoding.engines.types import Numbers
from regard.models.decoders.convolution import Convolution
from regard.models.decoders.recurrent import Recurrent
from regard.models.output_heads.projection import Projection
from regard.tree import Tree, leaves, map_tree, repeat, select


def covers(decoder: Any) -> str | None:
    """Reason why the decoder's own steps cannot be captured, or None."""
    if type(decoder) not in (Recurrent, Convolution):
        return f"needs a recurrent or convolutional decoder, got {type(decoder).__name__}"
    if decoder.outcome is not None or type(decoder.output) is not Projection:
        return "needs an output that is nothing but a projection"
    if isinstance(decoder.embedding.positions, Learned):
        return "needs positions that have no last"
    crosses = [decoder.cross] if isinstance(decoder, Recurrent) else [layer.cross for layer in decoder.layers]
    reasons = (attention.covers(cross) for cross in crosses if cross is not None)
    return next(filter(None, reasons), None)


class Engine:
    """CUDA engine of a decoder in one precision: itself, or a copy. Nothing is compiled: its steps are the decoder's own."""

    limit: int | None = None

    def __init__(self, decoder: Any, dtype: torch.dtype, compiled: bool = False):
        same = next(decoder.parameters()).dtype == dtype
        # a strong reference would keep the decoder alive
        self.decoder: Any = proxy(decoder) if same else deepcopy(decoder).to(dtype)
        self.vocabulary: int = self.decoder.get_parameter("output.bias").shape[0]

    def steps(self, memory: Tree, sentences: int, width: int, room: int) -> "ModuleSteps":
        """Allocate the buffers of steps for sentences with memories of this shape."""
        return ModuleSteps(self.decoder, memory, sentences, width)

    def refuse(self) -> None:
        """Do nothing: there is no limit."""


class ModuleSteps:
    """Decoder state of a number of sentences, in fixed buffers."""

    def __init__(self, decoder: Any, memory: Tree, sentences: int, width: int):
        self.decoder, self.sentences, self.width = decoder, sentences, width
        first = torch.zeros(sentences, dtype=torch.long, device=next(leaves(memory, Tensor)).device)
        self.memory = map_tree(torch.clone, select(memory, first))
        self.state = map_tree(torch.clone, repeat(decoder.start(self.memory), width))
        self.before = torch.arange(0, sentences * width, width, device=first.device)[:, None]
        """First row of each sentence."""

    def begin(self, memory: Tree, rows: Numbers) -> None:
        """Copy a batch into the buffers, in its initial state."""
        copy_tree(self.memory, select(memory, torch.from_numpy(pad_rows(rows, self.sentences)).to(self.before.device)))
        copy_tree(self.state, repeat(self.decoder.start(self.memory), self.width))

    def take(self, other: "ModuleSteps", rows: Int[Tensor, " sentences"]) -> None:
        """Copy selected sentences of another state."""
        copy_tree(self.memory, select(other.memory, rows))
        sides = torch.arange(self.width, device=rows.device)
        copy_tree(self.state, select(other.state, (other.before[rows] + sides).flatten()))

    def step(
        self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, "sentences width"], place: Counter
    ) -> Float[Tensor, "rows vocabulary"]:
        """Decoding step: one token for each row in, logits out."""
        state = self.state if self.width == 1 else select(self.state, (parents + self.before).flatten())
        step = self.decoder.step(tokens, self.memory, state)
        copy_tree(self.state, step.state)
        logits: Tensor = step.output
        return logits

    def prepare(
        self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, "sentences width"], place: Counter
    ) -> Float[Tensor, "1 vocabulary"]:
        """Allocate a row of logits; a step's kernels are the decoder's own."""
        return torch.empty_like(self.decoder.get_parameter("output.bias"))[None]

    def project(self, logits: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """Return the logits, which are projected already."""
        return logits


def copy_tree(target: Tree, source: Tree) -> None:
    """Copy the tensors of one tree over those of another of the same shape."""
    for buffer, tensor in zip(leaves(target, Tensor), leaves(source, Tensor), strict=True):
        buffer.copy_(tensor)
