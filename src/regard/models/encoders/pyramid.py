"""Pyramidal bidirectional LSTM over frames: the listener of Listen, Attend and Spell."""

import torch
from torch import nn

from regard.attention.types import Encoded
from regard.data.audio.batch import Frames
from regard.models.encoders.recurrent import run_layer, run_layer_stepwise
from regard.models.encoders.subsampling import average, check_frames, count_halvings, halve_mask, join_pairs
from regard.models.layers.cells import build_cells
from regard.models.layers.dropout import Drop


class Pyramid(nn.Module):
    """Bidirectional LSTM layers, of which all but the first see two neighbouring vectors of the layer below side by side.

        h_t^j = BLSTM(h_{t-1}^j, [h_{2t}^{j-1}; h_{2t+1}^{j-1}])

    Chan et al. 2016, section 3.1, https://arxiv.org/abs/1508.01211. With a subsampling of 2ⁿ the lowest layer reads the
    frames and n layers halve their number: there are n + 1 `layers` at least, and further ones keep it. Each direction has
    half of `size`. The final state is the mean of the output.
    """

    def __init__(self, channels: int, size: int, *, subsampling: int = 8, layers: int | None = None, dropout: float = 0.0):
        super().__init__()
        halvings = count_halvings(subsampling)
        layers = max(halvings + 1, layers or 0)
        if size % 2:
            raise ValueError(f"a pyramid needs an even model.hidden_size, half for each direction, got {size}")
        self.channels, self.size, self.halvings = channels, size, halvings
        widths = [channels, *(2 * size if number < halvings else size for number in range(layers - 1))]
        self.layers = nn.ModuleList(build_cells("lstm", width, size // 2, bidirectional=True) for width in widths)
        self.drop = Drop(dropout)

    def forward(self, source: Frames) -> Encoded:
        data, keep = check_frames(source, self.channels)
        captured = data.is_cuda and torch.cuda.is_current_stream_capturing()
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.RNNBase)
            if number:
                data = self.drop(data)
            if 0 < number <= self.halvings:
                data, keep = join_pairs(data), halve_mask(keep)
            if captured:
                data, _ = run_layer_stepwise(layer, data, keep)
            else:
                data, _ = run_layer(layer, data, keep.sum(1).clamp_min(1).cpu())
            data = data.masked_fill(~keep[..., None], 0.0)
        return Encoded(data, keep, (average(data, keep),))
