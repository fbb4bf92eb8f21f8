"""Copying: the target token that each token of a source would copy, words outside the target's vocabulary among them.

A word that no vocabulary lists has a number behind it, V + s for the place s where it first stands in its source. The number
means something for that source alone, and a target that holds the word has it in the place of UNK.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from regard.data.records import Record
from regard.data.special_tokens import EOS, UNK
from regard.data.text.tokenizers import Tokenizer
from regard.data.text.tokenizers.offsets import Span
from regard.data.text.tokenizers.pretokenize import bare
from regard.data.text.tokenizers.vocab_based import VocabTokenizer
from regard.data.text.tokenizers.vocabulary import Vocabulary
from regard.data.text.tokenizers.words import Words


class CopyTable:
    """Target tokens of a source's tokens, by their spelling.

    Words and characters that the target's vocabulary lacks have slots, one for each place. Sub-words need none: they write
    every word, and each is copied as the token of its spelling.
    """

    def __init__(self, source: Tokenizer, target: Tokenizer, counterparts: Sequence[int]):
        self.source, self.target, self.counterparts = source, target, counterparts
        self.size = target.size
        self.slots = isinstance(source, VocabTokenizer) and isinstance(target, VocabTokenizer)

    def extend(self, example: Any, prepare: Callable[[str], str]) -> Any:
        """Example with what its source offers for copying, and with the numbers of copied words in its target."""
        if not self.slots:
            return example._replace(copies=[self.counterparts[token] for token in example.source])
        record: Record = example.record
        words = self.spell(self.source, prepare(record.source))[: len(example.source) - 1]
        copies = self.list_copies(words)
        target = example.target
        if target is not None and UNK in target and record.target is not None:
            numbers = {word: copied for word, copied in zip(words, copies, strict=True) if copied >= self.size}
            spelt = self.spell(self.target, prepare(record.target))
            replaced = [
                numbers.get(word, UNK) if token == UNK else token for token, word in zip(target, spelt, strict=False)
            ]
            target = [*replaced, *target[len(replaced) :]]
        return example._replace(copies=[*copies, EOS], words=tuple(words), target=target)

    def list_copies(self, words: Sequence[str]) -> list[int]:
        """Number of each word: that of the target's vocabulary, else the slot of the first place where it stands."""
        assert isinstance(self.target, VocabTokenizer), "slots are for tokens that a vocabulary lists"
        numbers: dict[str, int] = {}
        for place, word in enumerate(words):
            if word not in numbers:
                known = self.target.vocabulary.number(word)
                numbers[word] = self.size + place if known == UNK else known
        return [numbers[word] for word in words]

    def spell(self, tokenizer: Tokenizer, text: str) -> list[str]:
        """Tokens of a text, as they are compared: of words without the mark of their spacing, unless that is listed."""
        assert isinstance(tokenizer, VocabTokenizer), "slots are for tokens that a vocabulary lists"
        assert isinstance(self.target, VocabTokenizer), "slots are for tokens that a vocabulary lists"
        tokens, listed = tokenizer.tokens(text), self.target.vocabulary
        if not isinstance(tokenizer, Words) or tokenizer.whole:
            return tokens
        return [token if token in listed else bare(token) for token in tokens]


def extend_tokenizer(tokenizer: Tokenizer, words: Sequence[str]) -> Tokenizer:
    """Tokenizer whose vocabulary is followed by the words of a source, by place; only to decode."""
    if not isinstance(tokenizer, Words) and not isinstance(tokenizer, VocabTokenizer):
        return tokenizer
    known: Any = tokenizer
    extended: Tokenizer = replace(known, vocabulary=Vocabulary((*known.vocabulary.tokens, *words)))
    return extended


def bracket(text: str, covered: Sequence[Span], copies: Sequence[tuple[int, int]]) -> str:
    """Text with what copied tokens cover in brackets; tokens that are neighbours in both texts share a pair."""
    stretches, before = list[tuple[int, int]](), (-2, -2)
    for copy in copies:
        if (span := covered[copy[0]]) is None:
            continue
        if stretches and copy == (before[0] + 1, before[1] + 1):
            stretches[-1] = stretches[-1][0], max(stretches[-1][1], span[1])
        else:
            stretches.append(span)
        before = copy
    for start, end in reversed(stretches):
        text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
    return text
