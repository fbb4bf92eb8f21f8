"""CTranslate2: a Transformer as a model of that library, weight by weight."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.alignment.heads import Head
from regard.attention.multihead import MultiHead
from regard.data.special_tokens import BOS, EOS, NAMES, UNK
from regard.data.text.tokenizers import Tokenizer
from regard.errors import RefusedError
from regard.inference.sequence_predictor import SequencePredictor
from regard.interop.compat import find_misfit, get_halves, refuse_unfinite
from regard.interop.require import needed
from regard.models.decoders.transformer import Transformer as Decoder
from regard.models.encoders.transformer import Transformer as Encoder
from regard.models.layers.embedding import Embedding
from regard.models.layers.residual import Residual

PRECISIONS = ("float32", "int8")
ROOM = 1024
"""The positions that sinusoids, which have no last one, are written out for, unless the model's limits are above."""
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH", "gelu_tanh": "GELUTanh"}


def files(trained: SequencePredictor, precision: str = "float32") -> dict[str, bytes]:
    """The directory that CTranslate2 opens, file by file: weights, vocabularies, settings.

    Its specification has a place for each of our matrices, so nothing is computed but the sinusoids, which it takes as a
    table. With int8 the matrices are rounded as the library does it, a scale for each row. It rounds them in place, so it is
    given copies.
    """
    if precision not in PRECISIONS:
        raise RefusedError(f"ctranslate2 has the precisions {', '.join(PRECISIONS)}, got {precision!r}; name one of them")
    trained.text_codec("an export to ctranslate2")
    if fault := find_misfit(trained.model):
        raise RefusedError(
            f"ctranslate2 cannot express this model: it {fault}. `regard export --to onnx` takes one network of any kind, "
            "and `regard predict` without --engine runs all that there is"
        )
    refuse_unfinite(trained.model, "ctranslate2")
    needed("ctranslate2", "ct2")
    spec = specification(trained)
    spec.validate()
    spec.optimize(quantization=precision)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def specification(trained: SequencePredictor) -> Any:
    """The model in the library's own words."""
    from ctranslate2.specs import TransformerSpec, common_spec  # type: ignore[import-untyped]

    encoder, decoder = get_halves(trained.model)
    layer, heads = decoder.layers[0], decoder.layers[0].self.heads
    aligned, chosen = place(trained.head, decoder)
    spec = TransformerSpec.from_config(
        (len(encoder.names), len(decoder.names)),
        heads,
        pre_norm=layer.around_self.first,
        activation=getattr(common_spec.Activation, ACTIVATIONS[trained.config.model.activation]),
        alignment_layer=aligned,
        alignment_heads=heads if chosen is None else 1,
        layernorm_embedding=isinstance(encoder.embedding.norm, nn.LayerNorm),
    )
    encode(spec.encoder, encoder, max(ROOM, trained.config.data.max_source_length))
    decode(spec.decoder, decoder, room(trained), (aligned, chosen))
    spec.register_source_vocabulary(spellings(trained.codec.source))
    spec.register_target_vocabulary(spellings(trained.codec.target))
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = NAMES[UNK], NAMES[BOS], NAMES[EOS]
    spec.config.decoder_start_token = NAMES[BOS]
    spec.config.layer_norm_epsilon = layer.around_self.norm.eps
    return spec


def room(trained: SequencePredictor) -> int:
    """Number of positions in the exported tables of the decoder."""
    data, search = trained.config.data, trained.config.search
    positions = get_halves(trained.model)[1].embedding.positions
    return int(getattr(positions, "limit", max(ROOM, data.max_target_length, search.max_length + 1)))


def place(head: Head, decoder: Decoder) -> tuple[int, int | None]:
    """The layer and the head that alignments are read from; no head is the mean of all."""
    name = head.attention_name([f"decoder.{layer}.cross" for layer in decoder.names])
    return int(name.split(".")[1]), head.head


def encode(spec: Any, encoder: Encoder, most: int) -> None:
    """Write the encoder."""
    _embed(spec, spec.embeddings[0], encoder.embedding, most)
    for name, layer in zip(encoder.names, spec.layer, strict=True):
        ours: Any = encoder.get_submodule(name)
        _look(layer.self_attention, ours.self, ours.around_self, fused=3)
        _think(layer.ffn, ours)
    _finish(spec, encoder.norm)


