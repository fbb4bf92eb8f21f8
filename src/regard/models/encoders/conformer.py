"""Transformer and Conformer encoders of frames, after convolutional subsampling."""

from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard import registry
from regard.attention.positions import Positions
from regard.attention.types import Encoded
from regard.data.audio.batch import Frames
from regard.models.encoders.subsampling import ConvolutionalSubsampling, average
from regard.models.encoders.transformer import Layer
from regard.models.layers.transformer import Sublayers

Data = Float[Tensor, "batch time size"]
Mask = Bool[Tensor, "batch time"]


class ConvolutionModule(nn.Module):
    """Convolution module of a Conformer: a gated pointwise convolution, a depthwise one, and a pointwise one.

        y = W₂ swish(norm(depthwise(GLU(W₁ x))))

    Gulati et al. 2020, section 2.2, https://arxiv.org/abs/2005.08100. Unlike the paper the norm is a layer norm, whose
    result does not depend on the other recordings of a batch; padding is set to zero before the depthwise convolution.
    """

    def __init__(self, size: int, kernel: int):
        super().__init__()
        if kernel < 1 or kernel % 2 == 0:
            raise ValueError(f"model.convolution_kernel needs an odd number, as many frames to each side, got {kernel}")
        self.widen = nn.Linear(size, 2 * size)
        self.depthwise = nn.Conv1d(size, size, kernel, padding=kernel // 2, groups=size)
        self.norm = nn.LayerNorm(size)
        self.narrow = nn.Linear(size, size)

    def forward(self, data: Data, keep: Mask) -> Data:
        gated = F.glu(self.widen(data), dim=-1).masked_fill(~keep[..., None], 0.0)
        mixed = self.depthwise(gated.mT).mT
        output: Data = self.narrow(F.silu(self.norm(mixed)))
        return output


class ConformerLayer(nn.Module):
    """Conformer layer: half a feed-forward network, self-attention, the convolution module, the other half, and a norm.

        x₁ = x + ½ ffn(x),  x₂ = x₁ + attend(x₁),  x₃ = x₂ + conv(x₂),  y = norm(x₃ + ½ ffn(x₃))

    Gulati et al. 2020, section 2.4, https://arxiv.org/abs/2005.08100
    """

    def __init__(self, sublayers: Sublayers, kernel: int):
        super().__init__()
        self.first, self.around_first = sublayers.build_feedforward(), sublayers.build_residual()
        self.self, self.around_self = sublayers.build_self_attention(), sublayers.build_residual()
        self.convolution, self.around_convolution = ConvolutionModule(sublayers.size, kernel), sublayers.build_residual()
        self.second, self.around_second = sublayers.build_feedforward(), sublayers.build_residual()
        self.norm = nn.LayerNorm(sublayers.size)

    def forward(self, data: Data, keep: Mask) -> Data:
        data = self.around_first.add(data, 0.5 * self.first(self.around_first.normalise_input(data, keep)))
        attended, _ = self.self.attend_self(Encoded(self.around_self.normalise_input(data, keep), keep))
        data = self.around_self.add(data, attended.context)
        data = self.around_convolution.add(data, self.convolution(self.around_convolution.normalise_input(data, keep), keep))
        data = self.around_second.add(data, 0.5 * self.second(self.around_second.normalise_input(data, keep)))
        return self.norm(data)


class SpeechTransformer(nn.Module):
    """Encoder of frames: convolutional subsampling, then layers of a Transformer or, with a `kernel`, of a Conformer.

    Dong, Xu and Xu 2018, https://doi.org/10.1109/ICASSP.2018.8462506; Gulati et al. 2020, https://arxiv.org/abs/2005.08100.
    The final state is the mean of the output. Layer n is the submodule "n".
    """

    def __init__(
        self,
        channels: int,
        size: int,
        *,
        subsampling: int = 4,
        layers: int = 1,
        kernel: int | None = None,
        positions: Positions | str | None = "sinusoidal",
        scaled: bool = True,
        dropout: float = 0.0,
        **options: Any,
    ):
        super().__init__()
        self.subsampling = ConvolutionalSubsampling(channels, size, subsampling, dropout)
        placed = registry.build(positions, "positions", size=size)
        if placed is not None and placed.width(size) != size:
            raise ValueError("positions of an encoder of frames are added to its input: model.join needs to be add")
        self.positions, self.factor = placed, size**0.5 if scaled else 1.0
        sublayers = Sublayers(size, drop_residual=dropout, **options)
        if kernel is not None and sublayers.norm == "post":
            raise ValueError("a conformer has its norms before each sublayer: model.norm needs to be pre or rms")
        self.names = [str(number) for number in range(layers)]
        for name in self.names:
            self.add_module(name, Layer(sublayers) if kernel is None else ConformerLayer(sublayers, kernel))
        self.norm = sublayers.build_final_norm() if kernel is None else nn.Identity()
        self.size = size

    def forward(self, source: Frames) -> Encoded:
        data, keep = self.subsampling(source)
        if self.positions is not None:
            data = self.positions(data * self.factor)
        for name in self.names:
            data = self.get_submodule(name)(data, keep)
        data = self.norm(data).masked_fill(~keep[..., None], 0.0)
        return Encoded(data, keep, (average(data, keep),))
