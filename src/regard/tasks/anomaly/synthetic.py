"""Synthetic series: two sensors of a machine with a daily and a weekly season, and planted anomalies in what follows.

The kinds of anomalies are those of the literature: a spike, a level shift, a flat line, a burst of noise, a missing cycle,
and a sensor that no longer follows the other one, which no single value shows.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from regard.data.series.calendar import Frequency
from regard.data.series.records import Names, SeriesRecord

Sensors = NDArray[np.float64]
Generator = np.random.Generator

HOURS, WEEK = 24, 168
TRAINING_WEEKS, LATER_WEEKS = 12, 8
START = 1_704_067_200
"""2024-01-01, a Monday, in seconds since 1970."""
NAMES = Names(("load", "temperature"))
COLUMNS = {"id": "machine", "time": "time", "label": "anomaly"}
"""Columns of the table that a run directory keeps of labelled series."""
SHORTEST, LONGEST = 6, 36
"""Hours of a planted anomaly."""


def synthesise(samples: int, seed: int) -> tuple[list[SeriesRecord], list[SeriesRecord]]:
    """Normal series, and their continuations with labelled anomalies."""
    training, later = [], []
    for number in range(samples):
        generator = np.random.default_rng([seed, number])
        values = draw_sensors(generator, (TRAINING_WEEKS + LATER_WEEKS) * WEEK)
        cut, name = TRAINING_WEEKS * WEEK, f"machine {number + 1}"
        following, label = plant(generator, values[cut:])
        training.append(_record(values[:cut], 0, name, None))
        later.append(_record(following, cut, name, label))
    return training, later


def draw_sensors(generator: Generator, hours: int) -> Sensors:
    """Load with a daily and a weekly season, and a temperature that follows it a few hours later."""
    time = np.arange(hours)
    phase, weekend, slow = generator.uniform(0, HOURS), generator.uniform(0.3, 0.6), generator.uniform(0.05, 0.15)
    day = np.sin(2 * np.pi * (time + phase) / HOURS) + 0.4 * np.sin(4 * np.pi * (time + phase) / HOURS)
    share = np.where((time // HOURS) % 7 >= 5, weekend, 1.0)
    load = 50 + 15 * share * day + _autoregressive(generator, hours, 0.8, 1.0)
    temperature = np.empty(hours)
    level = load[0]
    for step, value in enumerate(load):
        level += slow * (value - level)
        temperature[step] = 20 + 0.6 * level
    return np.stack((load, temperature + _autoregressive(generator, hours, 0.5, 0.3)), 1)


def plant(generator: Generator, values: Sensors) -> tuple[Sensors, NDArray[np.bool_]]:
    """Values with one anomaly of each kind, in an order and at places of chance, and their labels."""
    planted, label = values.copy(), np.zeros(len(values), bool)
    room = len(values) // len(KINDS)
    for place, kind in enumerate(generator.permutation(len(KINDS))):
        length = int(generator.integers(SHORTEST, LONGEST))
        first = place * room + int(generator.integers(HOURS, room - LONGEST))
        last = first + (1 if KINDS[kind] is _spike else length)
        planted[first:last] = KINDS[kind](generator, planted[first:last])
        label[first:last] = True
    return planted, label


def _spike(generator: Generator, values: Sensors) -> Sensors:
    return values + np.array([generator.choice((-1, 1)) * generator.uniform(15, 25), 0.0])


def _shift(generator: Generator, values: Sensors) -> Sensors:
    return values + np.array([0.0, generator.choice((-1, 1)) * generator.uniform(3, 6)])


def _flat(generator: Generator, values: Sensors) -> Sensors:
    return np.repeat(values[:1], len(values), 0)


def _noise(generator: Generator, values: Sensors) -> Sensors:
    return values + generator.normal(size=values.shape) * np.array([6.0, 1.5])


def _missing_cycle(generator: Generator, values: Sensors) -> Sensors:
    return np.stack((np.full(len(values), 50.0) + generator.normal(size=len(values)), values[:, 1]), 1)


def _decoupled(generator: Generator, values: Sensors) -> Sensors:
    return np.stack((values[:, 0], values[::-1, 1]), 1)


KINDS: tuple[Callable[[Generator, Sensors], Sensors], ...] = (_spike, _shift, _flat, _noise, _missing_cycle, _decoupled)


def _autoregressive(generator: Generator, count: int, memory: float, deviation: float) -> NDArray[np.float64]:
    noise = generator.normal(size=count) * deviation
    for step in range(1, count):
        noise[step] += memory * noise[step - 1]
    return noise


def _record(values: Sensors, first: int, name: str, label: NDArray[np.bool_] | None) -> SeriesRecord:
    frequency = Frequency(3600)
    times = np.arange(first, first + len(values), dtype=np.int64) * 3600 + START
    nothing = np.zeros((len(values), 0))
    return SeriesRecord(
        times, values, NAMES, frequency, nothing, nothing, times[:0], id=name, label=label, where=f"synthetic:{first + 1}"
    )
