"""ROUGE: overlap of n-grams, and the longest common subsequence, of an output and its references.

    P = matches / n-grams of the output,   R = matches / n-grams of the reference,   F = 2 P R / (P + R)

Lin 2004, https://aclanthology.org/W04-1013. The score is the mean F of all outputs; of several references the one with the
largest F counts. Texts are in lower case, and words are runs of letters and digits, without stemming: for texts in ASCII
the numbers are those of the package rouge-score with its defaults. Unlike there, letters outside ASCII count, and each
Chinese character is a word.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from regard.metrics.text import References, Rows, list_references

WORD = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")


@dataclass(frozen=True)
class Rouge:
    """ROUGE-1, ROUGE-2 and so on for an `order` of 1 or more, and ROUGE-L for 0, from 0 to 100."""

    order: int = 1

    def rows(self, outputs: Sequence[str], references: References) -> Rows:
        """F of each output against its best reference, and 1."""
        pairs = zip(map(split_words, outputs), list_references(references), strict=True)
        return np.array(
            [[max(self.compare(words, split_words(answer)) for answer in answers), 1] for words, answers in pairs]
        )

    def compare(self, output: Sequence[str], reference: Sequence[str]) -> float:
        """F of an output and one reference, from 0 to 1."""
        if self.order == 0:
            return harmonic_mean(common_length(output, reference), len(output), len(reference))
        mine, theirs = count_ngrams(output, self.order), count_ngrams(reference, self.order)
        return harmonic_mean((mine & theirs).total(), mine.total(), theirs.total())

    def score(self, total: Rows) -> float:
        """Mean F, from 0 to 100."""
        return float(100 * total[0] / total[1])

    def signature(self, answers: int = 1) -> str:
        """Signature: the variant, and how words were taken."""
        more = "" if answers == 1 else ", best of the references"
        return f"ROUGE-{self.order or 'L'} F1, lower case, no stemming{more}"


def split_words(text: str) -> list[str]:
    """Words of a text in lower case: runs of letters and digits; each Chinese character is one."""
    return WORD.findall(text.lower())


def count_ngrams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """Number of each n-gram."""
    return Counter(tuple(words[first : first + order]) for first in range(len(words) - order + 1))


def common_length(left: Sequence[str], right: Iterable[str]) -> int:
    """Length of the longest common subsequence, by a table of two rows."""
    before = [0] * (len(left) + 1)
    for word in right:
        row = [0]
        for place, other in enumerate(left):
            row.append(before[place] + 1 if word == other else max(row[place], before[place + 1]))
        before = row
    return before[-1]


def harmonic_mean(matches: int, output: int, reference: int) -> float:
    """F of matches among so many of the output and so many of the reference; 0 where there are none."""
    return 2 * matches / (output + reference) if matches else 0.0
