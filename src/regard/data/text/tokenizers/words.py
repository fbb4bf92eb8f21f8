"""Words."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar

from regard.data.text.tokenizers import pretokenize, settings
from regard.data.text.tokenizers.token_offsets import Piece, clean
from regard.data.text.tokenizers.vocab_based import SILENT, VocabTokenizer
from regard.data.text.tokenizers.vocabulary import Vocabulary


@dataclass(frozen=True)
class Words(VocabTokenizer):
    """Words, as the text itself separates them.

    `whole`: the text came tokenized; a word is what stands between spaces, and one space joins them again. `train` decides
    by the punctuation: in such a text it stands alone (spacing.tokenized has the rule).

    Otherwise words are runs of letters and digits, and each symbol and each Chinese character is a token. A token carries a
    mark where its spacing is not the usual one (￭ joined, ▁ apart), so that the text comes back as it was:

        Tom's cat.  ->  Tom ￭' ￭s cat .             汤姆追逐杰瑞。  ->  汤 姆 追 逐 杰 瑞 。
    """

    vocabulary: Vocabulary
    whole: bool = False
    kind: ClassVar[str] = "words"

    @classmethod
    def train(cls, texts: Sequence[str], size: int, min_frequency: int = 1) -> "Words":
        """The most frequent words of the texts."""
        raw = cls(Vocabulary(()), pretokenize.tokenized(texts))
        counts = Counter(token for text in texts for token in raw.tokens(text))
        return cls(Vocabulary.count(counts, size, min_frequency), raw.whole)

    def tokens(self, text: str) -> list[str]:
        return clean(text).split() if self.whole else pretokenize.mark(clean(text))

    def pieces(self, text: str) -> list[Piece]:
        return pretokenize.chunks(clean(text)) if self.whole else pretokenize.split(clean(text))

    def decode(self, numbers: Iterable[int]) -> str:
        tokens = [self.vocabulary.token(number) for number in numbers if number not in SILENT]
        return " ".join(tokens) if self.whole else pretokenize.join(tokens)

    def shown(self, numbers: Iterable[int]) -> list[str]:
        tokens = [self.vocabulary.token(number) for number in numbers]
        return tokens if self.whole else [pretokenize.bare(token) for token in tokens]

    def save(self, directory: Path, name: str) -> list[Path]:
        return self.write(directory, name, self.kind, whole=self.whole)

    @classmethod
    def load(cls, directory: Traversable, name: str) -> "Words":
        """Read what `save` wrote."""
        return cls(cls.read(directory, name), settings.read(directory, name).get("whole") is True)
