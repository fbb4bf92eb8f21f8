"""Unknown words: what a model could not write is taken from the source word that it looked at."""

from collections.abc import Mapping, Sequence

from jaxtyping import Float
from torch import Tensor

from regard.alignment import words as units
from regard.alignment.heads import linked
from regard.alignment.words import Units, merge
from regard.config import quoted
from regard.data.lines import lines
from regard.data.special_tokens import UNK
from regard.data.table import Record
from regard.data.text.codec import TextCodec
from regard.data.tokenizers.offsets import spans
from regard.errors import DataError

KEEP, COPY = "keep", "copy"


def dictionary(unknown: str) -> Mapping[str, str] | None:
    """What unknown words become: None for "keep", the words themselves for "copy", else by a file of WORD TAB TRANSLATION.

    Of several lines on one word the first counts.
    """
    if unknown in (KEEP, COPY):
        return None if unknown == KEEP else {}
    found: dict[str, str] = {}
    for line in lines(unknown):
        word, _, other = (part.strip() for part in line.text.partition("\t"))
        if not (word and other) or "\t" in other:
            raise DataError(f"{line.where} needs a word, a tab and its translation, got {quoted(line.text)}")
        found.setdefault(word, other)
    return found


def replaced(
    codec: TextCodec,
    record: Record,
    numbers: Sequence[int],
    weights: Float[Tensor, "target source"],
    translations: Mapping[str, str],
) -> str:
    """The text of an output in which each unknown token is the source word it looked at most, or that word's translation.

    Luong et al. 2015, https://arxiv.org/abs/1410.8206, whose model points at the word; here the attention does.
    A token that looked at nothing stays unknown.
    """
    text = codec.decode(numbers)
    origin = words(codec, record)
    looked = {place: source for source, place in linked(merge(weights, origin, _each(len(weights))))}
    for place, span in reversed(list(enumerate(spans(codec.target, numbers, text)))):
        if numbers[place] == UNK and span is not None and place in looked:
            word = origin.texts[looked[place]]
            text = text[: span[0]] + translations.get(word, word) + text[span[1] :]
    return text


def words(codec: TextCodec, record: Record) -> Units:
    """What may be copied: tokens that are words or characters, and the words where tokens are parts of these."""
    return units.source(codec, record, tokens=codec.source.kind == "words")


def _each(tokens: int) -> Units:
    """Every token by itself, the end included."""
    import torch

    return Units(("",) * tokens, torch.eye(tokens, dtype=torch.bool))