def decode(spec: Any, decoder: Decoder, most: int, aligned: tuple[int, int | None]) -> None:
    """Write the decoder. The library reads alignments from a layer's first heads, so a chosen one changes places with it."""
    _embed(spec, spec.embeddings, decoder.embedding, most)
    for number, (ours, layer) in enumerate(zip(decoder.layers, spec.layer, strict=True)):
        first = aligned[1] if number == aligned[0] else None
        _look(layer.self_attention, ours.self, ours.around_self, fused=3)
        _look(layer.attention, ours.cross, ours.around_cross, fused=2, first=first)
        _think(layer.ffn, ours)
    _finish(spec, decoder.norm)
    output: Any = decoder.output
    spec.projection.weight = output.matrix(decoder.embedding.table.weight).detach().clone()
    spec.projection.bias = output.bias.detach().clone()


def spellings(tokenizer: Tokenizer) -> list[str]:
    """A different text for each number: its spelling, with ▁ for a space, or its number where that is taken or no text."""
    texts = dict.fromkeys(NAMES)
    for number, spelling in enumerate(tokenizer.table[len(NAMES) :], len(NAMES)):
        text = spelling.decode("utf-8", "replace").replace(" ", "▁")
        usable = text and "\ufffd" not in text and text.isprintable() and text not in texts
        texts[text if usable else f"<number {number}>"] = None
    return list(texts)


def _embed(half: Any, spec: Any, embedding: Embedding, most: int) -> None:
    spec.weight = embedding.table.weight.detach().clone()
    half.scale_embeddings = embedding.scale != 1.0
    half.position_encodings.encodings = table(embedding, most)
    if isinstance(embedding.norm, nn.LayerNorm):
        _norm(half.layernorm_embedding, embedding.norm)


def table(embedding: Embedding, most: int) -> Tensor:
    """The vectors of all positions that a model has, or of the first `most` where there is no last."""
    positions: Any = embedding.positions
    vectors: Tensor = positions.at(torch.arange(getattr(positions, "limit", most), device=embedding.table.weight.device))
    return vectors.detach().clone()


def _look(spec: Any, attention: Any, around: Residual, fused: int, first: int | None = None) -> None:
    """Heads. The library keeps queries, keys and values of self-attention in one matrix, keys and values of the other."""
    query, key, value = (_swapped(linear, attention, first) for linear in (attention.query, attention.key, attention.value))
    joined = [[query, key, value]] if fused == 3 else [[query], [key, value]]
    for linear, parts in zip(spec.linear, joined, strict=False):
        linear.weight = torch.cat([weight for weight, _ in parts])
        linear.bias = torch.cat([bias for _, bias in parts])
    last = spec.linear[-1]
    last.weight = attention.output.weight.detach()[:, _order(attention, first)]
    last.bias = attention.output.bias.detach().clone()
    _norm(spec.layer_norm, around.norm)


def _swapped(linear: nn.Linear, attention: MultiHead, first: int | None) -> tuple[Tensor, Tensor]:
    order = _order(attention, first)
    return linear.weight.detach()[order], linear.bias.detach()[order]


def _order(attention: MultiHead, first: int | None) -> Tensor:
    """The rows of a projection with the heads 0 and `first` in each other's place."""
    heads: Sequence[int] = range(attention.heads)
    if first is not None:
        heads = [{0: first, first: 0}.get(head, head) for head in heads]
    rows = torch.arange(attention.heads * attention.head).view(attention.heads, -1)
    return rows[list(heads)].flatten()


def _think(spec: Any, layer: Any) -> None:
    for linear, ours in ((spec.linear_0, layer.feedforward[0]), (spec.linear_1, layer.feedforward[2])):
        linear.weight, linear.bias = ours.weight.detach().clone(), ours.bias.detach().clone()
    _norm(spec.layer_norm, layer.around_feedforward.norm)


def _finish(spec: Any, norm: nn.Module) -> None:
    if isinstance(norm, nn.LayerNorm):
        _norm(spec.layer_norm, norm)


def _norm(spec: Any, norm: Any) -> None:
    spec.gamma, spec.beta = norm.weight.detach().clone(), norm.bias.detach().clone()
