"""Recurrent encoder-decoder with attention over the look-back: Bahdanau's on series."""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.types import Encoded, Memory, State
from regard.config import Dropout
from regard.data.series.batch import SeriesSource
from regard.models.attention_factory import build_attention
from regard.tasks.forecast.config import ForecastModel
from regard.tasks.forecast.model import Horizon, Look, Looks, Sizes, StaticEmbedding, Values, input_size, network_input

Step = Float[Tensor, "batch _"]
Cells = tuple[tuple[Step, ...], ...]


class DecoderState(NamedTuple):
    """States of the cells of each layer, the context of the last step, and the state of the attention."""

    cells: Cells
    context: Step
    attention: State


class Recurrent(nn.Module):
    """LSTM or GRU over the look-back, and another one that reads it by attention at each step of the horizon.

        s_t = cell([y_{t-1}; covariates_t; c_{t-1}], s_{t-1})
        c_t = attention(s_t, h_1 ... h_T)
        output_t = W [s_t; c_t; y_{t-1}]

    Bahdanau et al. 2015, https://arxiv.org/abs/1409.0473, with the attention after the cell (Luong et al. 2015). y_{t-1} is
    the value before: in training the true one (teacher forcing) or, at a share of steps (scheduled sampling), the forecast
    one, as always in a forecast: the median or mean of an output. Where the true value is missing, the forecast one too.
    """

    def __init__(self, settings: ForecastModel, dropout: Dropout, sizes: Sizes):
        super().__init__()
        size = settings.hidden_size
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}[settings.cell]
        between = dropout.residual if settings.layers > 1 else 0.0
        self.encoder = kind(input_size(sizes), size, settings.layers, batch_first=True, dropout=between)
        self.static = StaticEmbedding(sizes.static, size)
        part = settings.attention
        self.attention = build_attention(part.name, size, size, heads=part.heads, size=part.size, dropout=dropout.attention)
        context = self.attention.size if self.attention is not None else 0
        cell = {"lstm": nn.LSTMCell, "gru": nn.GRUCell}[settings.cell]
        first = sizes.targets + sizes.known + context
        self.cells = nn.ModuleList(cell(first if layer == 0 else size, size) for layer in range(settings.layers))
        self.dropout = nn.Dropout(dropout.residual)
        self.head = nn.Linear(size + context + sizes.targets, sizes.targets * sizes.output)
        self.horizon, self.targets, self.output = sizes.horizon, sizes.targets, sizes.output
        self.point = sizes.point
        self.context_size, self.is_lstm = context, settings.cell == "lstm"

    def forward(
        self,
        values: Values,
        source: SeriesSource,
        target: Horizon | None = None,
        sampling: float = 0.0,
        looks: Looks | None = None,
    ) -> Float[Tensor, "batch horizon targets size"]:
        encoded, final = self.encoder(network_input(values, source))
        memory = None if self.attention is None else self.attention.remember(Encoded(encoded, source.keep))
        state = self._start(final, source, memory)
        value, outputs, weights = values[:, -1], list[Tensor](), list[Tensor]()
        for step, known in enumerate(source.known[:, values.shape[1] :].unbind(1)):
            output, state = self._step(value, known, state, memory, None if looks is None else weights)
            outputs.append(output)
            value = output[..., self.point]
            if target is not None and step + 1 < self.horizon:
                value = self._mix(value, target[:, step], sampling)
        if looks is not None and weights:
            looks["attention"] = Look("horizon", "look-back", torch.cat(weights, 2))
        return torch.stack(outputs, 1)

    def _mix(self, own: Float[Tensor, "batch targets"], true: Float[Tensor, "batch targets"], sampling: float) -> Tensor:
        """True values, or at a share of rows, and where one is missing, the decoder's own."""
        chosen = true.isnan()
        if sampling > 0:
            chosen = chosen | (torch.rand(len(own), 1, device=own.device) < sampling)
        return torch.where(chosen, own.detach(), true)

    def _start(self, final: object, source: SeriesSource, memory: Memory | None) -> DecoderState:
        static = self.static(source.static)
        parts = final if self.is_lstm else (final,)
        layers = zip(*(part.unbind(0) for part in parts), strict=True)  # type: ignore[attr-defined]
        cells = tuple((layer[0] + static, *layer[1:]) for layer in layers)
        state = () if self.attention is None or memory is None else self.attention.start(memory)
        return DecoderState(cells, static.new_zeros(len(static), self.context_size), state)

    def _step(
        self, value: Step, known: Step, state: DecoderState, memory: Memory | None, weights: list[Tensor] | None
    ) -> tuple[Float[Tensor, "batch targets size"], DecoderState]:
        below, cells = torch.cat((value, known, state.context), -1), []
        for cell, before in zip(self.cells, state.cells, strict=True):
            after = cell(below, before) if self.is_lstm else (cell(below, before[0]),)
            cells.append(after)
            below = self.dropout(after[0])
        context, attention = state.context, state.attention
        if self.attention is not None and memory is not None:
            attended = self.attention(below[:, None], memory, state.attention, weights=weights is not None)
            context, attention = attended.context[:, 0], attended.state
            if weights is not None and attended.weights is not None:
                weights.append(attended.weights)
        output = self.head(torch.cat((below, context, value), -1)).unflatten(-1, (self.targets, self.output))
        return output, DecoderState(tuple(cells), context, attention)


def build(settings: ForecastModel, dropout: Dropout, sizes: Sizes) -> nn.Module:
    """The network of settings."""
    return Recurrent(settings, dropout, sizes)
