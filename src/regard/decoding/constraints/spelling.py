"""Spelling of tokens in letters, so that a phrase is matched however a target was segmented.

bytes, bpe, unigram    a letter is a byte: "cat" stands in [" c", "at"] and in [" cat"]
words, characters      a letter is what the token writes: "cat" is the same joined to a quotation mark or not
pretrained             a letter is a byte, as the tokenizer's decoder joins them; without a tokenizer, a token id
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from regard.data.special_tokens import NAMES, UNK
from regard.data.text.tokenizers import Tokenizer
from regard.data.text.tokenizers.byte_level import ByteLevelTokenizer
from regard.data.text.tokenizers.pretokenize import bare
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.data.text.tokenizers.token_offsets import clean
from regard.data.text.tokenizers.vocab_based import VocabTokenizer
from regard.data.text.tokenizers.words import Words

NO_LETTER = -1
"""Padding for tokens with fewer letters than the longest."""

Letters = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Spelling:
    """Letters of every token as numbers, and the size of the alphabet."""

    letters: Int[Tensor, "vocabulary longest"]
    size: int
    tokenizer: Tokenizer | None = None

    @classmethod
    def numbers(cls, vocabulary: int) -> "Spelling":
        """Spelling with one letter per token: phrases are token ids."""
        return cls(torch.arange(vocabulary)[:, None], vocabulary)

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Spelling":
        """Spelling of a tokenizer's tokens; each special token is a letter that no text contains."""
        if isinstance(tokenizer, Pretrained) and tokenizer.model is None:
            return cls(torch.arange(tokenizer.size)[:, None], tokenizer.size, tokenizer)
        if isinstance(tokenizer, ByteLevelTokenizer | Pretrained):
            texts = tokenizer.table if isinstance(tokenizer, ByteLevelTokenizer) else tokenizer.continuations
            spelt = [[256 + number] for number in range(len(NAMES))] + [list(text) for text in texts[len(NAMES) :]]
            return cls(_pad_letters(spelt), 256 + len(NAMES), tokenizer)
        index = _index_letters(tokenizer)
        return cls(torch.tensor([[index[text]] for text in _list_token_texts(tokenizer)]), len(index), tokenizer)

    def is_silent(self, token: int) -> bool:
        """Return True for a token that writes nothing, such as the name of a language in a tokenizer from elsewhere."""
        return bool((self.letters[token] == NO_LETTER).all())

    def spell(self, text: str) -> Letters | None:
        """Spell a text in letters; None where no token writes one of them."""
        if self.tokenizer is None:
            raise ValueError("a spelling of numbers has no texts; give the phrase as token numbers")
        if isinstance(self.tokenizer, ByteLevelTokenizer):
            return tuple(clean(text).encode())
        if isinstance(self.tokenizer, Pretrained):
            if self.tokenizer.model is not None:
                return tuple(self.tokenizer.normalise(text).encode())
            numbers = self.tokenizer.encode(text)
            return None if UNK in numbers else tuple(numbers)
        assert isinstance(self.tokenizer, VocabTokenizer), "tokens are bytes, listed or pretrained"
        index, words = _index_letters(self.tokenizer), isinstance(self.tokenizer, Words) and not self.tokenizer.whole
        tokens = [index.get(bare(token) if words else token) for token in self.tokenizer.tokens(text)]
        return None if None in tokens else tuple(token for token in tokens if token is not None)


def _list_token_texts(tokenizer: Tokenizer) -> list[Hashable]:
    """Text of each token id of a vocabulary-based tokenizer; special tokens by their id."""
    assert isinstance(tokenizer, VocabTokenizer), "tokens are bytes, listed or pretrained"
    tokens = tokenizer.vocabulary.tokens
    words = isinstance(tokenizer, Words) and not tokenizer.whole
    return [*range(len(NAMES)), *(bare(token) if words else token for token in tokens)]


def _index_letters(tokenizer: Tokenizer) -> dict[Hashable, int]:
    return {written: number for number, written in enumerate(dict.fromkeys(_list_token_texts(tokenizer)))}


def _pad_letters(spelt: Sequence[Sequence[int]]) -> Tensor:
    longest = max(map(len, spelt))
    return torch.tensor([[*letters, *[NO_LETTER] * (longest - len(letters))] for letters in spelt])
