"""Weights: our parameters under the names of a family, in its order of features and ids."""

from typing import Any

import torch
from torch import Tensor

from regard.attention.positions.sinusoidal import Sinusoidal
from regard.data.special_tokens import PAD
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.errors import RefusedError
from regard.inference.sequence_predictor import SequencePredictor
from regard.interop.compat import find_composition, find_misfit, get_halves
from regard.interop.huggingface import names, sinusoids, write_t5
from regard.interop.huggingface.families import FAMILIES, Family, family
from regard.interop.huggingface.special import owners
from regard.interop.huggingface.vocab import copies
from regard.models.decoders.transformer import Transformer as Decoder
from regard.models.encoders.transformer import Transformer as Encoder

ROOM = 1024
"""The positions that sinusoids, which have no last one, are written out for, unless the model's limits are above."""


def fitting(trained: SequencePredictor) -> str:
    """The family that computes what a model computes; refused, with the reason, where there is none."""
    model = trained.config.model
    relative = model.norm == "rms"
    fault = find_composition(trained.model) or (
        write_t5.find_misfit(trained) if relative else find_misfit(trained.model) or _misfit(trained)
    )
    if fault:
        raise refused(f"{fault}. `regard export --to onnx` takes one network of any kind")
    if relative:
        return write_t5.KIND
    return "m2m_100" if _many_languages(trained) else family(model.norm, model.embedding_norm)


def refused(fault: str) -> RefusedError:
    """Error for a model that has a fault."""
    return RefusedError(f"no architecture of transformers computes what this model computes: it {fault}")


def _many_languages(trained: SequencePredictor) -> bool:
    """Return True for an M2M100 from transformers: its positions are still those, and its output has no bias."""
    model, tokens, (_, decoder) = trained.config.model, trained.codec.target, get_halves(trained.model)
    if not isinstance(tokens, Pretrained) or model.norm != "pre" or model.embedding_norm or model.positions != "learned":
        return False
    bias = decoder.output.get_parameter("bias").detach().clone()
    bias[copies(tokens)] = 0.0
    first = sinusoids.spaced(room(trained), decoder.size, tokens.ids[PAD] + 1)
    return not bias.any() and all(torch.equal(table(trained, half), first) for half in get_halves(trained.model))


def _misfit(trained: SequencePredictor) -> str | None:
    encoder, decoder = get_halves(trained.model)
    model, output = trained.config.model, decoder.output
    if encoder.embedding.table.weight is not decoder.embedding.table.weight or getattr(output, "weight", None) is not None:
        return (
            "has several tables of embeddings, and one for all is needed: train with data.joint_vocab=true and "
            "model.tie_embeddings=true"
        )
    waves_ = all(isinstance(half.embedding.positions, Sinusoidal) for half in (encoder, decoder))
    if FAMILIES[family(model.norm, model.embedding_norm)].positions == "waves":
        if not waves_:
            return (
                "has learned positions and norms behind its layers, and Marian, which has these norms, has sinusoidal ones: "
                "train with model.positions=sinusoidal, or with model.embedding_norm=true, which is BART"
            )
        if decoder.size % 2:
            return f"has an odd size ({decoder.size}), and an even one is needed"
    rows = [getattr(half.embedding.positions, "limit", 0) for half in (encoder, decoder)]
    if rows[0] != rows[1]:
        return f"has {rows[0]} positions in the encoder and {rows[1]} in the decoder, and one number for both is needed"
    return None


def weights(trained: SequencePredictor, kind: str) -> dict[str, Tensor]:
    """The state of the family's model by its names, tied tensors once."""
    ours = trained.model.state_dict()
    rows = torch.tensor(owners(trained.codec.target, ours["decoder.embedding.table.weight"]))
    tensors = write_t5.weights(trained, rows) if kind == write_t5.KIND else _plain(trained, FAMILIES[kind], rows)
    return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}


def _plain(trained: SequencePredictor, family: Family, rows: Tensor) -> dict[str, Tensor]:
    """State of a family with the names of BART's; `rows` are our numbers in the order of its ids."""
    ours, (encoder, decoder) = trained.model.state_dict(), get_halves(trained.model)
    order = sinusoids.order(decoder.size) if family.positions == "waves" else torch.arange(decoder.size)
    tensors = {names.SHARED: ours["decoder.embedding.table.weight"][rows][:, order]}
    if family.bias:
        tensors[names.BIAS] = ours["decoder.output.bias"][rows][None]
    for pair in names.layers(len(encoder.names), len(decoder.names), family):
        value = ours[pair.ours]
        tensors[pair.theirs] = value if pair.axis is None else value.index_select(pair.axis, order)
    if family.positions == "table":
        for half, name in ((encoder, "encoder"), (decoder, "decoder")):
            before = torch.zeros(family.first, decoder.size)
            tensors[f"model.{name}.embed_positions.weight"] = torch.cat((before, table(trained, half)))
    return tensors


def table(trained: SequencePredictor, half: Encoder | Decoder) -> Tensor:
    """The vector of each position."""
    positions: Any = half.embedding.positions
    vectors: Tensor = positions.at(torch.arange(room(trained))).detach()
    return vectors


def room(trained: SequencePredictor) -> int:
    """Number of positions."""
    positions: Any = get_halves(trained.model)[1].embedding.positions
    data, search = trained.config.data, trained.config.search
    return int(getattr(positions, "limit", max(ROOM, data.max_source_length, data.max_target_length, search.max_length + 1)))
