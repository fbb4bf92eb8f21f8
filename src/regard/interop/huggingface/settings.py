"""Settings of a transformers model, from config.json and generation_config.json; unknown fields are refused."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from typing import Any

from regard.errors import DamagedError, RefusedError
from regard.interop.huggingface.families import FAMILIES, LACKING, PICTURES, RELATIVE, Family
from regard.regular_files import read_regular

SIZES = {
    "vocab_size": 2_000_000,
    "d_model": 16_384,
    "encoder_layers": 256,
    "decoder_layers": 256,
    "encoder_attention_heads": 1024,
    "decoder_attention_heads": 1024,
    "encoder_ffn_dim": 131_072,
    "decoder_ffn_dim": 131_072,
    "max_position_embeddings": 131_072,
}
"""Sizes with their upper limits."""
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish", "gelu_new": "gelu_tanh"}
GATED = {"gated-gelu": "gelu_tanh", "gated-silu": "swish", "gated-relu": "relu"}
"""T5's; its gelu is the exact one only without a gate."""
USED = frozenset(SIZES) | {
    *("model_type", "architectures", "activation_function", "scale_embedding", "tie_word_embeddings", "pad_token_id"),
    *("eos_token_id", "decoder_start_token_id", "forced_bos_token_id", "num_beams", "length_penalty", "max_length"),
    *("no_repeat_ngram_size", "normalize_before", "normalize_embedding", "add_final_layer_norm", "is_encoder_decoder"),
    *("is_decoder", "dtype", "torch_dtype"),
}
IGNORED = frozenset(
    {
        *("_name_or_path", "transformers_version", "use_cache", "init_std", "id2label", "label2id", "num_labels"),
        *("dropout", "attention_dropout", "activation_dropout", "classifier_dropout", "classif_dropout"),
        *("encoder_layerdrop", "decoder_layerdrop", "num_hidden_layers", "bos_token_id", "unk_token_id", "output_past"),
        *("forced_eos_token_id", "bad_words_ids", "early_stopping", "min_length", "max_new_tokens", "task_specific_params"),
        *("gradient_checkpointing", "extra_pos_embeddings", "add_bias_logits", "prefix", "tokenizer_class"),
        *("output_attentions", "output_hidden_states", "return_dict", "_from_model_config", "num_return_sequences"),
        *(
            "renormalize_logits",
            "force_bos_token_to_be_generated",
            "decoder_input_ids",
            "diversity_penalty",
            "num_beam_groups",
        ),
        *("temperature", "do_sample", "top_k", "top_p"),
    }
)
"""Fields without effect on inference."""


