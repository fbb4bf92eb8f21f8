"""Tokenizer: tokenizer.json and its settings for transformers, with the ids that its models have there."""

import json
from typing import Any

from regard.data.image.codec import ImageTextCodec
from regard.data.special_tokens import NAMES
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.interop.tokenizer import build_tokenizer

CLASS = "PreTrainedTokenizerFast"
ROLES = ("pad_token", "bos_token", "eos_token", "unk_token")


def tokenizer(codec: TextCodec | ImageTextCodec) -> dict[str, bytes] | str:
    """tokenizer.json and tokenizer_config.json, or the reason why there are none: `regard` encodes then."""
    if isinstance(codec, ImageTextCodec):
        tokens, longest = codec.target, codec.max_target_length
    else:
        tokens, longest = codec.source, codec.max_source_length
    if isinstance(tokens, Pretrained) and tokens.model is not None and not codec.lowercase:
        roles = [tokens.model.id_to_token(tokens.ids[number]) for number in range(len(NAMES))]
        return _files(tokens.model.to_str(), roles, longest)
    model = build_tokenizer(tokens, codec.lowercase)
    return model if isinstance(model, str) else _files(model.to_str(), list(NAMES), longest)


def _files(text: str, roles: list[str | None], longest: int) -> dict[str, bytes]:
    table: dict[str, Any] = {"tokenizer_class": CLASS, "model_max_length": longest, "clean_up_tokenization_spaces": False}
    table |= {role: token for role, token in zip(ROLES, roles, strict=True) if token is not None}
    return {"tokenizer.json": text.encode(), "tokenizer_config.json": (json.dumps(table, indent=2) + "\n").encode()}
