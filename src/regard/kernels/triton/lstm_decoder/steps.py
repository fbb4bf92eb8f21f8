"""Forward and backward through time of an attentional decoder: two matrix products and three kernels per step.

    h_t = cell(given_t + W [r_{t-1}; h_{t-1}]),  c_t = look(h_t),  r_t = tanh(R [h_t; c_t] + b)

Every step writes into the column slices that the next one reads, so that nothing is concatenated or split.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.kernels.triton.lstm_decoder.attention import launch_attention, launch_attention_backward
from regard.kernels.triton.lstm_decoder.cell import launch_cell, launch_cell_backward
from regard.kernels.triton.lstm_decoder.readout import launch_readout, launch_readout_backward


@contextmanager
def without_autocast(device: torch.device) -> Iterator[None]:
    """Context manager without autocast, and with the data's device current for Triton."""
    with torch.autocast(device.type, enabled=False), torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        yield


class SavedTensors(NamedTuple):
    """Tensors that the forward saves for the backward."""

    went: Float[Tensor, "time_and_one rows fed_and_size"]
    found: Float[Tensor, "time rows size_and_context"]
    cells: Float[Tensor, "time_and_one rows size"]
    gates: Float[Tensor, "time rows gates"]
    shares: Float[Tensor, "time rows keys"]


def run_forward(
    given: Float[Tensor, "time rows gates"],
    weight: Float[Tensor, "gates fed_and_size"],
    readout: Float[Tensor, "fed size_and_context"],
    bias: Float[Tensor, " fed"],
    keys: Float[Tensor, "rows keys size"],
    values: Float[Tensor, "rows keys context"],
    first: Float[Tensor, "rows fed_and_size"],
    cell: Float[Tensor, "rows size"],
    keep: Bool[Tensor, "rows keys"] | None,
    scale: float,
) -> SavedTensors:
    """Forward through all steps: a product, the cell, attention, a product, the readout."""
    (time, rows, wide), size, fed = given.shape, cell.shape[1], len(readout)
    went, found = given.new_empty(time + 1, rows, weight.shape[1]), given.new_empty(time, rows, readout.shape[1])
    cells = cell.new_empty(time + 1, rows, size)
    gates, shares = torch.empty_like(given), cell.new_empty(time, rows, keys.shape[1])
    entering, leaving = given.new_empty(rows, wide), given.new_empty(rows, fed)
    went[0], cells[0] = first, cell
    with without_autocast(given.device):
        for t in range(time):
            hidden = found[t, :, :size]
            torch.mm(went[t], weight.mT, out=entering)
            launch_cell(entering, given[t], cells[t], gates[t], cells[t + 1], hidden, went[t + 1, :, fed:])
            launch_attention(hidden, keys, values, keep, scale, shares[t], found[t, :, size:])
            torch.mm(found[t], readout.mT, out=leaving)
            launch_readout(leaving, bias, went[t + 1, :, :fed])
    return SavedTensors(went, found, cells, gates, shares)


class Gradients(NamedTuple):
    """Outputs of the backward: gradients of the inputs of gates and readout, scores, contexts, and the initial state."""

    gates: Float[Tensor, "time rows gates"]
    sums: Float[Tensor, "time rows fed"]
    scores: Float[Tensor, "time rows keys"]
    contexts: Float[Tensor, "time rows context"]
    first: Float[Tensor, "rows fed_and_size"]
    cell: Float[Tensor, "rows size"]


def run_backward(
    kept: SavedTensors,
    weight: Float[Tensor, "gates fed_and_size"],
    readout: Float[Tensor, "fed size_and_context"],
    keys: Float[Tensor, "rows keys size"],
    values: Float[Tensor, "rows keys context"],
    keep: Bool[Tensor, "rows keys"] | None,
    scale: float,
    d_went: Float[Tensor, "time_and_one rows fed_and_size"],
    d_found: Float[Tensor, "time rows size_and_context"],
    d_cell: Float[Tensor, "rows size"],
) -> Gradients:
    """Backward through all steps: the readout, a product, attention, the cell, a product."""
    went, found, cells, gates, shares = kept
    (time, rows, _), fed = gates.shape, len(readout)
    d_gates, d_sums = torch.empty_like(gates), went.new_empty(time, rows, fed)
    d_scores, d_contexts = torch.empty_like(shares, dtype=keys.dtype), found.new_empty(time, rows, values.shape[2])
    flowing, beside, looked = torch.zeros_like(went[0]), torch.empty_like(found[0]), torch.empty_like(d_cell)
    with without_autocast(went.device):
        for t in reversed(range(time)):
            after, outer = went[t + 1], d_went[t + 1]
            launch_readout_backward(after[:, :fed], flowing[:, :fed], outer[:, :fed], d_sums[t])
            torch.mm(d_sums[t], readout, out=beside)
            launch_attention_backward(
                shares[t], keys, values, keep, scale, beside, d_found[t], d_contexts[t], d_scores[t], looked
            )
            launch_cell_backward(
                gates[t], cells[t], cells[t + 1], looked, flowing[:, fed:], outer[:, fed:], d_cell, d_gates[t]
            )
            torch.mm(d_gates[t], weight, out=flowing)
    return Gradients(d_gates, d_sums, d_scores, d_contexts, flowing + d_went[0], d_cell)
