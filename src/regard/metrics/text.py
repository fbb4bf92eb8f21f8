"""Text metrics (BLEU, chrF, exact match, error rates, perplexity) with bootstrap intervals, and by source length.

Every metric here is a function of sums over sentences (n-grams matched, edits, ...). So each returns a row of numbers
per sentence and a score of their sum, and bootstrap, length buckets and corpora all come from adding rows.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
References = Sequence[str] | Sequence[Sequence[str]]
"""One reference for each output, or several."""

LOWER_IS_BETTER = {"loss", "perplexity", "word_perplexity", "wer", "cer", "per", "ser", "text_rank", "picture_rank"}
"""Metrics for which lower is better; for all others higher is."""
BLOCK = 1 << 22
"""Maximum number of resampled counts that the bootstrap holds at a time."""


@runtime_checkable
class Metric(Protocol):
    """Metric protocol: statistics per sentence, a score of their sum, and a signature that makes it comparable."""

    def rows(self, outputs: Sequence[str], references: References) -> Rows: ...

    def score(self, total: Rows) -> float: ...

    def signature(self, answers: int = 1) -> str: ...


class Measurement(NamedTuple):
    """Score with its 95 % confidence interval, and its signature."""

    value: float
    low: float
    high: float
    signature: str


class Bucket(NamedTuple):
    """Score over the sources of a range of lengths: first <= length <= last."""

    first: int
    last: int | None
    sentences: int
    value: float


Metrics = dict[str, Measurement | list[Bucket]]
"""Metrics of a task by name: scores with their intervals, and scores by length."""


def measure(metric: Metric, outputs: Sequence[str], references: References, seed: int = 0) -> Measurement:
    """Score of outputs, with its interval."""
    rows = compute_rows(metric, outputs, references)
    low, high = bootstrap(rows, metric.score, seed=seed)
    counts = {len(answers) for answers in list_references(references)}
    answers = counts.pop() if len(counts) == 1 else -1  # sacreBLEU's code for a number that varies
    return Measurement(metric.score(rows.sum(0)), low, high, metric.signature(answers))


def bootstrap(
    rows: Rows, score: Callable[[Rows], float], resamples: int = 1000, seed: int = 0, level: float = 0.95
) -> tuple[float, float]:
    """Bootstrap interval of a score, resampling sentences with replacement.

    Koehn 2004, section 3, https://aclanthology.org/W04-3250; percentiles of `resamples` samples from a seeded generator.
    """
    sentences = len(rows)
    generator = np.random.default_rng(seed)
    scores: list[float] = []
    while len(scores) < resamples:
        size = min(resamples - len(scores), max(1, BLOCK // sentences))
        times = generator.multinomial(sentences, np.full(sentences, 1 / sentences), size=size)
        scores += [score(total) for total in times.astype(np.float64) @ rows]
    edge = 100 * (1 - level) / 2
    low, high = np.percentile(scores, [edge, 100 - edge])
    return float(low), float(high)


def score_by_length(
    metric: Metric,
    outputs: Sequence[str],
    references: References,
    lengths: Sequence[int],
    edges: Sequence[int] = (10, 20, 30, 40, 50, 60),
) -> list[Bucket]:
    """Score by source length, in buckets up to each edge and beyond the last; empty buckets are left out.

    Bahdanau et al. 2015, figure 2: the curve that shows why attention exists. https://arxiv.org/abs/1409.0473
    """
    rows = compute_rows(metric, outputs, references)
    if len(lengths) != len(rows):
        raise ValueError(
            f"score_by_length needs a length for each output, got {len(lengths)} lengths and {len(rows)} outputs"
        )
    buckets = []
    for first, last in zip((0, *(edge + 1 for edge in edges)), (*edges, None), strict=True):
        rows_of_bucket = [row for row, length in enumerate(lengths) if first <= length and (last is None or length <= last)]
        if rows_of_bucket:
            buckets.append(Bucket(first, last, len(rows_of_bucket), metric.score(rows[rows_of_bucket].sum(0))))
    return buckets


def compute_rows(metric: Metric, outputs: Sequence[str], references: References) -> Rows:
    """Rows of a metric, after checking that outputs and references belong together."""
    if not outputs or len(outputs) != len(references):
        raise ValueError(
            f"{type(metric).__name__} needs one reference for each of one or more outputs, "
            f"got {len(references)} references and {len(outputs)} outputs"
        )
    return metric.rows(outputs, references)


@dataclass(frozen=True)
class Bleu:
    """BLEU by sacreBLEU: n-gram precision up to four tokens, with a brevity penalty.

    Papineni et al. 2002, https://aclanthology.org/P02-1040; Post 2018, https://aclanthology.org/W18-6319
    `tokenize` is none for text that is already tokenized, 13a for most languages, zh for Chinese.
    """

    tokenize: Literal["none", "13a", "zh", "char", "intl"] = "13a"
    lowercase: bool = False

    def rows(self, outputs: Sequence[str], references: References) -> Rows:
        """Length of output and reference, n-grams matched, n-grams in the output."""
        return _statistics(self._make(), outputs, references)

    def score(self, total: Rows) -> float:
        """Score from 0 to 100."""
        return float(self._make()._compute_score_from_stats([int(count) for count in total]).score)

    def signature(self, answers: int = 1) -> str:
        """Signature of sacreBLEU."""
        return _signature(self._make(), answers)

    def _make(self) -> Any:
        from sacrebleu.metrics.bleu import BLEU

        return BLEU(tokenize=self.tokenize, lowercase=self.lowercase, force=True)


@dataclass(frozen=True)
class Chrf:
    """Character n-gram F-score (chrF) by sacreBLEU: n-grams of up to six characters, recall counted twice.

    Popović 2015, https://aclanthology.org/W15-3049; chrF++ with words=2
    """

    words: int = 0

    def rows(self, outputs: Sequence[str], references: References) -> Rows:
        """N-grams in the output, in the reference, and matched, for each n."""
        return _statistics(self._make(), outputs, references)

    def score(self, total: Rows) -> float:
        """Score from 0 to 100."""
        return float(self._make()._compute_score_from_stats([int(count) for count in total]).score)

    def signature(self, answers: int = 1) -> str:
        """Signature of sacreBLEU."""
        return _signature(self._make(), answers)

    def _make(self) -> Any:
        from sacrebleu.metrics.chrf import CHRF

        return CHRF(word_order=self.words)


@dataclass(frozen=True)
class ExactMatch:
    """Exact match: share of outputs equal to a reference, letter for letter; spaces at the ends do not count."""

    def rows(self, outputs: Sequence[str], references: References) -> Rows:
        """Hit, and count of sentences."""
        pairs = zip(outputs, list_references(references), strict=True)
        return np.array(
            [[output.strip() in {answer.strip() for answer in answers}, 1] for output, answers in pairs], dtype=np.float64
        )

    def score(self, total: Rows) -> float:
        """Score from 0 to 100."""
        return float(100 * total[0] / total[1])

    def signature(self, answers: int = 1) -> str:
        """Signature of exact match."""
        return "exact match, ends stripped"


@dataclass(frozen=True)
class SentenceErrorRate:
    """Sentence error rate: share of outputs with an error in any of their words, spaces aside."""

    def rows(self, outputs: Sequence[str], references: References) -> Rows:
        """Error, and count of sentences."""
        pairs = zip(outputs, list_references(references), strict=True)
        wrong = [[output.split() not in [answer.split() for answer in answers], 1] for output, answers in pairs]
        return np.array(wrong, dtype=np.float64)

    def score(self, total: Rows) -> float:
        """Score from 0 to 100."""
        return float(100 * total[0] / total[1])

    def signature(self, answers: int = 1) -> str:
        """Signature of the sentence error rate."""
        return "sentences with an error, in per cent"


@dataclass(frozen=True)
class ErrorRate:
    """Error rate: edits (substitutions, deletions, insertions) per word, character or phoneme of the reference.

        100 (S + D + I) / N          may exceed 100

    Phonemes are separated by spaces, as words are. Of several references the one with the fewest edits counts.
    """

    unit: Literal["words", "characters", "phonemes"] = "words"

    def rows(self, outputs: Sequence[str], references: References) -> Rows:
        """Edits, and units of the reference."""
        import jiwer

        process = jiwer.process_characters if self.unit == "characters" else jiwer.process_words
        all_references = list_references(references)
        pairs = [(answer, output) for output, answers in zip(outputs, all_references, strict=True) for answer in answers]
        alignment = process([reference for reference, _ in pairs], [output for _, output in pairs])
        edits = (sum(map(_edits, chunks)) for chunks in alignment.alignments)
        counts = iter(list(zip(edits, map(len, alignment.references), strict=True)))
        best = [min((next(counts) for _ in answers), key=lambda pair: (pair[0], -pair[1])) for answers in all_references]
        return np.array(best, dtype=np.float64)

    def score(self, total: Rows) -> float:
        """Error rate in per cent; without any reference unit, 0 for empty outputs and 100 otherwise."""
        edits, units = total
        return float(100 * edits / units) if units else 100.0 * bool(edits)

    def signature(self, answers: int = 1) -> str:
        """Signature: the unit."""
        return f"edits per {self.unit.removesuffix('s')} of the reference, jiwer"


def token_perplexity(nll: float, tokens: int) -> float:
    """Perplexity exp(nll / tokens)."""
    try:
        return math.exp(nll / max(tokens, 1))
    except OverflowError:
        return math.inf


def perplexity(nll: Sequence[float], tokens: Sequence[int], seed: int = 0, unit: str = "token") -> Measurement:
    """Perplexity exp(Σ nll / Σ tokens) over sentences, with its interval; lower is better. Words may be counted as well."""
    rows = np.array([nll, tokens], dtype=np.float64).T

    def score(total: Rows) -> float:
        return token_perplexity(float(total[0]), int(total[1]))

    return Measurement(
        score(rows.sum(0)), *bootstrap(rows, score, seed=seed), f"exp of nats per {unit}, end of sentence included"
    )


def list_references(references: References) -> list[list[str]]:
    """References of each output, as a list even where there is one."""
    return [[reference] if isinstance(reference, str) else list(reference) for reference in references]


def _statistics(metric: Any, outputs: Sequence[str], references: References) -> Rows:
    all_references = list_references(references)
    max_references = max(map(len, all_references))
    streams = [
        [answers[place] if place < len(answers) else None for answers in all_references] for place in range(max_references)
    ]
    return np.array(metric._extract_corpus_statistics(list(outputs), streams), dtype=np.float64)


def _signature(metric: Any, answers: int) -> str:
    metric.num_refs = answers
    return str(metric.get_signature())


def _edits(chunk: Any) -> int:
    if chunk.type == "equal":
        return 0
    return int(max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx))
