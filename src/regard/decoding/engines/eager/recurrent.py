"""Recurrent decoder as one function of its weights: one matrix for each cell."""

from collections.abc import Callable
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.decoding.engines.eager import attention
from regard.decoding.engines.eager.attention import split_linear
from regard.decoding.engines.eager.embedding import OutputProjection, StepEmbedding
from regard.decoding.engines.eager.linear import Buffers, prepare_matrix
from regard.models.decoders import DecoderMemory
from regard.models.decoders.recurrent import CROSS_NAME, Recurrent
from regard.models.layers.cells import elman_cell, gru_cell, lstm_cell
from regard.models.output_heads.projection import Projection

Rows = Float[Tensor, "rows _"]
Vectors = tuple[Rows, ...]


def covers(decoder: Any) -> str | None:
    """Reason why the CPU engine does not cover this decoder, or None."""
    if type(decoder) is not Recurrent:
        return f"needs the recurrent decoder, got {type(decoder).__name__}"
    if decoder.outcome is not None or type(decoder.output) is not Projection:
        return "needs an output that is nothing but a projection"
    if decoder.cross is None:
        return "needs an attention to the source"
    return None


def build_cell(layer: nn.RNNBase, precision: str) -> Callable[[Rows, Vectors], Vectors]:
    """Build one layer of cells: input and recurrent weights as one matrix where the cell adds the two."""
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    W, U, bias, hidden_bias = (layer.get_parameter(name).detach() for name in names)
    if isinstance(layer, nn.GRU):
        entering, staying = prepare_matrix(W, bias, precision), prepare_matrix(U, hidden_bias, precision)
        return lambda data, state: gru_cell(entering(data), staying(state[0]), state)
    both, advance = prepare_matrix(torch.cat((W, U), dim=1), bias + hidden_bias, precision), lstm_cell
    if not isinstance(layer, nn.LSTM):
        advance = elman_cell
    return lambda data, state: advance(both(torch.cat((data, state[0]), dim=1)), state)


class Engine:
    """CPU engine of a recurrent decoder."""

    def __init__(self, decoder: Recurrent, precision: str = "float32"):
        assert decoder.cross is not None
        self.words = StepEmbedding(decoder.embedding)
        self.cells = [build_cell(cast(nn.RNNBase, layer), precision) for layer in decoder.layers]
        self.before, self.feeds = decoder.before, decoder.feeds
        weight, bias = split_linear(decoder.readout)
        if self.before:
            self.readout, self.cross = (
                prepare_matrix(weight, bias, precision),
                attention.PreparedAttention(decoder.cross, precision),
            )
        else:  # only the readout reads the context
            own, context = weight[:, : decoder.size], weight[:, decoder.size :]
            self.readout = prepare_matrix(own, bias, precision)
            self.cross = attention.PreparedAttention(decoder.cross, precision, (context, torch.zeros_like(bias)))
        self.output = OutputProjection(cast(Projection, decoder.output), decoder.embedding.table.weight, precision)

    def begin(self, memory: DecoderMemory) -> "Steps":
        """Initial state of a batch, before the first token."""
        return Steps(self, memory)


class Steps:
    """Decoder state of one batch: cell states, the readout that is fed back, and the sources."""

    def __init__(self, engine: Engine, memory: DecoderMemory):
        self.engine, self.place, self.rooms = engine, 0, Buffers()
        self.states: list[Vectors] = [
            tuple(tensor[:, number] for tensor in memory.initial) for number in range(len(engine.cells))
        ]
        self.fed = self.top.new_zeros(self.top.shape) if engine.feeds and not engine.before else None
        self.source = engine.cross.begin(memory.memories[CROSS_NAME])

    @property
    def top(self) -> Rows:
        """Hidden state of the top layer."""
        return self.states[-1][0]

    def leave(self, staying: Int[Tensor, " staying"]) -> None:
        """Drop the other sentences; states follow with their rows."""
        self.source.leave(staying)

    def step(self, tokens: Int[Tensor, " rows"], parents: Int[Tensor, " rows"] | None) -> Float[Tensor, "rows vocabulary"]:
        """Decoding step: one token for each row in, logits out."""
        if parents is not None:
            self.states = [tuple(tensor.index_select(0, parents) for tensor in state) for state in self.states]
            self.fed = None if self.fed is None else self.fed.index_select(0, parents)
            self.source.follow(parents)
        token = self.engine.words(tokens, self.place)
        self.place += 1
        return self.engine.output(self.rooms, self.bahdanau(token) if self.engine.before else self.luong(token))

    def bahdanau(self, token: Rows) -> Rows:
        """Bahdanau's order: attend with the previous state; the context enters the step."""
        context = self.source(self.top)
        self.advance(torch.cat((token, context), dim=1))
        return self.engine.readout(torch.cat((self.top, context, token), dim=1)).tanh_()

    def luong(self, token: Rows) -> Rows:
        """Luong's order: attend with the state after the step; the readout enters the next step."""
        self.advance(token if self.fed is None else torch.cat((token, self.fed), dim=1))
        readout = self.source.onto(self.engine.readout(self.top), self.top).tanh_()
        self.fed = None if self.fed is None else readout
        return readout

    def advance(self, data: Rows) -> None:
        """Advance every layer, bottom to top."""
        for number, advance in enumerate(self.engine.cells):
            self.states[number] = advance(data, self.states[number])
            data = self.states[number][0]
