"""Picture-to-sequence model: a picture encoder and a decoder, and how a config builds them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.attention.types import Encoded
from regard.config import ImageDropout, ImageModel, ImageToTextModel, VitPart
from regard.models.decoders.transformer import Transformer
from regard.models.encoders.backbones import ImageEncoder, build_image_encoder
from regard.models.encoders.positions2d import GridPositions, add_positions, build_grid_positions
from regard.models.layers.attention_output import AttentionOutput
from regard.models.seq2seq import Seq2Seq, build_decoder, initialise
from regard.models.types import Decoder


class Image2Seq(Seq2Seq):
    """Picture-to-sequence model: any picture encoder and any decoder.

    Pictures are standardised first, by the mean and the standard deviation of each channel over the training data: most of a
    picture is background, and what all positions share would drown what is on it. `positions` are added to a CNN's feature
    map, since convolutions know them at the edges alone.
    Xu et al. 2015, https://arxiv.org/abs/1502.03044
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        encoder: ImageEncoder,
        decoder: Decoder,
        mean: Sequence[float],
        deviation: Sequence[float],
        positions: GridPositions | None = None,
    ):
        super().__init__(encoder, decoder)
        self.positions = positions
        self.register_buffer("mean", torch.tensor(mean)[:, None, None])
        self.register_buffer("deviation", torch.tensor(deviation)[:, None, None])

    def read(self, source: Any) -> Encoded:
        """Encode images."""
        encoded = super().read(source._replace(data=(source.data - self.mean) / self.deviation))
        return add_positions(encoded, self.positions)


def build(
    model: ImageToTextModel,
    dropout: ImageDropout,
    vocabulary: int,
    box: tuple[int, int],
    standard: tuple[Sequence[float], Sequence[float]],
    longest: int = 1024,
) -> Image2Seq:
    """Build the model that a config describes, for pictures within a box and targets of at most `longest` tokens.

    `standard` are the mean and the standard deviation of each channel.
    """
    rows, columns = (-(-side // model.stride) for side in box)
    options = encoder_options(model, dropout) | (patch_options(model.vit, (rows, columns)) if model.encoder == "vit" else {})
    encoder = build_image_encoder(model.encoder, len(standard[0]), model.map_size or model.hidden_size, **options)
    places = rows * columns + model.vit.cls_tokens
    decoder = build_decoder(model, dropout, encoder.size, vocabulary, longest=(places, longest))
    outcome = getattr(decoder, "outcome", None)
    if isinstance(outcome, AttentionOutput) and outcome.copying is not None:
        raise ValueError(
            f"attention {model.attention.name!r} copies words of its source, and a picture has none; choose another, "
            "such as additive"
        )
    if isinstance(decoder, Transformer):
        initialise(decoder)
    positions = None if model.encoder == "vit" else build_grid_positions(model.map_positions, encoder.size)
    return Image2Seq(encoder, decoder, *standard, positions)


def patch_options(patches: VitPart, places: tuple[int, int]) -> dict[str, Any]:
    """Arguments of a patch encoder that differ from the decoder's, for a map of so many rows and columns."""
    said: dict[str, Any] = {"heads": patches.heads, "inner": patches.feedforward_size, "norm": patches.norm}
    said |= {
        "activation": patches.activation,
        "width": patches.hidden_size,
        "epsilon": patches.norm_eps,
        "table": places if patches.learned_positions else None,
    }
    return {name: value for name, value in said.items() if value is not None} | {"whole": patches.cls_tokens}


def encoder_options(model: ImageToTextModel | ImageModel, dropout: ImageDropout) -> dict[str, Any]:
    """Arguments of the encoder that a config describes."""
    options: dict[str, Any] = {"layers": model.depth, "dropout": dropout.encoder}
    if model.encoder == "vit":
        options |= {
            "patch": model.stride,
            "heads": model.heads,
            "inner": model.feedforward_size,
            "activation": model.activation,
        }
        options |= {"self_attention": model.self_attention, "norm": model.norm, "positions": model.positions}
        return options | {"drop_attention": dropout.attention}
    if model.encoder == "densenet":
        if model.stride not in (8, 16):
            raise ValueError(f"a densenet encoder needs model.stride to be 8 or 16, got {model.stride}")
        return options | {"attention": model.visual_attention, "norm": model.map_norm, "fine": model.stride == 8}
    halvings = model.stride.bit_length() - 1
    if model.stride != 2**halvings or halvings < 1:
        raise ValueError(
            f"a resnet encoder halves its map from stage to stage: model.stride needs to be a power of 2 from 2 on, got "
            f"{model.stride}"
        )
    stages = (model.depth or 2,) * halvings
    return options | {"attention": model.visual_attention, "norm": model.map_norm, "stages": stages, "layers": None}
