"""Recurrent cells, one step at a time: for loops with a dependence between steps.

The layers are PyTorch's own (nn.RNN, nn.LSTM, nn.GRU), so that the same parameters also run as one fused call.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.models.layers.dropout import Drop
from regard.tree import map_tree

CELLS: dict[str, Callable[..., nn.RNNBase]] = {"tanh": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
STATES = {"tanh": 1, "lstm": 2, "gru": 1}
"""Number of state vectors of each cell: the LSTM has a hidden state and a cell state."""

Vectors = tuple[Float[Tensor, "rows size"], ...]
States = tuple[Float[Tensor, "rows layers size"], ...]


def build_cells(cell: str, data: int, size: int, bidirectional: bool = False) -> nn.RNNBase:
    """Build one recurrent layer, batch first; the forget gate of an LSTM starts open."""
    if cell not in CELLS:
        raise ValueError(f"a cell needs to be one of {', '.join(CELLS)}, got {cell!r}")
    layer = CELLS[cell](data, size, batch_first=True, bidirectional=bidirectional)
    if cell == "lstm":
        with torch.no_grad():
            for name, parameter in layer.named_parameters():
                if name.startswith("bias_ih"):
                    parameter[size : 2 * size] = 1.0
    return layer


def run_cells(layer: nn.Module, data: Any, begin: Any = None) -> tuple[Any, Any]:
    """Run a whole layer as one fused call, over a tensor or a packed sequence.

    On a CPU it keeps the dtype of its parameters: PyTorch's LSTM in bf16 dies there of an illegal instruction where the
    processor announces more than it allows.
    """
    weight = layer.get_parameter("weight_hh_l0")
    if weight.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return layer(data, begin)
    with torch.autocast("cpu", enabled=False):
        return layer(data.to(weight.dtype), map_tree(lambda tensor: tensor.to(weight.dtype), begin))


class DeferredWeightGradient(torch.autograd.Function):
    """Autograd function that takes the gradient of a matrix used at every step of a loop once, for all steps.

    y_t = b_t + W x_t has dW = Σ_t dy_t x_tᵀ. A loop adds up T small products, each as large as W; here the gradient of
    `bias` holds all dy_t, and one product computes dW. `inputs` is the list that the loop fills with its x.
    """

    @staticmethod
    def forward(ctx: Any, bias: Tensor, inputs: list[Tensor], weight: Tensor) -> Tensor:
        ctx.inputs, ctx.kind = inputs, weight.dtype
        return bias.view_as(bias)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        d = gradient.flatten(0, 1).mT
        return gradient, None, (d @ torch.cat(ctx.inputs).to(d.dtype)).to(ctx.kind)


class RepeatedLinear:
    """Affine map y_t = b_t + [W_1 W_2 ...] [x_1; x_2; ...] of the steps t of a loop, called once each and in order."""

    def __init__(self, bias: Float[Tensor, "time rows out"], *weights: Float[Tensor, "out _"]):
        self.inputs: list[Tensor] = []
        kind = bias.device.type
        if torch.is_autocast_enabled(kind):  # once, and not at every step
            bias = bias.to(torch.get_autocast_dtype(kind))
        weight = weights[0] if len(weights) == 1 else torch.cat((bias.new_empty(bias.shape[2], 0), *weights), dim=1)
        defers = torch.is_grad_enabled() and bias.shape[0] > 1 and not torch.compiler.is_compiling()
        self.defers = defers and weight.requires_grad and weight.numel() > 0
        if self.defers:
            bias = DeferredWeightGradient.apply(bias, self.inputs, weight)  # type: ignore[no-untyped-call]
            weight = weight.detach()
        self.bias = bias.unbind(0)
        self.weight = weight.to(bias.dtype).mT

    def __call__(self, step: int, *inputs: Float[Tensor, "rows _"]) -> Float[Tensor, "rows out"]:
        if not inputs:
            return self.bias[step]
        data = inputs[0] if len(inputs) == 1 else torch.cat(inputs, dim=1)
        if self.defers:
            self.inputs.append(data.detach())
        return torch.addmm(self.bias[step], data.to(self.weight.dtype), self.weight)


class UnrolledLayer:
    """Recurrent layer, step by step; inputs known for all steps are projected before the loop.

    `known` may be narrower than the layer's input; `__call__` gets the rest at each step. `backwards` takes the parameters
    of the backward direction; reversing the data is left to the caller.
    """

    def __init__(self, layer: nn.Module, known: Float[Tensor, "rows time _"], backwards: bool = False):
        rows, time, width = known.shape
        names = (f"{kind}_l0{'_reverse' * backwards}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        W, U, bias, hidden_bias = map(layer.get_parameter, names)
        self.gated = isinstance(layer, nn.GRU)
        self.advance = lstm_cell if isinstance(layer, nn.LSTM) else elman_cell
        first = bias if self.gated else bias + hidden_bias
        projected = F.linear(known.transpose(0, 1), W[:, :width], first) if width else first.expand(time, rows, -1)
        fed = (W[:, width:],) if W.shape[1] > width else ()
        if self.gated:
            self.input = RepeatedLinear(projected, *fed)
            self.recurrent = RepeatedLinear(hidden_bias.expand(time, rows, -1), U)
        else:
            self.input = RepeatedLinear(projected, *fed, U)

    def __call__(self, step: int, state: Vectors, *fed: Float[Tensor, "rows _"]) -> Vectors:
        if self.gated:
            return gru_cell(self.input(step, *fed), self.recurrent(step, state[0]), state)
        return self.advance(self.input(step, *fed, state[0]), state)


class LayerStack:
    """Stacked recurrent layers, step by step; `hidden` is their state, and `masks[n]` the dropout mask into layer n."""

    def __init__(
        self,
        layers: Iterable[nn.Module],
        known: Float[Tensor, "rows time _"],
        hidden: States,
        drop: Drop,
        masks: Sequence[Tensor | None],
    ):
        nothing = known[:, :, :0]
        self.layers = [UnrolledLayer(layer, nothing if number else known) for number, layer in enumerate(layers)]
        self.states = [tuple(state[:, number] for state in hidden) for number in range(len(self.layers))]
        self.drop, self.masks = drop, masks

    def advance(self, step: int, *fed: Float[Tensor, "rows _"]) -> Float[Tensor, "rows size"]:
        """Advance every layer by one step, bottom to top; returns the top hidden state."""
        for number, unrolled in enumerate(self.layers):
            if number:
                fed = (self.drop(self.states[number - 1][0][:, None], self.masks[number])[:, 0],)
            self.states[number] = unrolled(step, self.states[number], *fed)
        return self.top

    @property
    def top(self) -> Float[Tensor, "rows size"]:
        """Hidden state of the top layer."""
        return self.states[-1][0]

    @property
    def hidden(self) -> States:
        """States of all layers, as carried from step to step."""
        return stack_states(self.states)


def stack_states(layers: Sequence[Vectors]) -> States:
    """Stack the states of each layer into one tensor per kind of state."""
    return tuple(torch.stack(states, dim=1) for states in zip(*layers, strict=True))


def elman_cell(gates: Float[Tensor, "rows gates"], state: Vectors) -> Vectors:
    """Elman cell h' = tanh(W x + U h + b); Elman 1990, https://doi.org/10.1207/s15516709cog1402_1."""
    return (torch.tanh(gates),)


def lstm_cell(gates: Float[Tensor, "rows gates"], state: Vectors) -> Vectors:
    """c' = σ(f) c + σ(i) tanh(g),  h' = σ(o) tanh(c'); Hochreiter and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735."""
    write, forget, new, out = gates.chunk(4, dim=-1)
    cell = torch.sigmoid(forget) * state[1] + torch.sigmoid(write) * torch.tanh(new)
    return torch.sigmoid(out) * torch.tanh(cell), cell


def gru_cell(inputs: Float[Tensor, "rows gates"], recurrent: Float[Tensor, "rows gates"], state: Vectors) -> Vectors:
    """h' = (1 - z) tanh(x_n + σ(r) h_n) + z h,  z = σ(x_z + h_z); Cho et al. 2014, https://arxiv.org/abs/1406.1078."""
    reset, keep, new = inputs.chunk(3, dim=-1)
    reset_hidden, keep_hidden, new_hidden = recurrent.chunk(3, dim=-1)
    candidate = torch.tanh(new + torch.sigmoid(reset + reset_hidden) * new_hidden)
    return (candidate + torch.sigmoid(keep + keep_hidden) * (state[0] - candidate),)