@dataclass(frozen=True)
class Settings:
    """Settings of a model beside its weights."""

    kind: str
    table: Mapping[str, Any]

    @property
    def family(self) -> Family:
        """The family of the model."""
        return FAMILIES[self.kind]

    @property
    def activation(self) -> tuple[str, bool]:
        """Activation of the feed-forward network, by our name, and whether it is gated."""
        name = self.activation_function
        return (GATED[name], True) if name in GATED else (ACTIVATIONS[name], False)

    @property
    def scaled_output(self) -> bool:
        """True where logits are multiplied by d^-½: in T5, but neither in version 1.1 nor in mT5."""
        scaled = self.scale_decoder_outputs
        return self.kind == "t5" and bool(self.tie_word_embeddings is not False if scaled is None else scaled)

    def __getattr__(self, name: str) -> Any:
        """A field by BART's name; None where it is missing."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self.table.get(self.word(name))

    def word(self, name: str) -> str:
        """Name of a field in the family."""
        return self.family.words.get(name, name)


def opened(folder: Path) -> tuple[dict[str, Any], str]:
    """config.json and its model type; raises for unsupported types."""
    if not (folder / "config.json").is_file():
        raise RefusedError(f"{folder} has no config.json: give the directory that save_pretrained of transformers wrote")
    table = table_of(folder / "config.json")
    kind = table.get("model_type")
    if not isinstance(kind, str):
        raise RefusedError(f"{folder / 'config.json'} needs a model_type, the name of a family, got {kind!r}")
    every = ", ".join((*FAMILIES, PICTURES))
    if kind in LACKING:
        raise RefusedError(
            f"{folder} is a model of the type {kind}, which {LACKING[kind]}: there is no such model here. Types that "
            f"can be taken are {every}"
        )
    if kind not in FAMILIES and kind != PICTURES:
        raise RefusedError(f"{folder} is a model of the type {kind!r}, and there are {every}")
    return table, kind


def read(folder: Path) -> Settings:
    """Read the settings of a transformers model; raises where it cannot be imported."""
    table, kind = opened(folder)
    if kind == PICTURES:
        raise RefusedError(
            f"{folder} is a model of the type {kind}, which reads images; `regard import` takes a VisionEncoderDecoder"
        )
    family = FAMILIES[kind]
    known = (USED - family.words.keys()) | {*family.words.values()} | IGNORED | family.extra
    if unknown := sorted(table.keys() - known):
        raise RefusedError(
            f"{folder / 'config.json'} has a field {unknown[0]!r} that a model of the type {kind} is not known to have: it "
            "could change what the model computes, so it is not guessed at"
        )
    if lexists(folder / "generation_config.json"):  # where newer versions keep what concerns the search
        table = {
            **table,
            **{name: value for name, value in table_of(folder / "generation_config.json").items() if name in USED},
        }
    table = {**family.usual, **{name: value for name, value in table.items() if value is not None}}
    if family.positions == "bias":
        table = {"num_decoder_layers": table.get("num_layers"), **table}
    settings = Settings(kind, table)
    _check_sizes(settings, folder)
    check_generation(settings, folder)
    _check_distinct_tokens(settings, folder)
    _check_architecture(settings, folder)
    return settings


def table_of(path: Path) -> dict[str, Any]:
    """Read a JSON file with an object."""
    try:
        table = json.loads(read_regular(path))
    except (DamagedError, ValueError, RecursionError) as error:
        raise RefusedError(f"{path} needs to be a JSON file, and is not: {error}") from error
    if not isinstance(table, dict):
        raise RefusedError(f"{path} needs to hold a table of settings, got {type(table).__name__}")
    return table


def _check_sizes(settings: Settings, folder: Path) -> None:
    """Raise for invalid sizes, before anything is allocated."""
    sizes = SIZES | ({"d_kv": SIZES["d_model"]} if settings.family.positions == "bias" else {})
    for name, most in sizes.items():
        value = getattr(settings, name)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
            raise RefusedError(f"{folder / 'config.json'} needs {settings.word(name)} from 1 to {most}, got {value!r}")
    for name in ("pad_token_id", "eos_token_id", "decoder_start_token_id"):
        value = settings.table.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < settings.vocab_size:
            raise RefusedError(f"{folder / 'config.json'} needs {name} from 0 to {settings.vocab_size - 1}, got {value!r}")


def check_generation(settings: Any, folder: Path) -> None:
    """Refuse what the search cannot be told, and a yes or no that is neither; `settings` has them in its `table`."""
    where = f"{folder / 'config.json'} (or generation_config.json)"
    for name, least in (("num_beams", 1), ("max_length", 1), ("no_repeat_ngram_size", 0), ("length_penalty", 0)):
        value, kinds = settings.table.get(name, least), (int, float) if name == "length_penalty" else int
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value < math.inf:
            raise RefusedError(f"{where} needs {name} from {least} up, got {value!r}: change it there")
    for name in ("scale_embedding", "tie_word_embeddings", "scale_decoder_outputs"):
        if not isinstance(value := settings.table.get(name, False), bool):
            raise RefusedError(f"{where} needs {name} to be true or false, got {value!r}")


def _check_distinct_tokens(settings: Settings, folder: Path) -> None:
    """Raise for one token with two roles."""
    where = f"{folder / 'config.json'} (or generation_config.json)"
    if settings.pad_token_id == settings.eos_token_id:
        raise RefusedError(
            f"{where} has one token, {settings.eos_token_id}, for padding and for the end, which are two here: save it with "
            "a pad_token_id of its own"
        )


def _check_architecture(settings: Settings, folder: Path) -> None:
    """Raise for unsupported architectures."""
    pairs = (("attention_heads", "heads"), ("ffn_dim", "sizes of the feed-forward network"))
    for name, what in pairs:
        one, other = getattr(settings, f"encoder_{name}"), getattr(settings, f"decoder_{name}")
        if one != other:
            raise RefusedError(f"{folder} needs equal {what} in encoder and decoder, got {one} and {other}")
    relative = settings.family.positions == "bias"
    if not relative and settings.d_model % settings.encoder_attention_heads:
        sizes = f"{settings.encoder_attention_heads} and {settings.d_model}"
        raise RefusedError(f"{folder} needs heads that divide d_model, got {sizes}")
    every = (*ACTIVATIONS, *(GATED if relative else ()))
    if settings.activation_function not in every:
        raise RefusedError(f"{folder} has the activation {settings.activation_function!r}, and there are {', '.join(every)}")
    for name, value in (_relative(settings) if relative else _plain(settings)).items():
        if settings.table.get(name) not in (None, value):
            raise RefusedError(f"{folder} has {name}={settings.table[name]!r}, and models with {value!r} alone can be taken")
    if settings.kind == "m2m_100" and settings.decoder_start_token_id == settings.pad_token_id:
        raise RefusedError(f"{folder} begins its answers with the padding, to which a model of this type gives no position")
    if settings.kind == "marian" and settings.d_model % 2:
        raise RefusedError(f"{folder} needs an even d_model for its sines and cosines, got {settings.d_model}")


def _plain(settings: Settings) -> dict[str, Any]:
    """Required values of the optional fields of BART's families."""
    first, embedded = settings.family.norm == "pre", settings.family.embedding_norm
    one = {"tie_word_embeddings": True, "share_encoder_decoder_embeddings": True, "decoder_vocab_size": settings.vocab_size}
    norms = {"normalize_before": first, "add_final_layer_norm": first, "normalize_embedding": embedded}
    return {**one, **norms, "is_encoder_decoder": True, "is_decoder": False}


def _relative(settings: Settings) -> dict[str, Any]:
    """Required values of the optional fields of T5."""
    name = str(settings.activation_function)
    bent = {"dense_act_fn": "gelu_new" if name == "gated-gelu" else name.removeprefix("gated-")}
    return {**RELATIVE, **bent, "is_gated_act": name in GATED, "is_encoder_decoder": True, "is_decoder": False}
