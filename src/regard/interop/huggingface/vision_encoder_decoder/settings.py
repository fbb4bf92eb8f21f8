"""Settings: what config.json says of both halves, read by us, every field known."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from os.path import lexists
from pathlib import Path
from typing import Any

from regard.errors import RefusedError
from regard.interop.huggingface.settings import ACTIVATIONS, IGNORED, SIZES, USED, check_generation, opened, table_of
from regard.interop.huggingface.vision_encoder_decoder import gpt2, processor, trocr, vit
from regard.interop.huggingface.vision_encoder_decoder.processor import Standard

DECODERS: Mapping[str, Any] = {"gpt2": gpt2, "trocr": trocr}
"""Decoders by the name of their type."""
USUAL: Mapping[str, dict[str, Any]] = {
    "vit": {"hidden_act": "gelu", "layer_norm_eps": 1e-12, "num_channels": 3, "qkv_bias": True},
    "gpt2": {"activation_function": "gelu_new"},
    "trocr": {"activation_function": "gelu"},
}
"""Defaults of fields that are absent."""
VIT_FIELDS = frozenset({"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "hidden_act"})
VIT_FIELDS |= {"layer_norm_eps", "image_size", "patch_size", "num_channels", "qkv_bias", "encoder_stride", "pooler_act"}
VIT_FIELDS |= {"pooler_output_size", "hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range"}
"""The fields of a ViT."""
EVERY = (USED - SIZES.keys()) | IGNORED | {"vocab_size", "add_cross_attention", "cross_attention_hidden_size"}
EVERY |= {"begin_suppress_tokens", "chunk_size_feed_forward", "encoder_no_repeat_ngram_size", "finetuning_task"}
EVERY |= {"exponential_decay_length_penalty", "output_scores", "problem_type", "pruned_heads", "remove_invalid_values"}
EVERY |= {"repetition_penalty", "return_dict_in_generate", "sep_token_id", "suppress_tokens", "tf_legacy_loss", "typical_p"}
EVERY |= {"tie_encoder_decoder", "torchscript", "use_bfloat16", "cls_token_id", "mask_token_id"}
"""Fields that both halves may have, most of which old versions wrote for every model."""
IDS = ("pad_token_id", "eos_token_id", "decoder_start_token_id")
SEARCH = (*IDS, "bos_token_id", "forced_bos_token_id", "num_beams", "length_penalty", "max_length", "no_repeat_ngram_size")
"""Fields read from generation_config.json, the whole config or the decoder's, the first of which counts."""


