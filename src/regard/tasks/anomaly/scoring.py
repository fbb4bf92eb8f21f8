"""Scores of the steps of a series, from its windows: the same for a whole series and for one that arrives row by row.

    rows -> windows that end every `stride` steps -> scores of their steps -> aggregation -> moving average, likelihood, ...

The state is the last window of rows and the sums of the steps that later windows still cover, whatever the length of the
series. The first window ends at step `window`; until then nothing is known. What is left at the end of a series is in a last
window that ends there.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.series.batch import SeriesSource
from regard.data.series.calendar import DAY, Frequency, format_times
from regard.data.series.windows import EncodedSeries
from regard.tasks.anomaly.config import AnomalyModel

Scores = NDArray[np.float64]
SMALLEST_DEVIATION = 1e-6
FAR = 20.0
"""Deviations beyond which a tail probability is computed by its logarithm alone."""
BLOCK = 4096
"""Rows that are taken into windows at a time."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Steps of a series as numbers."""

    data: NDArray[np.float32]
    observed: NDArray[np.bool_]
    past: NDArray[np.float32]
    known: NDArray[np.float32]

    @classmethod
    def of(cls, series: EncodedSeries) -> "Rows":
        """All steps of a series."""
        return cls(series.data, series.observed, series.past, series.known[: len(series.data)])

    def __len__(self) -> int:
        return len(self.data)

    @property
    def parts(self) -> tuple[NDArray[Any], ...]:
        """Values, mask and covariates."""
        return self.data, self.observed, self.past, self.known

    def cut(self, first: int, last: int) -> "Rows":
        """Steps from one up to another."""
        return Rows(*(part[first:last] for part in self.parts))

    def join(self, other: "Rows") -> "Rows":
        """These steps and those of another."""
        return Rows(*(np.concatenate(pair) for pair in zip(self.parts, other.parts, strict=True)))


def collate(windows: list[Rows], length: int) -> SeriesSource:
    """Windows as one source; a window that is shorter is padded on the left, where the series has not begun."""
    padded: list[Any] = [_pad(window, length) for window in windows]
    data, observed, past, known, keep = (torch.from_numpy(np.stack(parts)) for parts in zip(*padded, strict=True))
    count, targets = len(windows), data.shape[2]
    nothing = torch.zeros(count, targets)
    return SeriesSource(data, keep, observed, past, known, torch.zeros(count, 0, dtype=torch.int64), nothing, nothing + 1)


def _pad(rows: Rows, length: int) -> tuple[NDArray[Any], ...]:
    missing = length - len(rows)
    parts = [np.pad(part, ((missing, 0), (0, 0))) if missing else part for part in rows.parts]
    return *parts, np.arange(length) >= missing


def format_steps(times: NDArray[Any], frequency: Frequency) -> list[str]:
    """Text of the time of each step, which depends on no other one: with a time of day where a day has several steps."""
    if frequency.unit == "seconds" and frequency.count % DAY:
        return [str(moment).replace("T", " ") for moment in times.astype("datetime64[s]")]
    return [text for time in times for text in format_times(np.array([time]))]


