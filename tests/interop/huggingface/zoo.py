"""Small models of every family of transformers that calls attention through its interface, built from configs alone."""

import copy
import re
from functools import cache
from pathlib import Path

import torch
import transformers
from transformers.models.auto import configuration_auto, modeling_auto

transformers.logging.set_verbosity_error()
SOURCES = Path(transformers.__file__).parent / "models"
VOCABULARY = 99
SIZES = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "hidden_dim", "encoder_hidden_size"), 32),
    **dict.fromkeys(
        ("decoder_hidden_size", "encoder_embed_dim", "decoder_embed_dim", "text_hidden_size", "embedding_size"), 32
    ),
    **dict.fromkeys(("projection_dim", "proj_size", "d_embedding", "word_embed_proj_dim", "bottleneck_size"), 32),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "n_inner"), 48),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size", "mlp_dim", "ffn_hidden_size"), 16),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "encoder_layers", "decoder_layers", "n_layers"), 2),
    **dict.fromkeys(("num_decoder_layers", "encoder_num_hidden_layers", "decoder_num_hidden_layers", "depth"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads"), 4),
    **dict.fromkeys(("decoder_attention_heads", "encoder_num_attention_heads", "decoder_num_attention_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("head_dim", "d_kv", "attention_head_size", "v_head_dim", "qk_nope_head_dim", "attention_head_dim"), 8),
    **dict.fromkeys(("qk_rope_head_dim", "rope_head_dim"), 8),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "index_head_dim"), 16),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_source_positions", "max_target_positions"), 128),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_experts_per_layer"), 4),
    **dict.fromkeys(("num_experts_per_tok", "moe_topk", "moe_k", "experts_per_token"), 2),
    **dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "num_shared_experts", "first_k_dense_replace"), 1),
    **dict.fromkeys(("image_size", "img_size"), 32),
    **dict.fromkeys(("patch_size",), 8),
    **dict.fromkeys(("sliding_window", "attention_window", "local_attention", "window_size", "attention_chunk_size"), 6),
    **dict.fromkeys(("num_mel_bins", "feature_size"), 16),
    **dict.fromkeys(("bos_token_id",), 0),
    **dict.fromkeys(("pad_token_id",), 1),
    **dict.fromkeys(("eos_token_id",), 2),
    **dict.fromkeys(("decoder_start_token_id",), 2),
    "vocab_size": VOCABULARY,
    "type_vocab_size": 2,
    "hidden_size_per_layer_input": 8,
    "vocab_size_per_layer_input": VOCABULARY,
    "text_vocab_size": VOCABULARY,
}
"""Settings of every size that a config may have."""
QUIET = ("dropout", "drop", "drop_path", "layerdrop")
KINDS = ("SPEECH_SEQ_2_SEQ", "SEQ_TO_SEQ_CAUSAL_LM", "CAUSAL_LM", "MASKED_LM", "IMAGE_CLASSIFICATION", "")
"""Kinds of models in the order in which they are tried: those that generate first."""


@cache
def families() -> tuple[str, ...]:
    """Folders of models that call their attention through the interface, from the sources of transformers."""
    calls = [
        path for path in SOURCES.glob("*/modeling_*.py") if "ALL_ATTENTION_FUNCTIONS" in path.read_text(encoding="utf-8")
    ]
    return tuple(sorted({path.parent.name for path in calls}))


def model_types(family: str) -> list[str]:
    """Model types whose config is in the folder of a family."""
    folder = configuration_auto.model_type_to_module_name
    types = [kind for kind in configuration_auto.CONFIG_MAPPING_NAMES if folder(kind) == family]
    return sorted(types, key=lambda kind: (kind.replace("-", "_") != family, kind))


def shrink(config, sizes=SIZES):
    """A config of a class with small sizes, its parts included."""
    parts = {
        name: type(getattr(config, name)) for name in type(config).sub_configs if getattr(config, name, None) is not None
    }
    options = {name: size for name, size in sizes.items() if _has(config, name)}
    options |= {
        name: 0.0 for name in vars(config) if any(word in name for word in QUIET) and _is_number(getattr(config, name))
    }
    if options.get("q_lora_rank") and options.get("qk_nope_head_dim"):  # latent attention has no groups
        options["num_key_value_heads"] = options["num_attention_heads"]
    options |= {name: shrink(kind(), sizes).to_dict() for name, kind in parts.items() if hasattr(kind, "model_type")}
    layers = options.get("num_hidden_layers")
    if layers and isinstance(getattr(config, "layer_types", None), list):
        known = list(dict.fromkeys(config.layer_types))
        options["layer_types"] = (known * layers)[:layers]
    return type(config)(**options)


