"""Numbers: the ids of a foreign vocabulary in the order of ours, and the codec that knows both."""

import json
from os.path import lexists
from pathlib import Path
from typing import Any

from regard.data.special_tokens import BOS, EOS, PAD, UNK
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers.pretrained import SPECIAL, Pretrained, read
from regard.errors import DamagedError, RefusedError
from regard.interop.huggingface.settings import Settings
from regard.regular_files import read_regular
from regard.training.snapshot import MemoryFolder

TOKENIZER = "tokenizer.json"
NEVER = -1e9
"""The bias of a token that is a copy of another: its probability is exactly 0."""


def ids(vocabulary: int, pad: int, start: int, end: int, unknown: int | None) -> tuple[int, ...]:
    """The id of each of our numbers: PAD, BOS (always a copy), EOS, UNK (a copy of PAD where there is none), the rest."""
    special = {pad, end, unknown}
    unknown = pad if unknown is None else unknown
    return (pad, start, end, unknown, *(number for number in range(vocabulary) if number not in special))


def copies(tokens: Pretrained) -> list[int]:
    """Our numbers that are copies of others: the beginning; what is unknown and the padding where they have no id."""
    unknown, padding = tokens.ids[UNK] == tokens.ids[PAD], tokens.ids[PAD] == tokens.ids[EOS]
    return [BOS, *[UNK] * unknown, *[PAD] * padding]


def number_of(tokens: Pretrained, name: str) -> int:
    """Our number of a token by its name, or by its id where there is no tokenizer."""
    known = int(name) if name.isascii() and name.isdecimal() else None
    token_id = known if tokens.model is None else tokens.model.token_to_id(name)
    if token_id not in tokens.numbers or tokens.numbers[token_id] in SPECIAL:
        kind = "an id" if tokens.model is None else f"a token of its {TOKENIZER}"
        raise RefusedError(f"the first token of an answer needs to be {kind}, such as the name of a language, got {name!r}")
    return tokens.numbers[token_id]


def build_codec(settings: Settings, folder: Path) -> TextCodec:
    """The codec of a folder: its tokenizer.json, or, where it has none, texts that are made of ids."""
    tokens, longest = tokens_of(settings, folder), settings.max_position_embeddings
    if tokens.model is not None:
        _ends(tokens, folder / TOKENIZER, settings.eos_token_id)
    return TextCodec(tokens, tokens, max_source_length=longest, max_target_length=longest, over_long="truncate")


def tokens_of(settings: Any, folder: Path) -> Pretrained:
    """The tokens of a folder, whose special ones `settings` name."""
    path = folder / TOKENIZER
    try:
        model = read(MemoryFolder(folder, {TOKENIZER: read_regular(path)}) / TOKENIZER) if lexists(path) else None
    except (ValueError, DamagedError) as error:
        raise RefusedError(str(error)) from error
    unknown = None if model is None else unknown_id(model)
    pad, start, end = settings.pad_token_id, settings.decoder_start_token_id, settings.eos_token_id
    if unknown in (pad, end) or (unknown is not None and unknown >= settings.vocab_size):
        unknown = None
    return Pretrained(ids(settings.vocab_size, pad, start, end, unknown), model)


def unknown_id(model: Any) -> int | None:
    """The id of what a tokenizer does not know."""
    table = json.loads(model.to_str())["model"]
    if isinstance(table.get("unk_id"), int):
        return int(table["unk_id"])
    token = table.get("unk_token")
    unknown: int | None = None if token is None else model.token_to_id(token)
    return unknown


def _ends(tokens: Pretrained, path: Path, end: int) -> None:
    """Refuse a template that puts something behind the end of a source, where the codec puts nothing."""
    around = tokens.model.encode("a", add_special_tokens=True).ids
    if end in around[:-1]:
        raise RefusedError(
            f"{path} puts tokens behind the end of a source, got ids {around} for 'a' with {end} as the end; save the "
            "tokenizer with the end last (for mBART, that is mBART-50's)"
        )
