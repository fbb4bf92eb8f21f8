"""GPT-2 with an attention to a source: norms first, a table of positions, matrices whose rows are our columns."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.interop.huggingface.vision_encoder_decoder.parameters import Piece, linear, norm, taken

if TYPE_CHECKING:
    from regard.interop.huggingface.vision_encoder_decoder.settings import PictureSettings

TABLE, OUTPUT = "decoder.transformer.wte.weight", "decoder.lm_head.weight"
POSITIONS = "decoder.transformer.wpe.weight"
WORDS = {"size": "n_embd", "layers": "n_layer", "heads": "n_head", "feedforward": "n_inner", "positions": "n_positions"}
"""Its fields for our sizes."""
NEEDED = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "layer_norm_epsilon": 1e-5}
"""What it has to say, if it says so."""
FIELDS = frozenset(WORDS.values()) | frozenset(NEEDED) | {"reorder_and_upcast_attn", "n_ctx", "initializer_range"}
FIELDS |= {"resid_pdrop", "embd_pdrop", "attn_pdrop", "gradient_checkpointing", "summary_type", "summary_use_proj"}
FIELDS |= {"summary_activation", "summary_proj_to_labels", "summary_first_dropout"}


def unused(told: "PictureSettings") -> list[str]:
    """Masks that old files hold beside the parameters."""
    blocks = (f"decoder.transformer.h.{number}" for number in range(told.layers))
    return [f"{block}.{look}.{name}" for block in blocks for look in ("attn", "crossattention") for name in MASKS]


MASKS = ("bias", "masked_bias")


def pieces(told: "PictureSettings") -> Iterator[Piece]:
    """Every parameter but embeddings, positions and the output."""
    for number in range(told.layers):
        yield from _layer(f"decoder.transformer.h.{number}", f"decoder.{number}", told.size, told.feedforward)
    yield from norm("decoder.transformer.ln_f", "decoder.norm", told.size)


def _layer(theirs: str, ours: str, size: int, inner: int) -> Iterator[Piece]:
    looks = tuple(f"{ours}.self.{part}" for part in ("query", "key", "value"))
    yield from linear(f"{theirs}.attn.c_attn", looks, size, 3 * size, turned=True)
    yield from linear(f"{theirs}.attn.c_proj", f"{ours}.self.output", size, size, turned=True)
    yield from linear(f"{theirs}.crossattention.q_attn", f"{ours}.cross.query", size, size, turned=True)
    sides = (f"{ours}.cross.key", f"{ours}.cross.value")
    yield from linear(f"{theirs}.crossattention.c_attn", sides, size, 2 * size, turned=True)
    yield from linear(f"{theirs}.crossattention.c_proj", f"{ours}.cross.output", size, size, turned=True)
    yield from linear(f"{theirs}.mlp.c_fc", f"{ours}.feedforward.0", size, inner, turned=True)
    yield from linear(f"{theirs}.mlp.c_proj", f"{ours}.feedforward.2", inner, size, turned=True)
    for name, part in (("ln_1", "self"), ("ln_cross_attn", "cross"), ("ln_2", "feedforward")):
        yield from norm(f"{theirs}.{name}", f"{ours}.around_{part}.norm", size)


def shapes(told: "PictureSettings") -> dict[str, tuple[int, ...]]:
    """What the file of a model has to hold of it."""
    found = {TABLE: (told.vocab_size, told.size), POSITIONS: (told.positions, told.size)}
    return found | {piece.theirs: piece.shape for piece in pieces(told)}


def weights(told: "PictureSettings", theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Its parameters by our names, but for embeddings and the output."""
    return {"decoder.embedding.positions.table.weight": theirs[POSITIONS]} | taken(pieces(told), theirs)


def described(told: "PictureSettings") -> dict[str, Any]:
    """What sets its network apart, in the words of our config."""
    return {"norm": "pre", "embedding_norm": False, "scale_embedding": False}
