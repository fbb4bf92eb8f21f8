"""Speech-to-sequence model: an encoder of frames, a decoder, and an output layer for CTC."""

from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.types import Encoded
from regard.config import AudioDropout, AudioToTextModel
from regard.models.decoders.transformer import Transformer
from regard.models.encoders.conformer import SpeechTransformer
from regard.models.encoders.pyramid import Pyramid
from regard.models.layers.attention_output import AttentionOutput
from regard.models.seq2seq import Seq2Seq, build_decoder, initialise, position_options
from regard.models.types import Decoder, Encoder


class Speech2Seq(Seq2Seq):
    """Speech-to-sequence model. With `vocabulary` its encoder has an output layer for CTC, whose blank is token 0.

        p(k | t, x) = softmax(W h_t)

    Watanabe et al. 2017, https://doi.org/10.1109/JSTSP.2017.2763455 (joint CTC and attention); Graves et al. 2006,
    https://doi.org/10.1145/1143844.1143891 (CTC).
    """

    def __init__(self, encoder: Encoder, decoder: Decoder, vocabulary: int | None = None):
        super().__init__(encoder, decoder)
        self.ctc = None if vocabulary is None else nn.Linear(encoder.size, vocabulary)

    def label(self, encoded: Encoded) -> Float[Tensor, "batch time vocabulary"] | None:
        """Log-probabilities of each token and of blank at each position; None without CTC."""
        return None if self.ctc is None else self.ctc(encoded.data).float().log_softmax(-1)


def build(
    model: AudioToTextModel,
    dropout: AudioDropout,
    channels: int,
    vocabulary: int,
    longest: tuple[int, int] = (3000, 1024),
    ctc: bool = False,
) -> Speech2Seq:
    """Build the model that a config describes, for features of so many channels.

    `longest` are the most frames of a source and the most tokens of a target, for parts with parameters for each position.
    """
    positions = -(-longest[0] // model.subsampling)
    encoder = build_encoder(model, dropout, channels, positions)
    decoder = build_decoder(model, dropout, encoder.size, vocabulary, longest=(positions, longest[1]))
    outcome = getattr(decoder, "outcome", None)
    if isinstance(outcome, AttentionOutput) and outcome.copying is not None:
        raise ValueError(
            f"attention {model.attention.name!r} copies words of its source, and sound has none; choose another, such as "
            "location_sensitive"
        )
    for part in (encoder, decoder):
        if isinstance(part, SpeechTransformer | Transformer):
            initialise(part)
    return Speech2Seq(encoder, decoder, vocabulary if ctc else None)


def build_encoder(
    model: AudioToTextModel, dropout: AudioDropout, channels: int, positions: int
) -> Pyramid | SpeechTransformer:
    """Build the encoder that a config describes."""
    if model.encoder == "pyramid":
        return Pyramid(
            channels,
            model.hidden_size,
            subsampling=model.subsampling,
            layers=model.encoder_layers,
            dropout=dropout.encoder,
        )
    options: dict[str, Any] = {
        "heads": model.heads,
        "inner": model.feedforward_size,
        "activation": model.activation,
        "gated": model.gated,
        "bias": model.bias,
        "self_attention": model.self_attention,
        "width": model.self_attention_size,
        "norm": model.norm,
        "drop_attention": dropout.attention,
    }
    placed = position_options(model, dropout, positions)["positions"]
    if placed is not None and placed.size != model.hidden_size:
        raise ValueError("an encoder of frames has no embedding: model.embedding_size needs to be None or model.hidden_size")
    return SpeechTransformer(
        channels,
        model.hidden_size,
        subsampling=model.subsampling,
        layers=model.encoder_layers or model.layers,
        kernel=model.convolution_kernel if model.encoder == "conformer" else None,
        positions=placed,
        scaled=model.scale_embedding,
        dropout=dropout.encoder,
        **options,
    )
