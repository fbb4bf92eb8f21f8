"""Forward and backward through time of an attentional decoder: two matrix products and three kernels per step.

    h_t = cell(projected_t + W [r_{t-1}; h_{t-1}]),  c_t = attend(h_t),  r_t = tanh(R [h_t; c_t] + b)

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

    inputs: Float[Tensor, "time_and_one rows fed_and_size"]
    outputs: Float[Tensor, "time rows size_and_context"]
    cells: Float[Tensor, "time_and_one rows size"]
    gates: Float[Tensor, "time rows gates"]
    weights: Float[Tensor, "time rows keys"]


def run_forward(
    projected: Float[Tensor, "time rows gates"],
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
    (time, rows, wide), size, fed = projected.shape, cell.shape[1], len(readout)
    inputs, outputs = projected.new_empty(time + 1, rows, weight.shape[1]), projected.new_empty(time, rows, readout.shape[1])
    cells = cell.new_empty(time + 1, rows, size)
    gates, weights = torch.empty_like(projected), cell.new_empty(time, rows, keys.shape[1])
    recurrent, readout_sums = projected.new_empty(rows, wide), projected.new_empty(rows, fed)
    inputs[0], cells[0] = first, cell
    with without_autocast(projected.device):
        for t in range(time):
            hidden = outputs[t, :, :size]
            torch.mm(inputs[t], weight.mT, out=recurrent)
            launch_cell(recurrent, projected[t], cells[t], gates[t], cells[t + 1], hidden, inputs[t + 1, :, fed:])
            launch_attention(hidden, keys, values, keep, scale, weights[t], outputs[t, :, size:])
            torch.mm(outputs[t], readout.mT, out=readout_sums)
            launch_readout(readout_sums, bias, inputs[t + 1, :, :fed])
    return SavedTensors(inputs, outputs, cells, gates, weights)


class Gradients(NamedTuple):
    """Outputs of the backward: gradients of the inputs of gates and readout, scores, contexts, and the initial state."""

    gates: Float[Tensor, "time rows gates"]
    sums: Float[Tensor, "time rows fed"]
    scores: Float[Tensor, "time rows keys"]
    contexts: Float[Tensor, "time rows context"]
    first: Float[Tensor, "rows fed_and_size"]
    cell: Float[Tensor, "rows size"]


def run_backward(
    saved: SavedTensors,
    weight: Float[Tensor, "gates fed_and_size"],
    readout: Float[Tensor, "fed size_and_context"],
    keys: Float[Tensor, "rows keys size"],
    values: Float[Tensor, "rows keys context"],
    keep: Bool[Tensor, "rows keys"] | None,
    scale: float,
    d_inputs: Float[Tensor, "time_and_one rows fed_and_size"],
    d_outputs: Float[Tensor, "time rows size_and_context"],
    d_cell: Float[Tensor, "rows size"],
) -> Gradients:
    """Backward through all steps: the readout, a product, attention, the cell, a product."""
    inputs, outputs, cells, gates, weights = saved
    (time, rows, _), fed = gates.shape, len(readout)
    d_gates, d_sums = torch.empty_like(gates), inputs.new_empty(time, rows, fed)
    d_scores, d_contexts = torch.empty_like(weights, dtype=keys.dtype), outputs.new_empty(time, rows, values.shape[2])
    d_next, d_pair, d_query = torch.zeros_like(inputs[0]), torch.empty_like(outputs[0]), torch.empty_like(d_cell)
    with without_autocast(inputs.device):
        for t in reversed(range(time)):
            next_inputs, d_output = inputs[t + 1], d_inputs[t + 1]
            launch_readout_backward(next_inputs[:, :fed], d_next[:, :fed], d_output[:, :fed], d_sums[t])
            torch.mm(d_sums[t], readout, out=d_pair)
            launch_attention_backward(
                weights[t], keys, values, keep, scale, d_pair, d_outputs[t], d_contexts[t], d_scores[t], d_query
            )
            launch_cell_backward(
                gates[t], cells[t], cells[t + 1], d_query, d_next[:, fed:], d_output[:, fed:], d_cell, d_gates[t]
            )
            torch.mm(d_gates[t], weight, out=d_next)
    return Gradients(d_gates, d_sums, d_scores, d_contexts, d_next + d_inputs[0], d_cell)
