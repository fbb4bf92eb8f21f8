"""Families: the architectures that are ours under another name, and in what they differ."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

NOTHING: Mapping[str, Any] = MappingProxyType({})


class Family(NamedTuple):
    """One architecture. All have the names of BART's parameters (`names.py`), and those with a bias T5's (`t5.py`)."""

    architecture: str
    norm: Literal["pre", "post", "rms"]
    embedding_norm: bool
    positions: Literal["waves", "table", "spaced_waves", "bias"]
    """Computed sinusoids, a table that is stored, sinusoids of other wavelengths (`waves.py`), or T5's bias of distances."""
    first: int = 0
    """The row of the table that is the first position."""
    bias: bool = True
    """True if its output has a bias."""
    extra: frozenset[str] = frozenset()
    """Fields of config.json that only this family has."""
    words: Mapping[str, str] = NOTHING
    """Its fields for what BART calls otherwise."""
    usual: Mapping[str, Any] = NOTHING
    """Defaults of the fields of config.json."""


WORDS = {
    "encoder_layers": "num_layers",
    "decoder_layers": "num_decoder_layers",
    "encoder_attention_heads": "num_heads",
    "decoder_attention_heads": "num_heads",
    "encoder_ffn_dim": "d_ff",
    "decoder_ffn_dim": "d_ff",
    "max_position_embeddings": "n_positions",
    "activation_function": "feed_forward_proj",
}
"""T5's."""
RELATIVE = {"relative_attention_num_buckets": 32, "relative_attention_max_distance": 128, "layer_norm_epsilon": 1e-6}
"""Fields that every published T5 shares with our bias and norm."""
T5 = Family(
    "T5ForConditionalGeneration",
    "rms",
    embedding_norm=False,
    positions="bias",
    bias=False,
    extra=frozenset(RELATIVE)
    | {"d_kv", "dropout_rate", "initializer_factor", "dense_act_fn", "is_gated_act", "scale_decoder_outputs"},
    words=WORDS,
    usual={"n_positions": 512, "feed_forward_proj": "relu", "d_kv": 64, **RELATIVE},
)

FAMILIES = {
    "marian": Family(
        "MarianMTModel",
        "post",
        embedding_norm=False,
        positions="waves",
        extra=frozenset({"decoder_vocab_size", "share_encoder_decoder_embeddings", "static_position_embeddings"}),
    ),
    "bart": Family("BartForConditionalGeneration", "post", embedding_norm=True, positions="table", first=2),
    "mbart": Family("MBartForConditionalGeneration", "pre", embedding_norm=True, positions="table", first=2),
    "pegasus": Family("PegasusForConditionalGeneration", "pre", embedding_norm=False, positions="table"),
    "m2m_100": Family("M2M100ForConditionalGeneration", "pre", embedding_norm=False, positions="spaced_waves", bias=False),
    "t5": T5,
    "mt5": T5._replace(architecture="MT5ForConditionalGeneration"),
}
PICTURES = "vision-encoder-decoder"
"""Type of models that join an encoder of pictures to a language model (`pictures/`)."""
LACKING = {
    "whisper": "listens to speech",
    "speech_to_text": "listens to speech",
    "time_series_transformer": "goes on with series of numbers",
    "umt5": "has a bias of distances in every layer of its own",
}
"""Encoder-decoders that there is no model for here, and what each does."""


def usual_task(kind: str) -> str:
    """Default task of a model of this type."""
    return "caption" if kind == PICTURES else "translate"


def family(norm: str, embedding_norm: bool) -> str:
    """The family that a Transformer with norms in these places is written as: there is one for each."""
    fitting = (name for name, entry in FAMILIES.items() if (entry.norm, entry.embedding_norm) == (norm, embedding_norm))
    return next(fitting)
