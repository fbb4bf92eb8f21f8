"""Whether graphs compute what the model computes: nothing is written before they do."""

import torch
from torch import Tensor

from regard.errors import RefusedError
from regard.interop.onnx.graphs import Encoding, Stepping, example
from regard.interop.onnx.sessions import Graph
from regard.interop.onnx.sources import Longest, Sizes, within
from regard.models.seq2seq import Seq2Seq

SHAPES = (Sizes(1, 1, 1, 0, 1), Sizes(3, 1, 6, 0, 2), Sizes(1, 4, 2, 1, 5), Sizes(4, 2, 1, 3, 3), Sizes(2, 5, 11, 6, 7))
"""One of each that is special to a compiler, and some that are not."""
CLOSE = 1e-4
"""How far a number may lie from the model's own, as a share of the largest beside it (and of 1 at least)."""
INSTEAD = "nothing was written; `regard predict` without --engine runs it"


def equal(model: Seq2Seq, encoder: Graph, step: Graph, longest: Longest) -> None:
    """Raise where the graphs and the model differ on random sources, `longest` at most, and targets of several sizes."""
    for sizes in (within(each, longest) for each in SHAPES):
        large = f"{sizes.keys} tokens" if isinstance(longest, int) else f"{sizes.keys} x {sizes.columns} places"
        shape = f"{sizes.sources} sources of {large} with {sizes.beams} beams"
        try:
            found = difference(model, encoder, step, sizes)
        except ValueError as error:
            raise RefusedError(
                f"the graphs that ONNX has for this model do not run for {shape}: {error}; {INSTEAD}"
            ) from error
        name = max(found, key=lambda each: found[each])
        if not found[name] <= CLOSE:
            raise RefusedError(
                f"the graphs that ONNX has for this model are not the model: {name} differs by {found[name]:.2g} for {shape}"
                f"; {INSTEAD}"
            )


@torch.no_grad()
def difference(model: Seq2Seq, encoder: Graph, step: Graph, sizes: Sizes, seed: int = 1) -> dict[str, float]:
    """How far every output of both graphs lies from the model's, for an example of these sizes."""
    given = example(model, sizes, seed)
    pairs = {
        encoder: (
            {"source": given.source.data, "keep": given.source.keep},
            Encoding(model)(given.source.data, given.source.keep),
        ),
        step: (given.inputs, Stepping(model, given.memory, given.state)(*given.inputs.values())),
    }
    found = {}
    for graph, (inputs, expected) in pairs.items():
        for (name, tensor), right in zip(graph(inputs, graph.outputs).items(), expected, strict=True):
            found[name] = distance(tensor, right)
    return found


def distance(found: Tensor, right: Tensor) -> float:
    """The largest difference, as a share of the largest number (and of 1 at least); infinite where shapes differ."""
    if found.shape != right.shape:
        return float("inf")
    if torch.equal(found, right):  # equal infinities too
        return 0.0
    gap = torch.where(found == right, 0.0, (found.double() - right.double()).abs()).max()
    largest = right.double().abs().nan_to_num(posinf=0.0).max()
    return float(gap.nan_to_num(nan=torch.inf, posinf=torch.inf) / largest.clamp_min(1.0))
