"""Tokenizer: our tokens as a file of the tokenizers library, wherever it gives the same ids."""

import json
from typing import Any

from regard.data.image.codec import ImageTextCodec
from regard.data.special_tokens import EOS, NAMES, UNK
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers.bpe import PRINTABLE, Bpe
from regard.data.text.tokenizers.bytes import Bytes
from regard.data.text.tokenizers.characters import Characters
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.data.text.tokenizers.vocab_based import Listed
from regard.data.text.tokenizers.words import Words

CLASS = "PreTrainedTokenizerFast"
ROLES = ("pad_token", "bos_token", "eos_token", "unk_token")


def tokenizer(codec: TextCodec | ImageTextCodec) -> dict[str, bytes] | str:
    """tokenizer.json and tokenizer_config.json, or the reason why there are none: `regard` encodes then."""
    if isinstance(codec, ImageTextCodec):
        tokens, longest = codec.target, codec.max_target_length
    else:
        tokens, longest = codec.source, codec.max_source_length
    if codec.lowercase:
        return "texts are put in lower case first, which the tokenizers library does letter by letter"
    if isinstance(tokens, Pretrained):
        if tokens.model is None:
            return "its texts are made of ids"
        roles = [tokens.model.id_to_token(tokens.ids[number]) for number in range(len(NAMES))]
        return _files(tokens.model.to_str(), roles, longest)
    made = _model(tokens)
    if made is None:
        return f"tokens that are {tokens.kind} have none"
    return _files(_sealed(made).to_str(), list(NAMES), longest)


def _model(tokens: Any) -> Any:
    """The same cut of a text, not yet with what stands around it; None where the library has none."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    if isinstance(tokens, Bpe | Bytes):
        made = Tokenizer(models.BPE(*_merges(tokens)))
        made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        return made
    if isinstance(tokens, Characters) or (isinstance(tokens, Words) and tokens.whole):
        made = Tokenizer(models.WordLevel(_listed(tokens), unk_token=NAMES[UNK]))
        if isinstance(tokens, Words):
            made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        else:
            made.pre_tokenizer, made.decoder = pre_tokenizers.Split(Regex("(?m)."), "isolated"), decoders.Fuse()
        return made
    return None


def _listed(tokens: Listed) -> dict[str, int]:
    return {tokens.vocabulary.token(number): number for number in range(len(tokens.vocabulary))}


def _merges(tokens: Bpe | Bytes) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Tokens in the library's letters for bytes, from our numbers on, and the pairs that they were merged from."""
    vocabulary = {name: number for number, name in enumerate(NAMES)}
    if isinstance(tokens, Bytes):
        others = [byte for byte in range(256) if byte not in PRINTABLE]
        letters = {byte: chr(byte) for byte in PRINTABLE} | {byte: chr(256 + place) for place, byte in enumerate(others)}
        return vocabulary | {letters[byte]: byte + len(NAMES) for byte in range(256)}, []
    model = json.loads(tokens.model.to_str())["model"]
    vocabulary |= {token: number + len(NAMES) for token, number in model["vocab"].items()}
    return vocabulary, [tuple(pair) if isinstance(pair, list) else tuple(pair.split(" ")) for pair in model["merges"]]


def _sealed(made: Any) -> Any:
    """With the end behind a source, and the special four known as such."""
    from tokenizers.processors import TemplateProcessing

    made.add_special_tokens(list(NAMES))
    made.post_processor = TemplateProcessing(single=f"$A {NAMES[EOS]}", special_tokens=[(NAMES[EOS], EOS)])
    return made


def _files(text: str, roles: list[str | None], longest: int) -> dict[str, bytes]:
    table: dict[str, Any] = {"tokenizer_class": CLASS, "model_max_length": longest, "clean_up_tokenization_spaces": False}
    table |= {role: token for role, token in zip(ROLES, roles, strict=True) if token is not None}
    return {"tokenizer.json": text.encode(), "tokenizer_config.json": (json.dumps(table, indent=2) + "\n").encode()}