class Scorer:
    """Scores of steps as their rows arrive."""

    def __init__(
        self,
        score: Callable[[SeriesSource], Tensor],
        *,
        window: int,
        stride: int,
        mean: bool = True,
        device: torch.device | str = "cpu",
        batch_size: int = 256,
    ):
        self.score, self.window, self.mean = score, window, mean
        self.stride = min(stride, window)
        self.device, self.batch_size = device, batch_size
        self.rows: Rows | None = None
        self.count = self.final = self.last_end = 0
        self.next_end = window
        self.sums, self.covered = np.zeros(0), np.zeros(0)

    def push(self, rows: Rows) -> Scores:
        """Scores of the steps that no later row can change, in their order."""
        parts = [self._push(rows.cut(first, first + BLOCK)) for first in range(0, len(rows), BLOCK)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def finish(self) -> Scores:
        """Scores of the steps that are left at the end of the series."""
        if self.rows is not None and self.last_end < self.count:
            self._take([self.count])
        return self._release(self.count)

    def _push(self, rows: Rows) -> Scores:
        self.rows = rows if self.rows is None else self.rows.join(rows)
        self.count += len(rows)
        self.sums = np.concatenate((self.sums, np.zeros(len(rows))))
        self.covered = np.concatenate((self.covered, np.zeros(len(rows))))
        ends = list(range(self.next_end, self.count + 1, self.stride))
        self._take(ends)
        if ends:
            self.next_end = ends[-1] + self.stride
        self.rows = self.rows.cut(max(0, len(self.rows) - self.window), len(self.rows))
        final = self.next_end - self.window if self.mean else self.last_end
        return self._release(max(self.final, min(final, self.count)))

    def _take(self, ends: list[int]) -> None:
        """Score windows by the step after their last one, and add up the scores of their steps."""
        assert self.rows is not None
        first = self.count - len(self.rows)
        for start in range(0, len(ends), self.batch_size):
            part = ends[start : start + self.batch_size]
            source = collate([self.rows.cut(max(0, end - self.window - first), end - first) for end in part], self.window)
            with torch.no_grad():
                scores = self.score(source.to(self.device)).double().cpu().numpy()
            for end, row in zip(part, scores, strict=True):
                begin = max(end - self.window, 0) if self.mean else self.last_end
                begin = max(begin, self.final)
                self.sums[begin - self.final : end - self.final] += row[len(row) - (end - begin) :]
                self.covered[begin - self.final : end - self.final] += 1
                self.last_end = end

    def _release(self, final: int) -> Scores:
        count = final - self.final
        scores: Scores = self.sums[:count] / np.maximum(self.covered[:count], 1)
        self.sums, self.covered, self.final = self.sums[count:], self.covered[count:], final
        return scores


class Postprocess:
    """Scores after the detector, step by step, from those before: moving average, tail probability, refractory period."""

    def __init__(self, settings: AnomalyModel):
        self.smooth = deque[float](maxlen=settings.smooth)
        self.history = Moments(settings.likelihood) if settings.likelihood else None
        self.recent = deque[float](maxlen=settings.refractory) if settings.refractory else None

    def push(self, scores: Scores) -> Scores:
        """Scores of the same steps."""
        return np.array([self._step(float(score)) for score in scores], np.float64)

    def _step(self, score: float) -> float:
        self.smooth.append(score)
        score = sum(self.smooth) / len(self.smooth)
        if self.history is not None:
            self.history.push(score)
            score = tail_log_probability((score - self.history.mean) / self.history.deviation)
        if self.recent is not None:
            highest = max(self.recent, default=-math.inf)
            self.recent.append(score)
            score = score if score > highest else 0.0
        return score


class Moments:
    """Mean and deviation of the last numbers."""

    def __init__(self, count: int):
        self.numbers = deque[float](maxlen=count)
        self.sum = self.squares = 0.0

    def push(self, number: float) -> None:
        """Add a number; the oldest one leaves."""
        if len(self.numbers) == self.numbers.maxlen:
            oldest = self.numbers[0]
            self.sum, self.squares = self.sum - oldest, self.squares - oldest**2
        self.numbers.append(number)
        self.sum, self.squares = self.sum + number, self.squares + number**2

    @property
    def mean(self) -> float:
        """Mean of the numbers."""
        return self.sum / len(self.numbers)

    @property
    def deviation(self) -> float:
        """Deviation of the numbers; above 0."""
        variance = self.squares / len(self.numbers) - self.mean**2
        return max(math.sqrt(max(variance, 0.0)), SMALLEST_DEVIATION)


def tail_log_probability(distance: float) -> float:
    """-log₁₀ of the probability that a normal number is further above the mean than so many deviations.

    Ahmad et al. 2017, section 3.2, https://doi.org/10.1016/j.neucom.2017.04.070, have this of the errors of the last steps
    among those of a longer time. Beyond 20 deviations it is that of the asymptotic expansion.
    """
    if distance < FAR:
        return -math.log10(0.5 * math.erfc(distance / math.sqrt(2)))
    return (distance**2 / 2 + math.log(distance * math.sqrt(2 * math.pi))) / math.log(10)
