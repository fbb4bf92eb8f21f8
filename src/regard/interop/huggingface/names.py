"""Names: which of their parameters each of ours is, and along which axis it holds the model's features."""

from collections.abc import Iterator
from typing import NamedTuple

from regard.interop.huggingface.families import Family

HEADS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
SHARED = "model.shared.weight"
BIAS = "final_logits_bias"
COPIES = frozenset({"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"})
"""Other names of the shared table, which some files hold too."""


class Pair(NamedTuple):
    """A parameter in both worlds."""

    ours: str
    theirs: str
    axis: int | None
    """The axis of the features; None where it has none."""


def layers(encoder: int, decoder: int, family: Family) -> Iterator[Pair]:
    """Every parameter but embeddings, positions and the bias of the output."""
    for half, count in (("encoder", encoder), ("decoder", decoder)):
        for number in range(count):
            yield from _layer(f"{half}.{number}", f"model.{half}.layers.{number}", cross=half == "decoder")
        if family.embedding_norm:
            yield from _norm(f"{half}.embedding.norm", f"model.{half}.layernorm_embedding")
        if family.norm == "pre":
            yield from _norm(f"{half}.norm", f"model.{half}.layer_norm")


def _layer(ours: str, theirs: str, cross: bool) -> Iterator[Pair]:
    looks = {"self": "self_attn", "cross": "encoder_attn"} if cross else {"self": "self_attn"}
    for look, name in looks.items():
        for part, short in HEADS.items():
            last = part == "output"
            yield Pair(f"{ours}.{look}.{part}.weight", f"{theirs}.{name}.{short}.weight", 0 if last else 1)
            yield Pair(f"{ours}.{look}.{part}.bias", f"{theirs}.{name}.{short}.bias", 0 if last else None)
        yield from _norm(f"{ours}.around_{look}.norm", f"{theirs}.{name}_layer_norm")
    for place, name in ((0, "fc1"), (2, "fc2")):
        yield Pair(f"{ours}.feedforward.{place}.weight", f"{theirs}.{name}.weight", 0 if place else 1)
        yield Pair(f"{ours}.feedforward.{place}.bias", f"{theirs}.{name}.bias", 0 if place else None)
    yield from _norm(f"{ours}.around_feedforward.norm", f"{theirs}.final_layer_norm")


def _norm(ours: str, theirs: str) -> Iterator[Pair]:
    for part in ("weight", "bias"):
        yield Pair(f"{ours}.{part}", f"{theirs}.{part}", 0)
