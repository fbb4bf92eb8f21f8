"""Recurrent encoder of token sequences."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.attention.positions import Positions
from regard.attention.types import Encoded
from regard.data.batch import Padded
from regard.models.encoders import unpack_source
from regard.models.layers import onnx_cells
from regard.models.layers.cells import UnrolledLayer, build_cells, run_cells, stack_states
from regard.models.layers.dropout import Drop
from regard.models.layers.embedding import Embedding

Data = Float[Tensor, "batch time _"]


class Recurrent(nn.Module):
    """Recurrent encoder, forward or bidirectional: one hidden state per token.

        h_t = [forward(x_1 .. x_t); backward(x_T .. x_t)]

    Bahdanau, Cho and Bengio 2015, section 3.2, https://arxiv.org/abs/1409.0473
    `size` is that of h_t: with both directions each has half of it. Padding is never read (the sequences are packed).
    `reverse` reads the source from its end, as Sutskever et al. 2014 do (section 3.3, https://arxiv.org/abs/1409.3215); the
    output is in the order of the source all the same.
    """

    def __init__(
        self,
        vocabulary: int,
        size: int,
        *,
        embedding: int | None = None,
        layers: int = 1,
        cell: str = "lstm",
        bidirectional: bool = True,
        reverse: bool = False,
        positions: Positions | None = None,
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
        variational: bool = False,
    ):
        super().__init__()
        if bidirectional and size % 2:
            raise ValueError(f"a bidirectional encoder needs an even size, half for each direction, got {size}")
        self.embedding = Embedding(
            vocabulary, embedding or size, positions=positions, dropout=drop_embedding, variational=variational
        )
        self.size, self.reverse = size, reverse
        part = size // 2 if bidirectional else size
        self.layers = nn.ModuleList(
            build_cells(cell, size if number else self.embedding.size, part, bidirectional) for number in range(layers)
        )
        self.drop = Drop(drop_residual, variational)

    def forward(self, source: Padded) -> Encoded:
        tokens, keep = unpack_source(source, "recurrent")
        lengths = keep.sum(1)
        order = reverse_indices(keep, lengths) if self.reverse else None
        if order is not None:
            tokens = tokens.gather(1, order)
        data = self.embedding(tokens)
        captured = data.is_cuda and torch.cuda.is_current_stream_capturing()
        exported = torch.compiler.is_exporting()
        real = None if captured or exported else lengths.clamp_min(1).cpu()
        finals = []
        for number, rnn in enumerate(self.layers):
            assert isinstance(rnn, nn.RNNBase)
            if number:
                data = self.drop(data)
            if exported:
                data, final = onnx_cells.export_layer(rnn, data, lengths.clamp_min(1))
            else:
                data, final = run_layer_stepwise(rnn, data, keep) if real is None else run_layer(rnn, data, real)
            finals.append(final)
        if order is not None:
            data = data.gather(1, order[..., None].expand_as(data))
        return Encoded(data.masked_fill(~keep[..., None], 0.0), keep, stack_states(finals), tokens=source.data)


def run_layer(
    rnn: nn.RNNBase, data: Data, lengths: Int[Tensor, " batch"]
) -> tuple[Data, tuple[Float[Tensor, "batch _"], ...]]:
    """Run one layer over rows of these lengths; returns outputs and final states with both directions side by side."""
    batch, time, _ = data.shape
    if int(lengths.min()) == time:
        outputs, last = run_cells(rnn, data)
    else:
        outputs, last = run_cells(rnn, pack_padded_sequence(data, lengths, batch_first=True, enforce_sorted=False))
        outputs, _ = pad_packed_sequence(outputs, batch_first=True, total_length=time)
    states = last if isinstance(last, tuple) else (last,)
    return outputs, tuple(state.transpose(0, 1).reshape(batch, -1) for state in states)


def run_layer_stepwise(
    rnn: nn.RNNBase, data: Data, keep: Bool[Tensor, "batch time"]
) -> tuple[Data, tuple[Float[Tensor, "batch _"], ...]]:
    """Run one layer step by step, equal to `run_layer`: no kernel depends on a length, as a CUDA graph requires."""
    directions = [(data, keep), (data.flip(1), keep.flip(1))][: 1 + rnn.bidirectional]
    outputs, lasts = list[Tensor](), list[tuple[Tensor, ...]]()
    for number, (inputs, real) in enumerate(directions):
        unrolled = UnrolledLayer(rnn, inputs, backwards=number == 1)
        state = (inputs.new_zeros(len(inputs), rnn.hidden_size),) * (1 + isinstance(rnn, nn.LSTM))
        tops = []
        for step, keep_step in enumerate(real[..., None].unbind(1)):
            state = tuple(torch.where(keep_step, new, old) for new, old in zip(unrolled(step, state), state, strict=True))
            tops.append(state[0])
        outputs.append(torch.stack(tops, dim=1))
        lasts.append(state)
    in_order = [tensor.flip(1) if number else tensor for number, tensor in enumerate(outputs)]
    return torch.cat(in_order, dim=-1), tuple(torch.cat(tensor, dim=-1) for tensor in zip(*lasts, strict=True))


def reverse_indices(keep: Bool[Tensor, "batch time"], lengths: Int[Tensor, " batch"]) -> Int[Tensor, "batch time"]:
    """Index of each position when rows are reversed; padding stays in place."""
    places = torch.arange(keep.shape[1], device=keep.device)[None]
    return torch.where(keep, lengths[:, None] - 1 - places, places)
