"""VisionEncoderDecoder: a captioner of patches and a Transformer's decoder as a ViT or DeiT with a GPT-2 or TrOCR."""

from typing import Any

import torch
from torch import Tensor

from regard.config import ImageToTextModel
from regard.data.image.codec import ImageTextCodec
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.inference.sequence_predictor import SequencePredictor
from regard.interop.compat import find_composition
from regard.interop.huggingface.families import PICTURES
from regard.interop.huggingface.special import owners, special
from regard.interop.huggingface.vision_encoder_decoder import trocr, vit
from regard.interop.huggingface.vision_encoder_decoder.parameters import convert_to_theirs
from regard.interop.huggingface.vision_encoder_decoder.processor import BILINEAR, Standard
from regard.interop.huggingface.vision_encoder_decoder.settings import PictureSettings
from regard.interop.huggingface.vocab import copies
from regard.models.encoders.vit import Patches

ARCHITECTURE = "VisionEncoderDecoderModel"
BENT = {"relu": "relu", "gelu": "gelu", "swish": "swish", "gelu_tanh": "gelu_new"}
PLAIN: dict[str, Any] = {"encoder": "vit", "decoder": "transformer", "positions": "learned", "join": "add"}
PLAIN |= {"self_attention": "scaled_dot", "self_attention_size": None, "gated": False, "bias": True}
"""Settings that every such model has."""
POOLER = ("encoder.pooler.dense.weight", "encoder.pooler.dense.bias")
"""Parameters that transformers makes and no decoder looks at: they are written as zeros."""


def find_misfit(trained: SequencePredictor) -> str | None:
    """None where a VisionEncoderDecoder computes what the model does, else what it would need to be."""
    if fault := find_composition(trained.model):
        return fault
    model = trained.config.model
    for name, value in PLAIN.items():
        if getattr(model, name) != value:
            return f"has model.{name}={getattr(model, name)}, and {value} is needed"
    return _decoder(model) or _patches(trained) or _output(trained)


def _decoder(model: ImageToTextModel) -> str | None:
    look = model.attention
    if (look.name, look.heads, look.size or model.hidden_size) != ("transformer", model.heads, model.hidden_size):
        return f"looks at its picture by {look.name} with {look.heads} heads, and transformer with {model.heads} is needed"
    if look.parameters:
        return f"sets {', '.join(look.parameters)} of its attention, and neither GPT-2 nor TrOCR has these"
    if model.embedding_size not in (None, model.hidden_size) or model.output.name != "projection":
        return "has embeddings of another size than its layers, or another output than a projection, and neither is known"
    if model.norm == "rms":
        return "has model.norm=rms, and a GPT-2 has pre, a TrOCR post"
    if model.norm == "pre" and (model.embedding_norm or model.scale_embedding):
        return "has norms first, as a GPT-2, which needs model.embedding_norm=false and model.scale_embedding=false"
    return None


def _patches(trained: SequencePredictor) -> str | None:
    model, codec, own = trained.config.model, trained.codec, trained.config.model.vit
    if not own.learned_positions or own.cls_tokens not in (1, 2) or not codec.stretch:
        return (
            "needs data.stretch=true, model.vit.learned_positions=true and model.vit.cls_tokens=1, which make patches a ViT"
        )
    if (own.norm or model.norm) != "pre":
        return f"has model.vit.norm={own.norm or model.norm}, and a ViT has pre"
    if codec.height % codec.stride or codec.width % codec.stride:
        return f"has patches of {codec.stride} pixels, and a ViT's fill its pictures of {codec.height} x {codec.width}"
    wide = model.map_size or model.hidden_size
    if wide != model.hidden_size and (model.norm == "pre" or (own.hidden_size or wide) != wide):
        return (
            f"has a map of {wide} and a decoder of {model.hidden_size}: leave model.map_size out, and set "
            "model.vit.hidden_size"
        )
    return None


def _output(trained: SequencePredictor) -> str | None:
    bias, tokens = trained.model.state_dict()["decoder.output.bias"].clone(), trained.codec.target
    if isinstance(tokens, Pretrained):
        bias[copies(tokens)] = 0.0
    return "adds a bias to its output, which neither a GPT-2 nor a TrOCR has" if bias.any() else None


