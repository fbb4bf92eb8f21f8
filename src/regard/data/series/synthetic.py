"""Synthetic series: daily sales of several shops with a trend, a weekly and a yearly season, prices and promotions."""

import csv
import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from regard.data.series.calendar import DAY, Frequency, format_times
from regard.data.series.records import Names, SeriesRecord

START = 1_577_836_800
"""First day: 2020-01-01."""
NAMES = Names(target=("sales",), known=("promotion", "price"), static=("region",), time="date")
REGIONS = ("north", "south")
MISSING_SHARE = 0.01
"""Share of days whose sales are missing."""


def generate_sales(samples: int, seed: int, days: int = 1096) -> list[SeriesRecord]:
    """Sales of shops: counts whose logarithm is a sum of trend, seasons, price, promotion and autocorrelated noise."""
    return [_generate_shop(shop, np.random.default_rng([seed, shop]), days) for shop in range(samples)]


def _generate_shop(shop: int, generator: np.random.Generator, days: int) -> SeriesRecord:
    steps = np.arange(days)
    level = generator.uniform(3.2, 4.6) + generator.normal(0, 0.35) * steps / days
    weekly = generator.normal(0, 0.1, 7) + np.array([-0.15, -0.1, -0.05, 0.0, 0.15, 0.3, -0.15])
    yearly = generator.uniform(0.05, 0.25) * np.sin(2 * np.pi * (steps / 365.25 + generator.uniform()))
    promotion = _draw_promotions(generator, days)
    price = _draw_prices(generator, days) * np.where(promotion > 0, 0.85, 1.0)
    noise = _autocorrelated(generator.normal(0, 0.06, days), 0.7)
    elasticity, effect = generator.uniform(0.8, 1.6), generator.uniform(0.25, 0.55)
    logarithm = level + weekly[steps % 7] + yearly + effect * promotion - elasticity * np.log(price / price.mean()) + noise
    sales = generator.poisson(np.exp(logarithm)).astype(np.float64)
    sales[generator.random(days) < MISSING_SHARE] = np.nan
    times = START + DAY * steps
    return SeriesRecord(
        times=times,
        target=sales[:, None],
        names=NAMES,
        frequency=Frequency(DAY),
        past=np.zeros((days, 0)),
        known=np.stack((promotion, price.round(2)), 1),
        future=times[:0],
        static=(REGIONS[shop % len(REGIONS)],),
        id=f"shop {shop + 1}",
        where=f"shop {shop + 1}",
    )


def _draw_promotions(generator: np.random.Generator, days: int) -> NDArray[np.float64]:
    """1 on the days of a promotion, which lasts three to eight days and begins every six weeks or so."""
    promotion = np.zeros(days)
    start = int(generator.integers(5, 40))
    while start < days:
        promotion[start : start + int(generator.integers(3, 9))] = 1.0
        start += int(generator.integers(25, 60))
    return promotion


def _draw_prices(generator: np.random.Generator, days: int) -> NDArray[np.float64]:
    """A price that changes a little about twice a year."""
    changes = np.where(generator.random(days) < 2 / 365, generator.normal(0.02, 0.04, days), 0.0)
    prices: NDArray[np.float64] = generator.uniform(2, 9) * np.exp(np.cumsum(changes))
    return prices


def _autocorrelated(noise: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    smooth = np.empty_like(noise)
    last = 0.0
    for step, value in enumerate(noise.tolist()):
        last = smooth[step] = share * last + value
    return smooth


def write_csv(records: Sequence[SeriesRecord], forecast_steps: int = 0) -> bytes:
    """Table of series as CSV; the targets of the last `forecast_steps` rows are left out, their known covariates are not."""
    names = records[0].names
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["date", "shop", *names.target, *names.known, *names.static])
    for record in records:
        last = len(record) - forecast_steps
        for row, time in enumerate(format_times(record.times)):
            target = ["" if np.isnan(value) or row >= last else f"{value:g}" for value in record.target[row]]
            writer.writerow([time, record.id, *target, *(f"{value:g}" for value in record.known[row]), *record.static])
    return file.getvalue().encode()
