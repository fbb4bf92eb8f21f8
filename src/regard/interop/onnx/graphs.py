"""ONNX graphs of a model: the encoder, computed once for a source, and the decoder step, computed for each token.

    encoder:  source, keep                        ->  memory.*, state.*
    step:     token, keep, memory.*, state.*      ->  log_probabilities, next.*, weights.*

Tensors have names in place of a tree. `keep` is True where the source has a token; all memories share it. In a step, tokens
and states are (sources, beams, ...), so that one memory serves all beams of a source. `next.x` is what `state.x` becomes,
and `weights.decoder.cross` are the weights of the attention decoder.cross, (sources, beams, heads, keys).

For a picture, `keep` is True for its pixels. Its feature map is smaller, so the encoder has one more output, `kept`, the
mask of the map with rows and columns, which is the `keep` of a step.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.types import Encoded, Memory
from regard.data.batch import Padded
from regard.data.image.batch import Images
from regard.data.modality import Source
from regard.interop.onnx.sources import Sizes, random_source, vocabulary_size
from regard.models.decoders import DecoderMemory
from regard.models.image2seq import Image2Seq
from regard.models.seq2seq import Seq2Seq
from regard.tree import Tree, map_tree, repeat

OUTPUT = "log_probabilities"
KEEP_OUTPUT = "kept"


class Encoding(nn.Module):
    """The encoder, the decoder's memory of its output, and the initial state of the decoder."""

    def __init__(self, model: Seq2Seq):
        super().__init__()
        self.model, self.sees = model, isinstance(model, Image2Seq)

    def forward(self, source: Tensor, keep: Tensor) -> tuple[Tensor, ...]:
        encoded = self.model.read(Images(source, keep) if self.sees else Padded(source, keep))
        memory = self.model.decoder.remember(encoded)
        tensors = *flatten_memory(memory).values(), *flatten(self.model.decoder.start(memory), "state").values()
        return (map_mask(encoded), *tensors) if self.sees else tensors


