"""Settings of forecasting models."""

from dataclasses import dataclass, field
from typing import Literal

from regard.config import AttentionPart
from regard.config.section import Section


@dataclass(frozen=True)
class ForecastModel(Section):
    """A forecasting network, the reversible normalisation of its windows, and the distribution that it forecasts."""

    network: Literal["patch", "inverted", "linear", "recurrent", "transformer", "temporal_fusion"] = "patch"
    """The network: patches (PatchTST), variates as tokens (iTransformer), a linear map (DLinear), an LSTM or GRU
    encoder-decoder with attention, a Transformer encoder-decoder, or the temporal fusion transformer."""
    output: Literal["points", "quantiles", "normal", "student_t", "negative_binomial"] = "quantiles"
    """Form of the forecast of each value: points, quantiles, or the parameters of a distribution."""
    error: Literal["mse", "mae", "huber"] = "mse"
    """Loss of model.output=points."""
    normalise: Literal["window", "last", "none"] = "window"
    """Reversible normalisation: each window by its mean and deviation (RevIN), by its last value, or not at all."""
    affine: bool = True
    """Learn a gain and a bias for each target in the reversible normalisation by window."""
    hidden_size: int = 64
    """Size of the vectors of a network."""
    feedforward_size: int = 128
    """Inner size of the feed-forward networks."""
    layers: int = 2
    """Layers of the encoder, and of the decoder where there is one."""
    heads: int = 4
    """Heads of self-attention."""
    self_attention: str = "scaled_dot"
    """Self-attention, by the name of a score, a normaliser or a scope, or several joined by +: scaled_dot+local."""
    norm: Literal["layer", "batch"] = "layer"
    """Norm after each sublayer."""
    patch_length: int = 16
    """Steps of a patch (model.network=patch)."""
    patch_stride: int = 8
    """Steps from one patch to the next."""
    trend_steps: int = 25
    """Steps of the moving average that splits trend from season (model.network=linear)."""
    cell: Literal["lstm", "gru"] = "lstm"
    """Cell of the recurrent network."""
    attention: AttentionPart = field(default_factory=lambda: AttentionPart("additive"))
    """The attention of a decoder over the look-back."""