def _has(config, name):
    try:
        value = getattr(config, name)
    except (AttributeError, NotImplementedError):
        return False
    return (
        value is not None and not isinstance(value, (list, tuple, dict)) and name in {*vars(config), *config.attribute_map}
    )


def _is_number(value):
    return isinstance(value, float) and not isinstance(value, bool)


def build(model_type, implementation, seed=0, kind=None, **options):
    """A small model in evaluation mode, with weights that are the same for every implementation."""
    config = shrink(transformers.AutoConfig.for_model(model_type), SIZES | options)
    for name in KINDS if kind is None else (kind,):
        mapping = f"MODEL_FOR_{name}_MAPPING_NAMES" if name else "MODEL_MAPPING_NAMES"
        classes = getattr(modeling_auto, mapping).get(model_type)
        if classes is None:
            continue
        family = getattr(transformers, classes if isinstance(classes, str) else classes[0])
        config = copy.deepcopy(config)
        config._attn_implementation = implementation
        torch.manual_seed(seed)
        model = family(config).eval()
        spread(model, seed)
        return model
    raise LookupError(f"no model of {model_type}")


@torch.no_grad()
def spread(model, seed):
    """Weights far enough from zero that attention is not uniform and answers differ."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        if parameter.ndim > 1 and parameter.is_floating_point():
            parameter.normal_(0, 0.6 / parameter.shape[-1] ** 0.5 * 1.5, generator=generator)
        elif re.search(r"sink", name):
            parameter.normal_(0, 1.0, generator=generator)


def implementation_of(model):
    """Implementations of a model and all its parts."""
    return {config._attn_implementation for config in [model.config, *parts_of(model.config)]}


def parts_of(config):
    """Configs inside a config."""
    for name in config.sub_configs:
        part = getattr(config, name, None)
        if part is not None:
            yield part
            yield from parts_of(part)


def logits_of(output):
    """The tensor by which two models are compared."""
    for name in ("logits", "last_hidden_state", "logits_per_image", "pooler_output"):
        if getattr(output, name, None) is not None:
            return getattr(output, name)
    return next(value for value in output.values() if torch.is_tensor(value))


def reference(model_type, seed=0):
    """The model through `sdpa`, or `eager` where its family has no other."""
    try:
        return build(model_type, "sdpa", seed)
    except ValueError:
        return build(model_type, "eager", seed)


def inputs(model, batch=2, length=9, seed=0, padded=True):
    """Inputs of a model by its main input: tokens with padding in front of the first row, pictures or sound."""
    generator = torch.Generator().manual_seed(100 + seed)
    main = model.main_input_name
    config = model.config
    if main == "input_ids":
        tokens = torch.randint(3, VOCABULARY, (batch, length), generator=generator)
        keep = torch.ones_like(tokens)
        if padded and batch > 1:
            left = not config.is_encoder_decoder and model.can_generate()
            keep[0, slice(0, 3) if left else slice(length - 3, length)] = 0
            tokens = torch.where(keep.bool(), tokens, 1)
        given = {"input_ids": tokens, "attention_mask": keep}
        if config.is_encoder_decoder:
            given["decoder_input_ids"] = torch.randint(3, VOCABULARY, (batch, 5), generator=generator)
        return given
    if main == "pixel_values":
        size = next(part.image_size for part in [config, *parts_of(config)] if hasattr(part, "image_size"))
        size = size if isinstance(size, (tuple, list)) else (size, size)
        channels = getattr(config, "num_channels", 3)
        return {"pixel_values": torch.randn(batch, channels, *size, generator=generator)}
    if main == "input_values":
        if getattr(config, "max_length", None) and hasattr(config, "frequency_stride"):
            return {"input_values": torch.randn(batch, config.max_length, config.num_mel_bins, generator=generator)}
        return {"input_values": torch.randn(batch, 4000, generator=generator)}
    if main == "input_features":
        frames = 2 * getattr(config, "max_source_positions", 50)
        given = {"input_features": torch.randn(batch, config.num_mel_bins, frames, generator=generator)}
        if config.is_encoder_decoder:
            given["decoder_input_ids"] = torch.randint(3, VOCABULARY, (batch, 5), generator=generator)
        return given
    raise LookupError(f"inputs of the kind {main}")
