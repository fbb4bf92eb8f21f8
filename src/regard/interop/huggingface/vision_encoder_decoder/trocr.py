"""TrOCR's decoder: BART's, with norms behind its sublayers."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.interop.huggingface import sinusoids
from regard.interop.huggingface.vision_encoder_decoder.parameters import Piece, linear, norm, taken

if TYPE_CHECKING:
    from regard.interop.huggingface.vision_encoder_decoder.settings import PictureSettings

ROOT = "decoder.model.decoder"
TABLE, OUTPUT = f"{ROOT}.embed_tokens.weight", "decoder.output_projection.weight"
POSITIONS = f"{ROOT}.embed_positions.weight"
FIRST = 2
"""The row of the table that is the first position."""
WORDS = {"size": "d_model", "layers": "decoder_layers", "heads": "decoder_attention_heads"}
WORDS |= {"feedforward": "decoder_ffn_dim", "positions": "max_position_embeddings"}
"""Its fields for our sizes."""
NEEDED: dict[str, Any] = {}
FIELDS = frozenset(WORDS.values()) | {"use_learned_position_embeddings", "layernorm_embedding", "init_std", "dropout"}
FIELDS |= {"scale_embedding", "attention_dropout", "activation_dropout", "decoder_layerdrop", "classifier_dropout"}
HEADS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def unused(told: "PictureSettings") -> list[str]:
    """What some files hold beside the parameters."""
    return [f"{ROOT}.embed_positions._float_tensor", f"{ROOT}.version"]


def pieces(told: "PictureSettings") -> Iterator[Piece]:
    """Every parameter but embeddings, positions and the output."""
    for number in range(told.layers):
        yield from _layer(told, f"{ROOT}.layers.{number}", f"decoder.{number}")
    if told.decoder.get("layernorm_embedding", True):
        yield from norm(f"{ROOT}.layernorm_embedding", "decoder.embedding.norm", told.size)


def _layer(told: "PictureSettings", theirs: str, ours: str) -> Iterator[Piece]:
    size = told.size
    for look, name, source in (("self", "self_attn", size), ("cross", "encoder_attn", told.map)):
        for part, short in HEADS.items():
            before = source if part in ("key", "value") else size
            yield from linear(f"{theirs}.{name}.{short}", f"{ours}.{look}.{part}", before, size)
        yield from norm(f"{theirs}.{name}_layer_norm", f"{ours}.around_{look}.norm", size)
    yield from linear(f"{theirs}.fc1", f"{ours}.feedforward.0", size, told.feedforward)
    yield from linear(f"{theirs}.fc2", f"{ours}.feedforward.2", told.feedforward, size)
    yield from norm(f"{theirs}.final_layer_norm", f"{ours}.around_feedforward.norm", size)


def learned(told: "PictureSettings") -> bool:
    """Whether positions are a table that is stored."""
    return bool(told.decoder.get("use_learned_position_embeddings", True))


def shapes(told: "PictureSettings") -> dict[str, tuple[int, ...]]:
    """What the file of a model has to hold of it."""
    found = {TABLE: (told.vocab_size, told.size)}
    if learned(told):
        found[POSITIONS] = (told.positions + FIRST, told.size)
    return found | {piece.theirs: piece.shape for piece in pieces(told)}


def weights(told: "PictureSettings", theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Its parameters by our names, but for embeddings and the output."""
    waved = sinusoids.spaced(told.positions, told.size, told.pad_token_id + 1)
    places = theirs[POSITIONS][FIRST:] if learned(told) else waved
    return {"decoder.embedding.positions.table.weight": places} | taken(pieces(told), theirs)


def described(told: "PictureSettings") -> dict[str, Any]:
    """What sets its network apart, in the words of our config."""
    normed, scaled = told.decoder.get("layernorm_embedding", True), told.decoder.get("scale_embedding", False)
    return {"norm": "post", "embedding_norm": bool(normed), "scale_embedding": bool(scaled)}
