"""T5: a Transformer with T5's bias, norms and products as that family."""

from typing import Any

import torch
from torch import Tensor

from regard.data.text.tokenizers.pretrained import Pretrained
from regard.inference.sequence_predictor import SequencePredictor
from regard.interop.compat import get_halves
from regard.interop.huggingface import t5_import
from regard.interop.huggingface.families import FAMILIES, RELATIVE
from regard.interop.huggingface.settings import ACTIVATIONS, GATED, Settings
from regard.interop.huggingface.vocab import copies

KIND = "t5"


def find_misfit(trained: SequencePredictor) -> str | None:
    """None where a T5 computes what the model does, else what it would need to be."""
    model = trained.config.model
    needed: dict[str, Any] = {"encoder": "transformer", "decoder": "transformer", "bias": False, "self_attention": "t5"}
    needed |= {"shared_bias": True, "positions": "none", "scale_embedding": False, "embedding_norm": False}
    for name, value in needed.items():
        if getattr(model, name) != value:
            said = f"has model.norm=rms, which is T5's, and model.{name}={getattr(model, name)}"
            return f"{said}: train with model.{name}={str(value).lower()}"
    if {*model.attention.name.split("+")} != {"transformer", "dot"}:
        return f"looks at its source by {model.attention.name}, and T5 by transformer+dot"
    if model.attention.parameters:
        return f"sets {', '.join(model.attention.parameters)} of its attention, and T5 has none of these"
    width, read = model.self_attention_size or model.hidden_size, model.attention.size or model.hidden_size
    if (model.heads, width) != (model.attention.heads, read):
        own, other = f"{model.heads} heads of {width} together", f"{model.attention.heads} of {read} for its source"
        return f"has {own} and {other}, and T5 has as many and as wide ones: train with equal numbers"
    if model.embedding_size not in (None, model.hidden_size) or model.output.name != "projection":
        return "has embeddings of another size than its layers, or another output than a projection, and T5 has not"
    if (model.activation, model.gated) not in _activations():
        return f"bends by {model.activation}, gated, and T5 has gates for {', '.join(GATED.values())}"
    return _tables(trained)


def _tables(trained: SequencePredictor) -> str | None:
    """Reason why the tables cannot be those of a T5."""
    encoder, decoder = get_halves(trained.model)
    if not torch.equal(encoder.embedding.table.weight, decoder.embedding.table.weight):
        return (
            "has several tables of embeddings, and one for all is needed: train with data.joint_vocab=true and "
            "model.tie_embeddings=true"
        )
    tokens, bias = trained.codec.target, decoder.output.get_parameter("bias").detach().clone()
    if isinstance(tokens, Pretrained):
        bias[copies(tokens)] = 0.0
    return "adds a bias to its output, and T5 has none" if bias.any() else None


def _activations() -> dict[tuple[str, bool], str]:
    """Their name for each of ours."""
    plain = {(ours, False): theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    return plain | {(ours, True): theirs for theirs, ours in GATED.items()}


def config(trained: SequencePredictor, vocabulary: int, room: int) -> dict[str, Any]:
    """config.json, but for what all families say alike."""
    model = trained.config.model
    table: dict[str, Any] = {
        "d_kv": (model.self_attention_size or model.hidden_size) // model.heads,
        "n_positions": room,
        **RELATIVE,
    }
    table |= {"num_layers": model.layers, "num_decoder_layers": model.decoder_layers or model.layers}
    table |= {"num_heads": model.heads, "d_ff": model.feedforward_size or 4 * model.hidden_size, "vocab_size": vocabulary}
    table |= {
        "feed_forward_proj": _activations()[model.activation, model.gated],
        "tie_word_embeddings": model.tie_embeddings,
    }
    return table | {"d_model": model.hidden_size, "dropout_rate": trained.config.dropout.residual}


def weights(trained: SequencePredictor, rows: Tensor) -> dict[str, Tensor]:
    """The state of a T5 by its names; `rows` are our numbers in the order of its ids."""
    ours, model = trained.model.state_dict(), trained.config.model
    family_settings = Settings(KIND, {**FAMILIES[KIND].usual, **config(trained, len(rows), 1)})
    tensors = {t5_import.SHARED: ours["decoder.embedding.table.weight"][rows]}
    for parameter in t5_import.named(family_settings):
        tensors[parameter.theirs] = ours[parameter.ours].mT if parameter.ours.endswith(".b") else ours[parameter.ours]
    if model.tie_embeddings:
        tensors["decoder.final_layer_norm.weight"] = tensors["decoder.final_layer_norm.weight"] * model.hidden_size**0.5
    else:
        tensors[t5_import.OUTPUT] = ours["decoder.output.weight"][rows]
    return tensors
