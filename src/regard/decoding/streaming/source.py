"""The tokens of a source that still arrives: those that no later text can change."""

import re
from collections.abc import Iterable, Iterator

from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers import KINDS
from regard.data.text.vocabulary import EOS

ALONE = ("characters", "bytes")
"""Tokens that no neighbour changes."""
BEFORE_SPACE = re.compile(r"(?s).*\S(?= )")
"""A text up to the end of the last word that a space follows."""


def covers(codec: TextCodec) -> str | None:
    """None where it is known which tokens of a beginning stay, else the reason that the whole text is needed."""
    if codec.source.kind in KINDS:
        return None
    return f"its tokens are {codec.source.kind}, and what follows may change any of them (those of this package wait a word)"


def arrived(codec: TextCodec, pieces: Iterable[str]) -> Iterator[list[int]]:
    """The numbers of a source in a few lists, each as soon as it is settled; the last one ends with EOS.

    Together they are what `codec.encode` makes of the whole text. A source that is too long is cut, and then no more of it
    is asked for.
    """
    text, given, room = "", 0, codec.longest_source - 1
    for piece in pieces:
        text += piece
        numbers = settled(codec, text)[:room]
        if len(numbers) > given:
            yield numbers[given:]
            given = len(numbers)
        if given == room:
            break
    yield [*codec.source.encode(codec.prepare(text))[given:room], EOS]


def settled(codec: TextCodec, text: str) -> list[int]:
    """The numbers at the beginning of a text that stay what they are, whatever follows it.

    Characters and bytes stand for themselves. The last word may go on, so it waits for whatever ends it. Bpe and unigram
    wait for a space: they never join what stands on both sides of one, and the space belongs to the word after it. So does
    lower case, since a capital sigma has another one at the end of a word than inside.
    """
    if not codec.lowercase and codec.source.kind in ALONE:
        return codec.source.encode(text)
    if not codec.lowercase and codec.source.kind == "words":
        numbers = codec.source.encode(text)
        return numbers if text[-1:].isspace() else numbers[:-1]
    found = BEFORE_SPACE.match(text)
    return codec.source.encode(codec.prepare(found.group())) if found else []
