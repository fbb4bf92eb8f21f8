"""ViT and DeiT: patches, one or two vectors for the whole picture, a table of positions, and layers with norms first."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.config import VitPart
from regard.interop.huggingface.settings import ACTIVATIONS
from regard.interop.huggingface.vision_encoder_decoder.parameters import Piece, convert_to_ours, linear, norm

if TYPE_CHECKING:
    from regard.interop.huggingface.vision_encoder_decoder.settings import PictureSettings

TOKENS = {"vit": ("cls_token",), "deit": ("cls_token", "distillation_token")}
"""Tokens of each type for the whole picture."""
POSITIONS = "encoder.embeddings.position_embeddings"
UNUSED = ("encoder.pooler.dense.weight", "encoder.pooler.dense.bias", "encoder.embeddings.mask_token")


def pieces(settings: "PictureSettings") -> Iterator[Piece]:
    """Every parameter but the vectors for the whole picture and the positions."""
    size, inner = settings.encoder["hidden_size"], settings.encoder["intermediate_size"]
    cut, ours = "encoder.embeddings.patch_embeddings.projection", "encoder.cut.convolution"
    yield Piece(f"{cut}.weight", (size, settings.channels, settings.patch, settings.patch), (f"{ours}.weight",))
    yield Piece(f"{cut}.bias", (size,), (f"{ours}.bias",))
    for number in range(settings.encoder["num_hidden_layers"]):
        yield from _layer(f"encoder.encoder.layer.{number}", f"encoder.{number}", size, inner)
    yield from norm("encoder.layernorm", "encoder.norm", size)
    if settings.fits:
        yield from linear("enc_to_dec_proj", "encoder.fit", size, settings.size)


def _layer(theirs: str, ours: str, size: int, inner: int) -> Iterator[Piece]:
    for part in ("query", "key", "value"):
        yield from linear(f"{theirs}.attention.attention.{part}", f"{ours}.self.{part}", size, size)
    yield from linear(f"{theirs}.attention.output.dense", f"{ours}.self.output", size, size)
    yield from linear(f"{theirs}.intermediate.dense", f"{ours}.feedforward.0", size, inner)
    yield from linear(f"{theirs}.output.dense", f"{ours}.feedforward.2", inner, size)
    yield from norm(f"{theirs}.layernorm_before", f"{ours}.around_self.norm", size)
    yield from norm(f"{theirs}.layernorm_after", f"{ours}.around_feedforward.norm", size)


def shapes(settings: "PictureSettings") -> dict[str, tuple[int, ...]]:
    """Names and shapes of its tensors in the file of a model."""
    size, tokens, (rows, columns) = settings.encoder["hidden_size"], TOKENS[settings.encoder["model_type"]], settings.places
    table: dict[str, tuple[int, ...]] = {f"encoder.embeddings.{name}": (1, 1, size) for name in tokens}
    table[POSITIONS] = (1, len(tokens) + rows * columns, size)
    return table | {piece.theirs: piece.shape for piece in pieces(settings)}


def weights(settings: "PictureSettings", theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Its parameters by our names. What stands for the whole has its position in it."""
    tokens, positions = TOKENS[settings.encoder["model_type"]], theirs[POSITIONS][0]
    first = torch.cat([theirs[f"encoder.embeddings.{name}"][0] for name in tokens])
    ours = {"encoder.query": first + positions[: len(tokens)]}
    ours["encoder.positions.table"] = torch.unflatten(positions[len(tokens) :], 0, settings.places)
    return ours | convert_to_ours(pieces(settings), theirs)


def describe_config(settings: "PictureSettings") -> dict[str, Any]:
    """Settings of our config for its network."""
    table = settings.encoder
    patches = VitPart(
        hidden_size=table["hidden_size"],
        heads=table["num_attention_heads"],
        feedforward_size=table["intermediate_size"],
        activation=ACTIVATIONS[table["hidden_act"]],  # type: ignore[arg-type]
        norm="pre",
        norm_eps=table["layer_norm_eps"],
        learned_positions=True,
        cls_tokens=len(TOKENS[table["model_type"]]),
    )
    return {"encoder": "vit", "stride": settings.patch, "depth": table["num_hidden_layers"], "vit": patches}