@dataclass(frozen=True)
class PictureSettings:
    """Settings of a model, without its weights."""

    encoder: Mapping[str, Any]
    decoder: Mapping[str, Any]
    table: Mapping[str, Any]
    """Search settings and special tokens."""
    standard: Standard

    def __getattr__(self, name: str) -> Any:
        """Field of the search settings; None if it is absent."""
        if name.startswith("__"):
            raise AttributeError(name)
        return self.table.get(name)

    @property
    def kind(self) -> Any:
        """The module that knows its decoder."""
        return DECODERS[self.decoder["model_type"]]

    @property
    def vocab_size(self) -> int:
        """Vocabulary size."""
        return int(self.decoder["vocab_size"])

    @property
    def size(self) -> int:
        """Of the decoder."""
        return int(self.decoder[self.kind.WORDS["size"]])

    @property
    def layers(self) -> int:
        """Of the decoder."""
        return int(self.decoder[self.kind.WORDS["layers"]])

    @property
    def heads(self) -> int:
        """Of the decoder."""
        return int(self.decoder[self.kind.WORDS["heads"]])

    @property
    def feedforward(self) -> int:
        """The middle of the decoder's feed-forward networks."""
        return int(self.decoder.get(self.kind.WORDS["feedforward"]) or 4 * self.size)

    @property
    def positions(self) -> int:
        """The most tokens of an answer."""
        return int(self.decoder[self.kind.WORDS["positions"]])

    @property
    def map(self) -> int:
        """The size of what the decoder looks at."""
        return int(self.decoder.get("cross_attention_hidden_size") or self.size)

    @property
    def fits(self) -> bool:
        """True if a projection stands between the halves."""
        return bool(self.encoder["hidden_size"] != self.map)

    @property
    def channels(self) -> int:
        """Of a picture."""
        return int(self.encoder["num_channels"])

    @property
    def patch(self) -> int:
        """The pixels on a side of a patch."""
        return _pair(self.encoder["patch_size"])[0]

    @property
    def box(self) -> tuple[int, int]:
        """Height and width of a picture."""
        return _pair(self.encoder["image_size"])

    @property
    def places(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.box[0] // self.patch, self.box[1] // self.patch


def read(folder: Path) -> PictureSettings:
    """The settings of a model that transformers saved, or the reason for which it cannot be taken."""
    whole, _ = opened(folder)
    where = folder / "config.json"
    halves = {name: _half(where, whole, name) for name in ("encoder", "decoder")}
    known = EVERY | {"encoder", "decoder"}
    _check_fields(where, whole, known)
    encoder, decoder = halves["encoder"], halves["decoder"]
    _check_fields(where, encoder, EVERY | VIT_FIELDS, "encoder.")
    _check_fields(where, decoder, EVERY | DECODERS[decoder["model_type"]].FIELDS | {"activation_function"}, "decoder.")
    generation = table_of(folder / "generation_config.json") if lexists(folder / "generation_config.json") else {}
    table = {
        name: value
        for source in (decoder, whole, generation)
        for name, value in source.items()
        if value is not None and name in SEARCH
    }
    table.setdefault("decoder_start_token_id", table.get("bos_token_id"))
    table.setdefault("pad_token_id", table.get("eos_token_id"))
    settings = PictureSettings(encoder, decoder, table, Standard((), ()))
    _check_sizes(settings, where)
    _check_architecture(settings, where)
    check_generation(settings, folder)
    return PictureSettings(encoder, decoder, table, processor.read(folder, settings.box, settings.channels))


def _half(where: Path, whole: dict[str, Any], name: str) -> dict[str, Any]:
    """The settings of one half, of a type that is known."""
    kinds, half = tuple(vit.TOKENS) if name == "encoder" else tuple(DECODERS), whole.get(name)
    kind = half.get("model_type") if isinstance(half, dict) else None
    if not isinstance(half, dict) or kind not in kinds:
        raise RefusedError(f"{where} has the {name} {kind!r}, and those that can be taken are {', '.join(kinds)}")
    usual = USUAL["vit" if name == "encoder" else str(kind)]
    return usual | {field: value for field, value in half.items() if value is not None}


def _check_fields(where: Path, table: dict[str, Any], known: Collection[str], prefix: str = "") -> None:
    if unknown := sorted(name for name in table if name not in known):
        raise RefusedError(
            f"{where} has a field {prefix + unknown[0]!r} that such a model is not known to have: it could change what the "
            "model computes, so it is not guessed at"
        )


def _check_sizes(settings: PictureSettings, where: Path) -> None:
    """Refuse sizes that are none, before anything is allocated."""
    most, words = 131_072, settings.kind.WORDS
    optional = {words["feedforward"]} if settings.kind is gpt2 else set()
    encoder = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "num_channels")
    named = [("encoder", name) for name in encoder]
    named += [("decoder", name) for name in (*words.values(), "cross_attention_hidden_size")]
    for half, name in named:
        value = getattr(settings, half).get(name)
        if value is None and (name in optional or name == "cross_attention_hidden_size"):
            continue
        if not _count(value, most):
            raise RefusedError(f"{where} needs {half}.{name} from 1 to {most}, got {value!r}")
    if not _count(settings.decoder.get("vocab_size"), SIZES["vocab_size"]):
        raise RefusedError(f"{where} needs decoder.vocab_size from 1 up, got {settings.decoder.get('vocab_size')!r}")
    for name in IDS:
        value = settings.table.get(name)
        if type(value) is not int or not 0 <= value < settings.vocab_size:
            raise RefusedError(f"{where} needs {name} from 0 to {settings.vocab_size - 1}, got {value!r}")
    for name in ("image_size", "patch_size"):
        value = settings.encoder.get(name)
        sides = value if isinstance(value, list) and len(value) == 2 else [value]
        if not all(_count(side, 16_384) for side in sides):
            raise RefusedError(f"{where} needs encoder.{name} to be a side or two from 1 to 16384, got {value!r}")
    epsilon = settings.encoder["layer_norm_eps"]
    if not isinstance(epsilon, float) or not 0 < epsilon < 1:
        raise RefusedError(f"{where} needs encoder.layer_norm_eps above 0 and below 1, got {epsilon!r}")


def _check_architecture(settings: PictureSettings, where: Path) -> None:
    """Refuse what our architecture has no place for."""
    heads = ((settings.size, settings.heads), (settings.encoder["hidden_size"], settings.encoder["num_attention_heads"]))
    for size, several in heads:
        if size % several:
            raise RefusedError(f"{where} needs heads that divide the size of their half, got {several} and {size}")
    for half, name in (("encoder", "hidden_act"), ("decoder", "activation_function")):
        if (bent := getattr(settings, half)[name]) not in ACTIVATIONS:
            raise RefusedError(f"{where} has {half}.{name}={bent!r}, and there are {', '.join(ACTIVATIONS)}")
    high, wide = _pair(settings.encoder["patch_size"])
    if high != wide or any(side % high for side in settings.box):
        raise RefusedError(f"{where} needs square patches that fill a picture of {settings.box}, got {high} x {wide} pixels")
    needed = {"encoder": {"qkv_bias": True}, "decoder": settings.kind.NEEDED | {"add_cross_attention": True}}
    for half, values in needed.items():
        for name, value in values.items():
            stored = getattr(settings, half).get(name, value)
            if stored != value:
                raise RefusedError(f"{where} has {half}.{name}={stored!r}, and models with {value!r} alone can be taken")
        if getattr(settings, half).get("pruned_heads"):
            raise RefusedError(f"{where} has {half}.pruned_heads, and layers with all heads alone can be taken")
    if settings.channels not in (1, 3):
        raise RefusedError(f"{where} has pictures of {settings.channels} channels, and there are 1, grey, and 3, in colour")
    if (across := settings.decoder.get("cross_attention_hidden_size")) and (
        across != settings.encoder["hidden_size"] or (settings.kind is gpt2 and across != settings.size)
    ):
        raise RefusedError(f"{where} has decoder.cross_attention_hidden_size={across}, which does not fit its halves")
    if settings.kind is trocr and not trocr.learned(settings) and settings.decoder_start_token_id == settings.pad_token_id:
        raise RefusedError(f"{where} begins answers with the padding, to which a TrOCR with sinusoids gives no position")


def _count(value: Any, most: int) -> bool:
    return type(value) is int and 1 <= value <= most


def _pair(value: Any) -> tuple[int, int]:
    """Height and width, of which one may stand for both."""
    sides = value if isinstance(value, list) else [value, value]
    return int(sides[0]), int(sides[1])