def settings(trained: SequencePredictor) -> PictureSettings:
    """The model in the words of transformers."""
    model, codec, encoder = trained.config.model, trained.codec, trained.model.get_submodule("encoder")
    assert isinstance(encoder, Patches), "it is no misfit"
    own, wide, layers = model.vit, model.map_size or model.hidden_size, len(encoder.names)
    encoder_table: dict[str, Any] = {
        "model_type": "deit" if own.cls_tokens == 2 else "vit",
        "hidden_size": own.hidden_size or wide,
    }
    encoder_table |= {"num_hidden_layers": layers, "num_attention_heads": own.heads or model.heads}
    inner = own.feedforward_size or model.feedforward_size or 4 * (own.hidden_size or wide)
    encoder_table |= {"intermediate_size": inner, "hidden_act": BENT[own.activation or model.activation], "qkv_bias": True}
    encoder_table |= {"layer_norm_eps": own.norm_eps or 1e-5, "num_channels": codec.channels, "patch_size": codec.stride}
    encoder_table["image_size"] = codec.height if codec.height == codec.width else [codec.height, codec.width]
    return PictureSettings(encoder_table, _written(trained), {}, Standard(codec.mean, codec.deviation))


def _written(trained: SequencePredictor) -> dict[str, Any]:
    """The decoder's settings."""
    model, tokens, ids = trained.config.model, trained.codec.target, special(trained.codec.target)
    size, inner = model.hidden_size, model.feedforward_size or 4 * model.hidden_size
    rows = len(trained.model.state_dict()["decoder.embedding.positions.table.weight"])
    vocabulary = max(tokens.ids) + 1 if isinstance(tokens, Pretrained) else tokens.size
    table: dict[str, Any] = {"vocab_size": vocabulary, "tie_word_embeddings": model.tie_embeddings, "is_decoder": True}
    table |= {"add_cross_attention": True, "activation_function": BENT[model.activation]}
    table |= {"pad_token_id": ids["pad"], "bos_token_id": ids["start"], "eos_token_id": ids["end"]}
    depth = model.decoder_layers or model.layers
    if model.norm == "pre":
        sizes = {"n_embd": size, "n_layer": depth, "n_head": model.heads, "n_inner": inner, "n_positions": rows}
        return table | {"model_type": "gpt2", "layer_norm_epsilon": 1e-5} | sizes
    table |= {"model_type": "trocr", "d_model": size, "decoder_layers": depth, "decoder_attention_heads": model.heads}
    table |= {"decoder_ffn_dim": inner, "max_position_embeddings": rows, "layernorm_embedding": model.embedding_norm}
    table |= {"scale_embedding": model.scale_embedding, "use_learned_position_embeddings": True}
    return table | ({} if model.map_size in (None, size) else {"cross_attention_hidden_size": model.map_size})


def config(trained: SequencePredictor) -> dict[str, Any]:
    """config.json."""
    fields, ids = settings(trained), special(trained.codec.target)
    table: dict[str, Any] = {"model_type": PICTURES, "architectures": [ARCHITECTURE], "dtype": "float32"}
    table |= {"encoder": dict(fields.encoder), "decoder": dict(fields.decoder), "is_encoder_decoder": True}
    table |= {"decoder_start_token_id": ids["start"], "eos_token_id": ids["end"], "pad_token_id": ids["pad"]}
    return table | {"tie_word_embeddings": False}


def processor(codec: ImageTextCodec) -> dict[str, Any]:
    """preprocessor_config.json."""
    table: dict[str, Any] = {"image_processor_type": "ViTImageProcessor", "do_resize": True, "resample": BILINEAR}
    table |= {"size": {"height": codec.height, "width": codec.width}, "do_rescale": True, "rescale_factor": 1 / 255}
    return table | {"do_normalize": True, "image_mean": list(codec.mean), "image_std": list(codec.deviation)}


def weights(trained: SequencePredictor) -> dict[str, Tensor]:
    """The state of their model by its names, tied tensors once."""
    ours, fields = trained.model.state_dict(), settings(trained)
    kind, size, whole_ = fields.kind, fields.encoder["hidden_size"], ours["encoder.query"]
    rows = torch.tensor(owners(trained.codec.target, ours["decoder.embedding.table.weight"]))
    tensors = convert_to_theirs([*vit.pieces(fields), *kind.pieces(fields)], ours)
    for name, vector in zip(vit.TOKENS[fields.encoder["model_type"]], whole_, strict=True):
        tensors[f"encoder.embeddings.{name}"] = vector[None, None]
    places = ours["encoder.positions.table"].flatten(0, 1)
    tensors[vit.POSITIONS] = torch.cat((torch.zeros_like(whole_), places))[None]
    tensors |= {name: torch.zeros((size, size) if name.endswith("weight") else (size,)) for name in POOLER}
    tensors[kind.TABLE] = ours["decoder.embedding.table.weight"][rows]
    if not trained.config.model.tie_embeddings:
        tensors[kind.OUTPUT] = ours["decoder.output.weight"][rows]
    before = torch.zeros(trocr.FIRST if kind is trocr else 0, fields.size)
    tensors[kind.POSITIONS] = torch.cat((before, ours["decoder.embedding.positions.table.weight"]))
    return {name: tensor.detach().clone().contiguous() for name, tensor in tensors.items()}
