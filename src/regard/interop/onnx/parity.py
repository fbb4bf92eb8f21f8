"""Parity of the ONNX graphs with the model, checked before anything is written."""

import torch
from torch import Tensor

from regard.errors import RefusedError
from regard.interop.onnx.graphs import Encoding, Stepping, example
from regard.interop.onnx.sessions import Graph
from regard.interop.onnx.sources import Longest, Sizes, limit_sizes
from regard.models.seq2seq import Seq2Seq

SHAPES = (Sizes(1, 1, 1, 0, 1), Sizes(3, 1, 6, 0, 2), Sizes(1, 4, 2, 1, 5), Sizes(4, 2, 1, 3, 3), Sizes(2, 5, 11, 6, 7))
"""Sizes with each dimension once equal to 1, which compilers specialise, and others."""
CLOSE = 1e-4
"""Tolerance relative to the largest number of a tensor, or to 1 if that is larger."""
INSTEAD = "nothing was written; `regard predict` without --engine runs it"


def check_parity(model: Seq2Seq, encoder: Graph, step: Graph, source_limit: Longest) -> None:
    """Raise where the graphs and the model differ on random sources and targets of several sizes."""
    for sizes in (limit_sizes(shape_sizes, source_limit) for shape_sizes in SHAPES):
        large = f"{sizes.keys} tokens" if isinstance(source_limit, int) else f"{sizes.keys} x {sizes.columns} places"
        shape = f"{sizes.sources} sources of {large} with {sizes.beams} beams"
        try:
            errors = measure_differences(model, encoder, step, sizes)
        except ValueError as error:
            raise RefusedError(
                f"the graphs that ONNX has for this model do not run for {shape}: {error}; {INSTEAD}"
            ) from error
        name = max(errors, key=lambda output: errors[output])
        if not errors[name] <= CLOSE:
            raise RefusedError(
                f"the graphs that ONNX has for this model are not the model: {name} differs by {errors[name]:.2g} for "
                f"{shape}; {INSTEAD}"
            )


@torch.no_grad()
def measure_differences(model: Seq2Seq, encoder: Graph, step: Graph, sizes: Sizes, seed: int = 1) -> dict[str, float]:
    """Relative error of every output of both graphs, for an example of these sizes."""
    inputs_of = example(model, sizes, seed)
    pairs = {
        encoder: (
            {"source": inputs_of.source.data, "keep": inputs_of.source.keep},
            Encoding(model)(inputs_of.source.data, inputs_of.source.keep),
        ),
        step: (inputs_of.inputs, Stepping(model, inputs_of.memory, inputs_of.state)(*inputs_of.inputs.values())),
    }
    errors = {}
    for graph, (inputs, expected) in pairs.items():
        for (name, tensor), right in zip(graph(inputs, graph.outputs).items(), expected, strict=True):
            errors[name] = relative_error(tensor, right)
    return errors


def relative_error(errors: Tensor, right: Tensor) -> float:
    """Largest difference relative to the largest number, or to 1 if that is larger; infinite where shapes differ."""
    if errors.shape != right.shape:
        return float("inf")
    if torch.equal(errors, right):  # equal infinities too
        return 0.0
    gap = torch.where(errors == right, 0.0, (errors.double() - right.double()).abs()).max()
    largest = right.double().abs().nan_to_num(posinf=0.0).max()
    return float(gap.nan_to_num(nan=torch.inf, posinf=torch.inf) / largest.clamp_min(1.0))
