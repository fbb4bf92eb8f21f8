"""Streaming tokenization of a source: yields tokens that no later text can change."""

import re
from collections.abc import Iterable, Iterator

from regard.data.special_tokens import EOS
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers import KINDS

INDEPENDENT_KINDS = ("characters", "bytes")
"""Tokenizers whose tokens do not depend on their neighbours."""
BEFORE_SPACE = re.compile(r"(?s).*\S(?= )")
"""Text up to the end of the last word that a space follows."""


def find_obstacle(codec: TextCodec) -> str | None:
    """Reason why a tokenizer needs the whole text, or None if it can stream."""
    if codec.source.kind in KINDS:
        return None
    return f"its tokens are {codec.source.kind}, and what follows may change any of them (those of this package wait a word)"


def stream_token_ids(codec: TextCodec, pieces: Iterable[str]) -> Iterator[list[int]]:
    """Yield the token ids of a source in a few lists, each as soon as it is final; the last one ends with EOS.

    Together they are what `codec.encode` returns for the whole text. A source that is too long is cut, and the rest is not
    consumed.
    """
    text, count, room = "", 0, codec.max_source_length - 1
    for piece in pieces:
        text += piece
        numbers = encode_stable_tokens(codec, text)[:room]
        if len(numbers) > count:
            yield numbers[count:]
            count = len(numbers)
        if count == room:
            break
    yield [*codec.source.encode(codec.prepare(text))[count:room], EOS]


def encode_stable_tokens(codec: TextCodec, text: str) -> list[int]:
    """Token ids at the beginning of a text that no later text changes.

    Characters and bytes are final at once. The last word may go on, so it waits for its end. BPE and unigram wait for a
    space: they never merge across one, and the space belongs to the word after it. So does lower-casing, since a capital
    sigma becomes another letter at the end of a word than inside.
    """
    if not codec.lowercase and codec.source.kind in INDEPENDENT_KINDS:
        return codec.source.encode(text)
    if not codec.lowercase and codec.source.kind == "words":
        numbers = codec.source.encode(text)
        return numbers if text[-1:].isspace() else numbers[:-1]
    words = BEFORE_SPACE.match(text)
    return codec.source.encode(codec.prepare(words.group())) if words else []
