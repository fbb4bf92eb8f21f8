"""A model as two graphs: what is computed once for a source, and what is computed for each token.

    encoder:  source, keep                        ->  memory.*, state.*
    step:     token, keep, memory.*, state.*      ->  log_probabilities, next.*, weights.*

Tensors have names in place of a tree. `keep` is True where the source has a token; all memories share it. In a step, tokens
and states are (sources, beams, ...), so that one memory serves all beams of a source. `next.x` is what `state.x` becomes,
and `weights.decoder.cross` where the attention called decoder.cross looked, (sources, beams, heads, keys).

Of a picture, `keep` is True where it has a pixel. Its map is smaller, so that the encoder has one more output, `kept`, with
rows and columns: which places of the map have any. That is the `keep` of a step.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.types import Encoded, Memory
from regard.data.batch import Padded
from regard.data.image.batch import Images
from regard.data.modality import Source
from regard.interop.onnx.sources import Sizes, drawn, vocabulary
from regard.models.decoders import DecoderMemory
from regard.models.image2seq import Image2Seq
from regard.models.seq2seq import Seq2Seq
from regard.tree import Tree, map_tree, repeat

OUTPUT = "log_probabilities"
KEPT = "kept"


class Encoding(nn.Module):
    """The encoder, the decoder's memory of what it found, and the state before the first token."""

    def __init__(self, model: Seq2Seq):
        super().__init__()
        self.model, self.sees = model, isinstance(model, Image2Seq)

    def forward(self, source: Tensor, keep: Tensor) -> tuple[Tensor, ...]:
        encoded = self.model.read(Images(source, keep) if self.sees else Padded(source, keep))
        memory = self.model.decoder.remember(encoded)
        found = *remembered(memory).values(), *named(self.model.decoder.start(memory), "state").values()
        return (places(encoded), *found) if self.sees else found


class Stepping(nn.Module):
    """One step of the decoder, between trees of these shapes."""

    def __init__(self, model: Seq2Seq, memory: Tree, state: Tree):
        super().__init__()
        self.decoder, self.memory, self.state = model.decoder, memory, state
        self.memories = len(remembered(memory))

    def forward(self, token: Tensor, keep: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        sources, beams = token.shape
        memory = recalled(self.memory, keep, tensors[: self.memories])
        state = filled(self.state, (each.flatten(0, 1) for each in tensors[self.memories :]))
        step = self.decoder.step(token.flatten(), memory, state, weights=True)
        looked = [each.weights[:, :, 0] for each in step.attended.values() if each.weights is not None]
        rows = (step.output.float().log_softmax(-1), *named(step.state, "next").values(), *looked)
        return tuple(torch.unflatten(each, 0, (sources, beams)) for each in rows)


def places(encoded: Encoded) -> Tensor:
    """Which places of a map are part of a picture, row by row."""
    assert encoded.keep is not None, "an encoder of pictures says what is kept"
    assert encoded.grid is not None, "and how many rows and columns there are"
    return torch.unflatten(encoded.keep, 1, encoded.grid)


def remembered(memory: DecoderMemory) -> dict[str, Tensor]:
    """What a step needs of a memory, by name; not `keep`, which is the source's own, nor the states that it starts from."""
    found = dict[str, Tensor]()
    for name, each in memory.memories.items():
        found |= {f"memory.{name}.keys": each.keys, f"memory.{name}.values": each.values}
    return found | named({"summary": memory.summary, "tokens": memory.tokens}, "memory")


def recalled(memory: DecoderMemory, keep: Tensor, tensors: tuple[Tensor, ...]) -> DecoderMemory:
    """A memory of this shape from the tensors that `remembered` names."""
    pairs = len(memory.memories)
    each = zip(memory.memories, tensors[: 2 * pairs : 2], tensors[1 : 2 * pairs : 2], strict=True)
    summary, tokens = filled((memory.summary, memory.tokens), tensors[2 * pairs :])
    return DecoderMemory({name: memorised(keys, values, keep) for name, keys, values in each}, (), summary, tokens)


def memorised(keys: Tensor, values: Tensor, keep: Tensor) -> Memory:
    """A memory of a text, or of a map where `keep` has rows and columns."""
    if keep.dim() == 2:
        return Memory(keys, values, keep)
    return Memory(keys, values, keep.flatten(1), (keep.shape[1], keep.shape[2]))


class Example(NamedTuple):
    """What both graphs may be asked, and the trees behind it."""

    source: Source
    keep: Tensor
    """What a step is told to keep of the source: its tokens, or the places of its map."""
    token: Tensor
    memory: DecoderMemory
    state: Any

    @property
    def inputs(self) -> dict[str, Tensor]:
        """What a step gets, by name."""
        sources = len(self.source.data)
        states = {name: torch.unflatten(each, 0, (sources, -1)) for name, each in named(self.state, "state").items()}
        token = self.token.view(sources, -1)
        return {"token": token, "keep": self.keep, **remembered(self.memory), **states}


class Names(NamedTuple):
    """What comes out of the graphs."""

    memory: list[str]
    state: list[str]
    said: str
    next: list[str]
    weights: list[str]


@torch.no_grad()
def outputs(model: Seq2Seq, given: Example) -> Names:
    """The names of all outputs, in their order."""
    step = model.decoder.step(given.token, given.memory, given.state, weights=True)
    return Names(
        [*remembered(given.memory)],
        [*named(given.state, "state")],
        OUTPUT,
        [*named(step.state, "next")],
        [f"weights.{name}" for name, each in step.attended.items() if each.weights is not None],
    )


@torch.no_grad()
def example(model: Seq2Seq, sizes: Sizes = Sizes(), seed: int = 0) -> Example:
    """Random sources, some shorter or smaller than others, and a state after as many random tokens as asked for."""
    draw = torch.Generator().manual_seed(seed)
    source = drawn(model, sizes, draw)
    encoded = model.read(source)
    memory = model.decoder.remember(encoded)
    state, rows = repeat(model.decoder.start(memory), sizes.beams), sizes.sources * sizes.beams
    tokens = torch.randint(vocabulary(model.decoder), (sizes.written + 1, rows), generator=draw)
    for token in tokens[:-1]:
        state = model.decoder.step(token, memory, state).state
    keep = places(encoded) if isinstance(source, Images) else source.keep
    return Example(source, keep, tokens[-1], memory, state)


def named(tree: Tree, path: str) -> dict[str, Tensor]:
    """Every tensor by the way to it: "state.hidden.0". What holds nothing, None and (), has no name."""
    if isinstance(tree, Tensor):
        return {path: tree}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        parts: Iterable[tuple[str, Tree]] = zip(tree._fields, tree, strict=True)
    elif isinstance(tree, Mapping):
        parts = tree.items()
    elif isinstance(tree, (tuple, list)):
        parts = ((str(number), each) for number, each in enumerate(tree))
    else:
        parts = ()
    return {name: tensor for part, inside in parts for name, tensor in named(inside, f"{path}.{part}").items()}


def filled(tree: Tree, tensors: Iterable[Tensor]) -> Tree:
    """The same tree with these tensors in it, in the order in which `named` has them."""
    following = iter(tensors)
    return map_tree(lambda _: next(following), tree)
