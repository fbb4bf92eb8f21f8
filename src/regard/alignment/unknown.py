"""Unknown word replacement: each unknown token of an output becomes the source word with the largest attention weight."""

from collections.abc import Mapping, Sequence

from jaxtyping import Float
from torch import Tensor

from regard.alignment import words
from regard.alignment.heads import link_weights
from regard.alignment.words import Units, merge_weights
from regard.config import quoted
from regard.data.lines import lines
from regard.data.special_tokens import UNK
from regard.data.table import Record
from regard.data.text.codec import TextCodec
from regard.data.text.tokenizers.offsets import spans
from regard.errors import DataError

KEEP, COPY = "keep", "copy"


def load_translations(unknown: str) -> Mapping[str, str] | None:
    """Translations of source words: None for "keep", empty for "copy", else read from a file of WORD TAB TRANSLATION.

    Of several lines on one word the first counts.
    """
    if unknown in (KEEP, COPY):
        return None if unknown == KEEP else {}
    translations: dict[str, str] = {}
    for line in lines(unknown):
        word, _, other = (part.strip() for part in line.text.partition("\t"))
        if not (word and other) or "\t" in other:
            raise DataError(f"{line.where} needs a word, a tab and its translation, got {quoted(line.text)}")
        translations.setdefault(word, other)
    return translations


def replace_unknown(
    codec: TextCodec,
    record: Record,
    numbers: Sequence[int],
    weights: Float[Tensor, "target source"],
    translations: Mapping[str, str],
) -> str:
    """The text of an output with each unknown token replaced by its source word, or by that word's translation.

    Luong et al. 2015, https://arxiv.org/abs/1410.8206, whose model predicts the position of the word; here it is the one
    with the largest attention weight. A token without any weight stays unknown.
    """
    text = codec.decode(numbers)
    source = copied_units(codec, record)
    links = {target: unit for unit, target in link_weights(merge_weights(weights, source, _single_tokens(len(weights))))}
    for position, span in reversed(list(enumerate(spans(codec.target, numbers, text)))):
        if numbers[position] == UNK and span is not None and position in links:
            word = source.texts[links[position]]
            text = text[: span[0]] + translations.get(word, word) + text[span[1] :]
    return text


def copied_units(codec: TextCodec, record: Record) -> Units:
    """The units of a source that can be copied: tokens that are words or characters, else the words made of tokens."""
    return words.source_units(codec, record, tokens=codec.source.kind == "words")


def _single_tokens(tokens: int) -> Units:
    """Every token as a unit, EOS included."""
    import torch

    return Units(("",) * tokens, torch.eye(tokens, dtype=torch.bool))
