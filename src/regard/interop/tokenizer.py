"""Tokenizers of a model as files of the tokenizers library, which give the same ids and the same texts."""

import json
from collections.abc import Sequence
from typing import Any

from regard.data.special_tokens import BOS, EOS, NAMES, PAD, UNK
from regard.data.text.tokenizers import Tokenizer
from regard.data.text.tokenizers.bpe import PRINTABLE, Bpe
from regard.data.text.tokenizers.bytes import Bytes
from regard.data.text.tokenizers.characters import Characters
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.data.text.tokenizers.unigram import Unigram
from regard.data.text.tokenizers.vocab_based import VocabTokenizer
from regard.data.text.tokenizers.words import Words
from regard.interop.pretrained_tokenizer import NEVER, renumber
from regard.interop.word_tokenizer import build_decoder, build_normalizer

SILENT = [NAMES[number] for number in (PAD, BOS, EOS)]
"""The special tokens that leave nothing in a text; an unknown token is shown by its name."""
FINAL_SIGMA = r"(?<=\p{L}|\p{L}\p{M})Σ(?!\p{M}?\p{L})"
"""A sigma whose small letter is that of the end of a word; the library lowers each letter by itself."""


def build_tokenizer(tokens: Tokenizer, lowercase: bool = False) -> Any:
    """A tokenizer of the library with the ids of ours, which puts EOS behind a text; or the reason why there is none."""
    if isinstance(tokens, Pretrained):
        if tokens.model is None:
            return "its texts are made of ids"
        return "its texts are put in lower case before its own normal form" if lowercase else renumber(tokens)
    model = _build_model(tokens)
    if model is None:
        return f"tokens that are {tokens.kind} have none"
    if lowercase:
        model.normalizer = _lower(model.normalizer)
    model.add_special_tokens(SILENT)
    return end_by(model, NAMES[EOS], EOS)


def end_by(model: Any, name: str, number: int) -> Any:
    """Add an end behind each text to a tokenizer."""
    from tokenizers.processors import TemplateProcessing

    model.post_processor = TemplateProcessing(single=f"$A {name}", special_tokens=[(name, number)])
    return model


def _build_model(tokens: Any) -> Any:
    """Tokenizer without its special tokens; None where the library has no equal one."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    if isinstance(tokens, Bpe | Bytes):
        model = Tokenizer(models.BPE(*_list_merges(tokens)))
        model.pre_tokenizer, model.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    elif isinstance(tokens, Unigram):
        model = Tokenizer(models.Unigram(_list_pieces(tokens), unk_id=UNK, byte_fallback=True))
        model.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=False)
        model.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    elif isinstance(tokens, Characters):
        model = Tokenizer(models.WordLevel(_number_tokens(tokens), unk_token=NAMES[UNK]))
        model.pre_tokenizer, model.decoder = pre_tokenizers.Split(Regex("(?m)."), "isolated"), decoders.Fuse()
    elif isinstance(tokens, Words):
        model = Tokenizer(models.WordLevel(_number_tokens(tokens), unk_token=NAMES[UNK]))
        if tokens.whole:
            model.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        else:
            model.pre_tokenizer = pre_tokenizers.Split(Regex("[ \n]"), "removed")
            model.normalizer, model.decoder = build_normalizer(), build_decoder()
    else:
        return None
    return model


def _lower(normalizer: Any) -> Any:
    """The normal form of a text in lower case."""
    from tokenizers import Regex, normalizers

    steps = [normalizers.Replace(Regex(FINAL_SIGMA), "ς"), normalizers.Lowercase()]
    return normalizers.Sequence(steps if normalizer is None else [*steps, normalizer])


def _number_tokens(tokens: VocabTokenizer) -> dict[str, int]:
    return {tokens.vocabulary.token(number): number for number in range(len(tokens.vocabulary))}


def _list_pieces(tokens: Unigram) -> list[tuple[str, float]]:
    """Pieces with their log-probabilities; special tokens and bytes stand for no text of their own."""
    model = tokens.model
    scores = [NEVER if model.is_byte(number) else model.get_score(number) for number in range(tokens.size)]
    names = [*NAMES, *map(model.id_to_piece, range(len(NAMES), tokens.size))]
    return list(zip(names, [*[NEVER] * len(NAMES), *scores[len(NAMES) :]], strict=True))


def _list_merges(tokens: Bpe | Bytes) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Tokens in the library's letters for bytes, from our numbers on, and the pairs that they were merged from."""
    vocabulary = {name: number for number, name in enumerate(NAMES)}
    if isinstance(tokens, Bytes):
        others = [byte for byte in range(256) if byte not in PRINTABLE]
        letters = {byte: chr(byte) for byte in PRINTABLE} | {byte: chr(256 + place) for place, byte in enumerate(others)}
        return vocabulary | {letters[byte]: byte + len(NAMES) for byte in range(256)}, []
    model = json.loads(tokens.model.to_str())["model"]
    vocabulary |= {token: number + len(NAMES) for token, number in model["vocab"].items()}
    return vocabulary, [_split_pair(pair) for pair in model["merges"]]


def _split_pair(pair: str | Sequence[str]) -> tuple[str, str]:
    first, second = pair.split(" ") if isinstance(pair, str) else pair
    return first, second
