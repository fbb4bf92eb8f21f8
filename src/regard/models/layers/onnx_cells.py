"""Recurrent layer as one ONNX operator over rows of any length, for exported encoders."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""Order of PyTorch's gates in ONNX: input, output, forget, cell; update, reset, new."""
VERSION = 14
"""Version of the operators: https://onnx.ai/onnx/operators/onnx__LSTM.html, onnx__GRU.html and onnx__RNN.html."""


def export_layer(
    rnn: nn.RNNBase, data: Float[Tensor, "batch time data"], lengths: Int[Tensor, " batch"]
) -> tuple[Float[Tensor, "batch time size"], tuple[Float[Tensor, "batch size"], ...]]:
    """Run one layer over rows of these lengths; returns outputs and final states with both directions side by side.

    Valid only inside torch.onnx.export, where it equals `over` of the recurrent encoder: past its length a row is not read,
    and the outputs are zeros. The GRU has a bias inside its reset gate, as PyTorch's does (linear_before_reset).
    """
    from torch.onnx import ops

    (batch, time, _), kind, ways = data.shape, type(rnn).__name__, 1 + rnn.bidirectional
    attributes: dict[str, int | str] = {
        "hidden_size": rnn.hidden_size,
        "direction": "bidirectional" if rnn.bidirectional else "forward",
        **({"linear_before_reset": 1} if kind == "GRU" else {}),
    }
    last = [ways, batch, rnn.hidden_size]
    shapes: Sequence[Sequence[int]] = [[time, ways, batch, rnn.hidden_size], *[last] * (1 + (kind == "LSTM"))]
    outputs, *states = ops.symbolic_multi_out(
        kind,
        (data.transpose(0, 1), *reorder_parameters(rnn, kind), lengths.int()),
        attributes,  # type: ignore[arg-type]
        dtypes=[data.dtype] * len(shapes),
        shapes=shapes,
        version=VERSION,
    )
    beside = outputs.permute(2, 0, 1, 3).flatten(2)  # batch time (ways size)
    return beside, tuple(state.transpose(0, 1).flatten(1) for state in states)


def reorder_parameters(
    rnn: nn.RNNBase, kind: str
) -> tuple[Float[Tensor, "ways gates data"], Float[Tensor, "ways gates size"], Float[Tensor, "ways biases"]]:
    """Weights W, R and concatenated biases as ONNX has them: directions side by side, gates in its order."""
    ends = ("", "_reverse")[: 1 + rnn.bidirectional]

    def reorder(name: str) -> Tensor:
        directions = [rnn.get_parameter(f"{name}_l0{end}").chunk(len(GATES[kind])) for end in ends]
        return torch.stack([torch.cat([chunks[gate] for gate in GATES[kind]]) for chunks in directions])

    return reorder("weight_ih"), reorder("weight_hh"), torch.cat((reorder("bias_ih"), reorder("bias_hh")), dim=1)
