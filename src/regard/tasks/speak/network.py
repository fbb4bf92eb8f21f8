"""Parts of a synthesiser: encoder of a text, prenet, decoder of frames with attention, postnet."""

from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.types import Attended, Encoded, Memory, State
from regard.data.batch import Padded
from regard.models.encoders.recurrent import run_layer, run_layer_stepwise
from regard.models.types import Step

NAME = "decoder.cross"
"""Name of the attention of a recurrent decoder over the text."""


class Convolutions(nn.Module):
    """Convolutions over time, each with a layer norm over the channels, an activation and dropout.

    Shen et al. 2018, section 2.2, https://arxiv.org/abs/1712.05884, have batch norm: with layer norm a row is what it would
    be alone. Padding is 0 before each convolution.
    """

    def __init__(self, sizes: list[int], kernel: int, dropout: float, activation: str = "relu", plain_last: bool = False):
        super().__init__()
        if kernel % 2 == 0:
            raise ValueError(f"model.kernel_size needs to be an odd number, which has a middle, got {kernel}")
        pairs = list(pairwise(sizes))
        self.layers = nn.ModuleList(nn.Conv1d(first, second, kernel, padding=kernel // 2) for first, second in pairs)
        normed = pairs[:-1] if plain_last else pairs
        self.norms = nn.ModuleList(nn.LayerNorm(second) for _, second in normed)
        self.dropout = nn.Dropout(dropout)
        self.activation = {"relu": torch.relu, "tanh": torch.tanh}[activation]

    def forward(
        self, data: Float[Tensor, "batch time first"], keep: Bool[Tensor, "batch time"]
    ) -> Float[Tensor, "batch time last"]:
        for number, layer in enumerate(self.layers):
            data = layer(data.masked_fill(~keep[..., None], 0.0).mT).mT
            if number < len(self.norms):
                data = self.activation(self.norms[number](data))
            data = self.dropout(data)
        return data.masked_fill(~keep[..., None], 0.0)


class TextEncoder(nn.Module):
    """Encoder of Tacotron 2: embeddings, convolutions, and a bidirectional LSTM."""

    def __init__(self, vocabulary: int, size: int, layers: int, kernel: int, dropout: float):
        super().__init__()
        if size % 2:
            raise ValueError(f"model.hidden_size needs to be even, half for each direction of the encoder, got {size}")
        self.embedding = nn.Embedding(vocabulary, size)
        nn.init.normal_(self.embedding.weight, std=0.3)
        self.convolutions = Convolutions([size] * (layers + 1), kernel, dropout)
        self.recurrent = nn.LSTM(size, size // 2, batch_first=True, bidirectional=True)
        self.size = size

    def forward(self, source: Padded) -> Encoded:
        data = self.convolutions(self.embedding(source.data), source.keep)
        if data.is_cuda and torch.cuda.is_current_stream_capturing():
            data, _ = run_layer_stepwise(self.recurrent, data, source.keep)
        else:
            data, _ = run_layer(self.recurrent, data, source.keep.sum(1).clamp_min(1).cpu())
        return Encoded(data.masked_fill(~source.keep[..., None], 0.0), source.keep)


class Prenet(nn.Module):
    """Two layers with ReLU and dropout, through which a decoder reads the frame before.

    Its dropout is a bottleneck without which the decoder learns to continue the frames and not to read the text; Shen et al.
    2018, section 2.2, keep it in prediction (`always`).
    """

    def __init__(self, channels: int, size: int, dropout: float, always: bool):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(channels, size), nn.Linear(size, size)])
        self.dropout, self.always = dropout, always

    def forward(self, frames: Float[Tensor, "*rows channels"]) -> Float[Tensor, "*rows size"]:
        for layer in self.layers:
            frames = F.dropout(torch.relu(layer(frames)), self.dropout, self.training or self.always)
        return frames


class DecoderState(NamedTuple):
    """States of both cells, the context of the last step, and the state of the attention."""

    attention_cell: tuple[Float[Tensor, "rows size"], Float[Tensor, "rows size"]]
    decoder_cell: tuple[Float[Tensor, "rows size"], Float[Tensor, "rows size"]]
    context: Float[Tensor, "rows context"]
    attention: State


class FrameDecoder(nn.Module):
    """Decoder of Tacotron 2: an LSTM cell that attends, another one that reads what it attended to, and two projections.

        a_t = LSTM₁([prenet(frame_{t-1}); c_{t-1}]),    c_t = attention(a_t, text),    d_t = LSTM₂([a_t; c_t])
        frames_t = W [d_t; c_t],    stop_t = w [d_t; c_t]

    Shen et al. 2018, section 2.2, https://arxiv.org/abs/1712.05884. Each step has `reduction` frames, and reads the last one
    of the step before (Wang et al. 2017, section 3.3, https://arxiv.org/abs/1703.10135).
    """

    def __init__(
        self, attention: nn.Module, source: int, size: int, channels: int, reduction: int, prenet: Prenet, dropout: float
    ):
        super().__init__()
        self.cross, self.prenet, self.dropout = attention, prenet, nn.Dropout(dropout)
        context: int = attention.size  # type: ignore[assignment]
        read = prenet.layers[-1].out_features
        assert isinstance(read, int)
        self.attention_cell, self.decoder_cell = nn.LSTMCell(read + context, size), nn.LSTMCell(size + context, size)
        self.output = nn.Linear(size + context, channels * reduction + 1)
        self.size, self.context_size = size, context

    def remember(self, encoded: Encoded) -> Memory:
        """Memory of a text."""
        memory: Memory = self.cross.remember(encoded)  # type: ignore[operator]
        return memory

    def start(self, memory: Memory) -> DecoderState:
        """State before the first step: zeros."""
        zeros = memory.values.new_zeros(len(memory.values), self.size)
        context = memory.values.new_zeros(len(memory.values), self.context_size)
        return DecoderState((zeros, zeros), (zeros, zeros), context, self.cross.start(memory))  # type: ignore[operator]

    def step(
        self, frame: Float[Tensor, "rows channels"], memory: Memory, state: DecoderState, *, weights: bool = False
    ) -> Step:
        """One step, from the last frame of the step before."""
        hidden, state, attended = self.advance(self.prenet(frame), memory, state)
        return Step(self.output(hidden), state, {NAME: attended} if weights else {})

    def advance(
        self, read: Float[Tensor, "rows read"], memory: Memory, state: DecoderState
    ) -> tuple[Float[Tensor, "rows hidden"], DecoderState, Attended]:
        """The input of both projections, the next state, and the attention's result."""
        attention_cell = self.attention_cell(torch.cat((read, state.context), -1), state.attention_cell)
        query = self.dropout(attention_cell[0])
        attended: Attended = self.cross(query[:, None], memory, state.attention, weights=True)
        context = attended.context[:, 0]
        decoder_cell = self.decoder_cell(torch.cat((query, context), -1), state.decoder_cell)
        state = DecoderState(attention_cell, decoder_cell, context, attended.state)
        return torch.cat((self.dropout(decoder_cell[0]), context), -1), state, attended

    def forward(
        self,
        target: Float[Tensor, "batch time channels"],
        memory: Memory,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
    ) -> Step:
        """All steps with teacher forcing: `target` has the frame that each step reads."""
        state, hidden, looks = self.start(memory), list[Tensor](), list[Tensor]()
        for read in self.prenet(target).unbind(1):
            output, state, attended = self.advance(read, memory, state)
            hidden.append(output)
            if weights and attended.weights is not None:
                looks.append(attended.weights)
        joined = {NAME: Attended(state.context, torch.cat(looks, 2), state=state.attention)} if looks else {}
        return Step(self.output(torch.stack(hidden, 1)), state, joined)