class Stepping(nn.Module):
    """One step of the decoder, with memory and state as flat tensors."""

    def __init__(self, model: Seq2Seq, memory: Tree, state: Tree):
        super().__init__()
        self.decoder, self.memory, self.state = model.decoder, memory, state
        self.memories = len(flatten_memory(memory))

    def forward(self, token: Tensor, keep: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        sources, beams = token.shape
        memory = restore_memory(self.memory, keep, tensors[: self.memories])
        state = unflatten(self.state, (tensor.flatten(0, 1) for tensor in tensors[self.memories :]))
        step = self.decoder.step(token.flatten(), memory, state, weights=True)
        weights = [attended.weights[:, :, 0] for attended in step.attended.values() if attended.weights is not None]
        rows = (step.output.float().log_softmax(-1), *flatten(step.state, "next").values(), *weights)
        return tuple(torch.unflatten(tensor, 0, (sources, beams)) for tensor in rows)


def map_mask(encoded: Encoded) -> Tensor:
    """Mask of the places of a feature map, with rows and columns."""
    assert encoded.keep is not None, "an encoder of pictures says what is kept"
    assert encoded.grid is not None, "and how many rows and columns there are"
    return torch.unflatten(encoded.keep, 1, encoded.grid)


def flatten_memory(memory: DecoderMemory) -> dict[str, Tensor]:
    """Tensors of a memory by name, without `keep`, which is an input of its own, and the initial states."""
    tensors = dict[str, Tensor]()
    for name, attention_memory in memory.memories.items():
        tensors |= {f"memory.{name}.keys": attention_memory.keys, f"memory.{name}.values": attention_memory.values}
    return tensors | flatten({"summary": memory.summary, "tokens": memory.tokens}, "memory")


def restore_memory(memory: DecoderMemory, keep: Tensor, tensors: tuple[Tensor, ...]) -> DecoderMemory:
    """Restore a memory of this structure from the tensors of `flatten_memory`."""
    pairs = len(memory.memories)
    pairs_by_name = zip(memory.memories, tensors[: 2 * pairs : 2], tensors[1 : 2 * pairs : 2], strict=True)
    summary, tokens = unflatten((memory.summary, memory.tokens), tensors[2 * pairs :])
    return DecoderMemory(
        {name: restore_attention_memory(keys, values, keep) for name, keys, values in pairs_by_name}, (), summary, tokens
    )


def restore_attention_memory(keys: Tensor, values: Tensor, keep: Tensor) -> Memory:
    """Memory of one attention; of a feature map where `keep` has rows and columns."""
    if keep.dim() == 2:
        return Memory(keys, values, keep)
    return Memory(keys, values, keep.flatten(1), (keep.shape[1], keep.shape[2]))


class Example(NamedTuple):
    """Example inputs of both graphs, and the trees that they are flattened from."""

    source: Source
    keep: Tensor
    """Mask of the step: of the tokens of the source, or of the places of its map."""
    token: Tensor
    memory: DecoderMemory
    state: Any

    @property
    def inputs(self) -> dict[str, Tensor]:
        """Inputs of a step, by name."""
        sources = len(self.source.data)
        states = {name: torch.unflatten(tensor, 0, (sources, -1)) for name, tensor in flatten(self.state, "state").items()}
        token = self.token.view(sources, -1)
        return {"token": token, "keep": self.keep, **flatten_memory(self.memory), **states}


class Names(NamedTuple):
    """Names of the outputs of both graphs."""

    memory: list[str]
    state: list[str]
    output: str
    next: list[str]
    weights: list[str]


@torch.no_grad()
def outputs(model: Seq2Seq, example_inputs: Example) -> Names:
    """Names of all outputs, in order."""
    step = model.decoder.step(example_inputs.token, example_inputs.memory, example_inputs.state, weights=True)
    return Names(
        [*flatten_memory(example_inputs.memory)],
        [*flatten(example_inputs.state, "state")],
        OUTPUT,
        [*flatten(step.state, "next")],
        [f"weights.{name}" for name, attended in step.attended.items() if attended.weights is not None],
    )


@torch.no_grad()
def example(model: Seq2Seq, sizes: Sizes = Sizes(), seed: int = 0) -> Example:
    """Random sources of different sizes, and the state after `sizes.written` random tokens."""
    draw = torch.Generator().manual_seed(seed)
    source = random_source(model, sizes, draw)
    encoded = model.read(source)
    memory = model.decoder.remember(encoded)
    state, rows = repeat(model.decoder.start(memory), sizes.beams), sizes.sources * sizes.beams
    tokens = torch.randint(vocabulary_size(model.decoder), (sizes.written + 1, rows), generator=draw)
    for token in tokens[:-1]:
        state = model.decoder.step(token, memory, state).state
    keep = map_mask(encoded) if isinstance(source, Images) else source.keep
    return Example(source, keep, tokens[-1], memory, state)


def flatten(tree: Tree, path: str) -> dict[str, Tensor]:
    """Flatten a tree to tensors by path, such as "state.hidden.0"; None and () have none."""
    if isinstance(tree, Tensor):
        return {path: tree}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        parts: Iterable[tuple[str, Tree]] = zip(tree._fields, tree, strict=True)
    elif isinstance(tree, Mapping):
        parts = tree.items()
    elif isinstance(tree, (tuple, list)):
        parts = ((str(number), part) for number, part in enumerate(tree))
    else:
        parts = ()
    return {name: tensor for part, inside in parts for name, tensor in flatten(inside, f"{path}.{part}").items()}


def unflatten(tree: Tree, tensors: Iterable[Tensor]) -> Tree:
    """Replace the tensors of a tree, in the order of `flatten`."""
    following = iter(tensors)
    return map_tree(lambda _: next(following), tree)
