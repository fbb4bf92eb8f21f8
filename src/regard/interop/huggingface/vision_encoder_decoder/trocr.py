"""TrOCR's decoder: BART's, with norms behind its sublayers."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.interop.huggingface import sinusoids
from regard.interop.huggingface.vision_encoder_decoder.parameters import Piece, convert_to_ours, linear, norm

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


def unused(settings: "PictureSettings") -> list[str]:
    """Names in some files beside the parameters."""
    return [f"{ROOT}.embed_positions._float_tensor", f"{ROOT}.version"]


def pieces(settings: "PictureSettings") -> Iterator[Piece]:
    """Every parameter but embeddings, positions and the output."""
    for number in range(settings.layers):
        yield from _layer(settings, f"{ROOT}.layers.{number}", f"decoder.{number}")
    if settings.decoder.get("layernorm_embedding", True):
        yield from norm(f"{ROOT}.layernorm_embedding", "decoder.embedding.norm", settings.size)


def _layer(settings: "PictureSettings", theirs: str, ours: str) -> Iterator[Piece]:
    size = settings.size
    for attention, name, source in (("self", "self_attn", size), ("cross", "encoder_attn", settings.map)):
        for part, short in HEADS.items():
            before = source if part in ("key", "value") else size
            yield from linear(f"{theirs}.{name}.{short}", f"{ours}.{attention}.{part}", before, size)
        yield from norm(f"{theirs}.{name}_layer_norm", f"{ours}.around_{attention}.norm", size)
    yield from linear(f"{theirs}.fc1", f"{ours}.feedforward.0", size, settings.feedforward)
    yield from linear(f"{theirs}.fc2", f"{ours}.feedforward.2", settings.feedforward, size)
    yield from norm(f"{theirs}.final_layer_norm", f"{ours}.around_feedforward.norm", size)


def learned(settings: "PictureSettings") -> bool:
    """True for learned positions."""
    return bool(settings.decoder.get("use_learned_position_embeddings", True))


def shapes(settings: "PictureSettings") -> dict[str, tuple[int, ...]]:
    """Shapes of its parameters in a file."""
    table = {TABLE: (settings.vocab_size, settings.size)}
    if learned(settings):
        table[POSITIONS] = (settings.positions + FIRST, settings.size)
    return table | {piece.theirs: piece.shape for piece in pieces(settings)}


def weights(settings: "PictureSettings", theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Its parameters by our names, but for embeddings and the output."""
    waved = sinusoids.spaced(settings.positions, settings.size, settings.pad_token_id + 1)
    places = theirs[POSITIONS][FIRST:] if learned(settings) else waved
    return {"decoder.embedding.positions.table.weight": places} | convert_to_ours(pieces(settings), theirs)


def describe_config(settings: "PictureSettings") -> dict[str, Any]:
    """Settings of its architecture in our config."""
    normed, scaled = settings.decoder.get("layernorm_embedding", True), settings.decoder.get("scale_embedding", False)
    return {"norm": "post", "embedding_norm": bool(normed), "scale_embedding": bool(scaled)}
