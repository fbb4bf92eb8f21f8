"""GPT-2 with an attention to a source: norms first, a table of positions, matrices whose rows are our columns."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor

from regard.interop.huggingface.vision_encoder_decoder.parameters import Piece, convert_to_ours, linear, norm

if TYPE_CHECKING:
    from regard.interop.huggingface.vision_encoder_decoder.settings import PictureSettings

TABLE, OUTPUT = "decoder.transformer.wte.weight", "decoder.lm_head.weight"
POSITIONS = "decoder.transformer.wpe.weight"
WORDS = {"size": "n_embd", "layers": "n_layer", "heads": "n_head", "feedforward": "n_inner", "positions": "n_positions"}
"""Its fields for our sizes."""
NEEDED = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "layer_norm_epsilon": 1e-5}
"""Required values of its optional fields."""
FIELDS = frozenset(WORDS.values()) | frozenset(NEEDED) | {"reorder_and_upcast_attn", "n_ctx", "initializer_range"}
FIELDS |= {"resid_pdrop", "embd_pdrop", "attn_pdrop", "gradient_checkpointing", "summary_type", "summary_use_proj"}
FIELDS |= {"summary_activation", "summary_proj_to_labels", "summary_first_dropout"}


def unused(settings: "PictureSettings") -> list[str]:
    """Masks that old files hold beside the parameters."""
    blocks = (f"decoder.transformer.h.{number}" for number in range(settings.layers))
    return [f"{block}.{attention}.{name}" for block in blocks for attention in ("attn", "crossattention") for name in MASKS]


MASKS = ("bias", "masked_bias")


def pieces(settings: "PictureSettings") -> Iterator[Piece]:
    """Every parameter but embeddings, positions and the output."""
    for number in range(settings.layers):
        yield from _layer(f"decoder.transformer.h.{number}", f"decoder.{number}", settings.size, settings.feedforward)
    yield from norm("decoder.transformer.ln_f", "decoder.norm", settings.size)


def _layer(theirs: str, ours: str, size: int, inner: int) -> Iterator[Piece]:
    targets = tuple(f"{ours}.self.{part}" for part in ("query", "key", "value"))
    yield from linear(f"{theirs}.attn.c_attn", targets, size, 3 * size, transposed=True)
    yield from linear(f"{theirs}.attn.c_proj", f"{ours}.self.output", size, size, transposed=True)
    yield from linear(f"{theirs}.crossattention.q_attn", f"{ours}.cross.query", size, size, transposed=True)
    sides = (f"{ours}.cross.key", f"{ours}.cross.value")
    yield from linear(f"{theirs}.crossattention.c_attn", sides, size, 2 * size, transposed=True)
    yield from linear(f"{theirs}.crossattention.c_proj", f"{ours}.cross.output", size, size, transposed=True)
    yield from linear(f"{theirs}.mlp.c_fc", f"{ours}.feedforward.0", size, inner, transposed=True)
    yield from linear(f"{theirs}.mlp.c_proj", f"{ours}.feedforward.2", inner, size, transposed=True)
    for name, part in (("ln_1", "self"), ("ln_cross_attn", "cross"), ("ln_2", "feedforward")):
        yield from norm(f"{theirs}.{name}", f"{ours}.around_{part}.norm", size)


def shapes(settings: "PictureSettings") -> dict[str, tuple[int, ...]]:
    """Shapes of its parameters in a file."""
    table = {TABLE: (settings.vocab_size, settings.size), POSITIONS: (settings.positions, settings.size)}
    return table | {piece.theirs: piece.shape for piece in pieces(settings)}


def weights(settings: "PictureSettings", theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Its parameters by our names, but for embeddings and the output."""
    return {"decoder.embedding.positions.table.weight": theirs[POSITIONS]} | convert_to_ours(pieces(settings), theirs)


def describe_config(settings: "PictureSettings") -> dict[str, Any]:
    """Settings of its architecture in our config."""
    return {"norm": "pre", "embedding_norm": False, "scale_embedding": False}
