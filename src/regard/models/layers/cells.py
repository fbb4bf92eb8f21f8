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
    made = CELLS[cell](data, size, batch_first=True, bidirectional=bidirectional)
    if cell == "lstm":
        with torch.no_grad():
            for name, parameter in made.named_parameters():
                if name.startswith("bias_ih"):
                    parameter[size : 2 * size] = 1.0
    return made


def run_cells(made: nn.Module, data: Any, begin: Any = None) -> tuple[Any, Any]:
    """Run a whole layer as one fused call, over a tensor or a packed sequence.

    On a CPU it keeps the dtype of its parameters: PyTorch's LSTM in bf16 dies there of an illegal instruction where the
    processor announces more than it allows.
    """
    weight = made.get_parameter("weight_hh_l0")
    if weight.device.type != "cpu" or not torch.is_autocast_enabled("cpu"):
        return made(data, begin)
    with torch.autocast("cpu", enabled=False):
        return made(data.to(weight.dtype), map_tree(lambda tensor: tensor.to(weight.dtype), begin))


class DeferredWeightGradient(torch.autograd.Function):
    """Autograd function that takes the gradient of a matrix used at every step of a loop once, for all steps.

    y_t = given_t + W x_t has dW = Σ_t dy_t x_tᵀ. A loop adds up T small products, each as large as W; here the gradient of
    `given` holds all dy_t, and one product computes dW. `seen` is the list that the loop fills with its x.
    """

    @staticmethod
    def forward(ctx: Any, given: Tensor, seen: list[Tensor], weight: Tensor) -> Tensor:
        ctx.seen, ctx.kind = seen, weight.dtype
        return given.view_as(given)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        flowing = gradient.flatten(0, 1).mT
        return gradient, None, (flowing @ torch.cat(ctx.seen).to(flowing.dtype)).to(ctx.kind)


class RepeatedLinear:
    """Affine map y_t = given_t + [W_1 W_2 ...] [x_1; x_2; ...] of the steps t of a loop, called once each and in order."""

    def __init__(self, given: Float[Tensor, "time rows out"], *weights: Float[Tensor, "out _"]):
        self.seen: list[Tensor] = []
        kind = given.device.type
        if torch.is_autocast_enabled(kind):  # once, and not at every step
            given = given.to(torch.get_autocast_dtype(kind))
        weight = weights[0] if len(weights) == 1 else torch.cat((given.new_empty(given.shape[2], 0), *weights), dim=1)
        defers = torch.is_grad_enabled() and given.shape[0] > 1 and not torch.compiler.is_compiling()
        self.defers = defers and weight.requires_grad and weight.numel() > 0
        if self.defers:
            given = DeferredWeightGradient.apply(given, self.seen, weight)  # type: ignore[no-untyped-call]
            weight = weight.detach()
        self.given = given.unbind(0)
        self.weight = weight.to(given.dtype).mT

    def __call__(self, step: int, *inputs: Float[Tensor, "rows _"]) -> Float[Tensor, "rows out"]:
        if not inputs:
            return self.given[step]
        data = inputs[0] if len(inputs) == 1 else torch.cat(inputs, dim=1)
        if self.defers:
            self.seen.append(data.detach())
        return torch.addmm(self.given[step], data.to(self.weight.dtype), self.weight)


class UnrolledLayer:
    """Recurrent layer, step by step; inputs known for all steps are projected before the loop.

    `known` may be narrower than the layer's input; `__call__` gets the rest at each step. `backwards` takes the parameters
    of the backward direction; reversing the data is left to the caller.
    """

    def __init__(self, made: nn.Module, known: Float[Tensor, "rows time _"], backwards: bool = False):
        rows, time, width = known.shape
        names = (f"{kind}_l0{'_reverse' * backwards}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        W, U, bias, hidden_bias = map(made.get_parameter, names)
        self.gated = isinstance(made, nn.GRU)
        self.advance = lstm_cell if isinstance(made, nn.LSTM) else elman_cell
        first = bias if self.gated else bias + hidden_bias
        given = F.linear(known.transpose(0, 1), W[:, :width], first) if width else first.expand(time, rows, -1)
        fed = (W[:, width:],) if W.shape[1] > width else ()
        if self.gated:
            self.entering = RepeatedLinear(given, *fed)
            self.staying = RepeatedLinear(hidden_bias.expand(time, rows, -1), U)
        else:
            self.entering = RepeatedLinear(given, *fed, U)

    def __call__(self, step: int, state: Vectors, *fed: Float[Tensor, "rows _"]) -> Vectors:
        if self.gated:
            return gru_cell(self.entering(step, *fed), self.staying(step, state[0]), state)
        return self.advance(self.entering(step, *fed, state[0]), state)


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
        self.layers = [UnrolledLayer(made, nothing if number else known) for number, made in enumerate(layers)]
        self.states = [tuple(each[:, number] for each in hidden) for number in range(len(self.layers))]
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
    return tuple(torch.stack(each, dim=1) for each in zip(*layers, strict=True))


def elman_cell(gates: Float[Tensor, "rows gates"], state: Vectors) -> Vectors:
    """Elman cell h' = tanh(W x + U h + b); Elman 1990, https://doi.org/10.1207/s15516709cog1402_1."""
    return (torch.tanh(gates),)


def lstm_cell(gates: Float[Tensor, "rows gates"], state: Vectors) -> Vectors:
    """c' = σ(f) c + σ(i) tanh(g),  h' = σ(o) tanh(c'); Hochreiter and Schmidhuber 1997, https://doi.org/10.1162/neco.1997.9.8.1735."""
    enter, forget, new, out = gates.chunk(4, dim=-1)
    cell = torch.sigmoid(forget) * state[1] + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(out) * torch.tanh(cell), cell


def gru_cell(entering: Float[Tensor, "rows gates"], staying: Float[Tensor, "rows gates"], state: Vectors) -> Vectors:
    """h' = (1 - z) tanh(x_n + σ(r) h_n) + z h,  z = σ(x_z + h_z); Cho et al. 2014, https://arxiv.org/abs/1406.1078."""
    reset, keep, new = entering.chunk(3, dim=-1)
    reset_hidden, keep_hidden, new_hidden = staying.chunk(3, dim=-1)
    candidate = torch.tanh(new + torch.sigmoid(reset + reset_hidden) * new_hidden)
    return (candidate + torch.sigmoid(keep + keep_hidden) * (state[0] - candidate),)
