"""T5: its words for what BART calls otherwise, and its parameters by our names.

It has the root mean square for a norm, no biases, unscaled products, one bias of distances for all layers of a half, and
logits that are scaled by d^-½ where its output is the table of embeddings. This last factor goes into the decoder's norm.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from regard.config import AttentionPart
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.interop.huggingface.vocab import NEVER, copies

if TYPE_CHECKING:
    from regard.interop.huggingface.settings import Settings

SHARED, OUTPUT = "shared.weight", "lm_head.weight"
COPIES = frozenset({"encoder.embed_tokens.weight", "decoder.embed_tokens.weight"})
UNUSED = frozenset({"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"})
"""Tensors of old files that no version reads."""
HEADS = {"query": "q", "key": "k", "value": "v", "output": "o"}


class Named(NamedTuple):
    """A parameter in both worlds."""

    ours: str
    theirs: str
    shape: tuple[int, ...]
    """Shape of theirs."""


def named(settings: "Settings") -> Iterator[Named]:
    """Every parameter but embeddings and the output."""
    size, heads = settings.d_model, settings.encoder_attention_heads
    for half, count in (("encoder", settings.encoder_layers), ("decoder", settings.decoder_layers)):
        for number in range(count):
            yield from _layer(settings, f"{half}.{number}", f"{half}.block.{number}.layer", cross=half == "decoder")
        buckets = f"{half}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        yield Named(f"{half}.0.self.score.b", buckets, (settings.relative_attention_num_buckets, heads))
        yield Named(f"{half}.norm.weight", f"{half}.final_layer_norm.weight", (size,))


def _layer(settings: "Settings", ours: str, theirs: str, cross: bool) -> Iterator[Named]:
    size, wide = settings.d_model, settings.encoder_attention_heads * settings.d_kv
    looks = {"self": "SelfAttention", "cross": "EncDecAttention"} if cross else {"self": "SelfAttention"}
    for place, (look, name) in enumerate(looks.items()):
        for part, short in HEADS.items():
            shape = (size, wide) if part == "output" else (wide, size)
            yield Named(f"{ours}.{look}.{part}.weight", f"{theirs}.{place}.{name}.{short}.weight", shape)
        yield Named(f"{ours}.around_{look}.norm.weight", f"{theirs}.{place}.layer_norm.weight", (size,))
    last, inner = len(looks), settings.encoder_ffn_dim
    gated = settings.activation[1]
    names = {"0.W": "wi_0", "0.V": "wi_1", "1": "wo"} if gated else {"0": "wi", "2": "wo"}
    for part, short in names.items():
        shape = (size, inner) if short == "wo" else (inner, size)
        yield Named(f"{ours}.feedforward.{part}.weight", f"{theirs}.{last}.DenseReluDense.{short}.weight", shape)
    yield Named(f"{ours}.around_feedforward.norm.weight", f"{theirs}.{last}.layer_norm.weight", (size,))


def shapes(settings: "Settings") -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors in the file of a model."""
    return {
        SHARED: (settings.vocab_size, settings.d_model),
        **{parameter.theirs: parameter.shape for parameter in named(settings)},
    }


def tied(theirs: Mapping[str, Tensor]) -> bool:
    """Return True if the output is the table of embeddings; files of tied models may hold it twice."""
    return OUTPUT not in set(theirs) or torch.equal(theirs[OUTPUT], theirs[SHARED])


def weights(settings: "Settings", tokens: Pretrained, theirs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their parameters by our names."""
    rows = torch.tensor(tokens.ids)
    tensors = {"encoder.embedding.table.weight": theirs[SHARED][rows]}
    for parameter in named(settings):
        value = theirs[parameter.theirs]
        tensors[parameter.ours] = value.mT if parameter.ours.endswith(".b") else value
    if not tied(theirs):
        tensors["decoder.embedding.table.weight"] = theirs[SHARED][rows]
        tensors["decoder.output.weight"] = theirs[OUTPUT][rows]
    if settings.scaled_output:
        tensors["decoder.norm.weight"] = tensors["decoder.norm.weight"] * settings.d_model**-0.5
    tensors["decoder.output.bias"] = torch.zeros(len(rows)).index_fill(0, torch.tensor(copies(tokens)), NEVER)
    return {name: tensor.float().contiguous() for name, tensor in tensors.items()}


def described(settings: "Settings", tie: bool) -> dict[str, Any]:
    """Settings of our config for its network."""
    wide = settings.encoder_attention_heads * settings.d_kv
    width = None if wide == settings.d_model else wide
    special = {
        "norm": "rms",
        "bias": False,
        "self_attention": "t5",
        "shared_bias": True,
        "positions": "none",
        "tie_embeddings": tie,
    }
    look = AttentionPart("transformer+dot", heads=settings.encoder_attention_heads, size=width)
    return special | {"scale_embedding": False, "self_attention_size": width, "attention": look}
