"""NAB: a detector for each file, trained on its probation rows, and the scores of the benchmark over all 58 files.

    REGARD_DATA=folder/with/nab python examples/series/nab.py OUT [SETTINGS]

First the windowed Gaussian of the benchmark is scored, whose published scores are 39.6, 20.9 and 47.4. REFRACTORY is a
share of the probation rows: after a score only a higher one counts for so many steps. FILES=chosen runs the files that
settings are chosen on. JOBS is the number of processes.
"""

import csv
import io
import json
import math
import os
import sys
import tarfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from regard.metrics import nab

CHOSEN = (
    "artificialWithAnomaly/art_daily_jumpsup.csv",
    "realAWSCloudwatch/ec2_cpu_utilization_24ae8d.csv",
    "realAWSCloudwatch/rds_cpu_utilization_cc0c53.csv",
    "realAdExchange/exchange-2_cpc_results.csv",
    "realKnownCause/cpu_utilization_asg_misconfiguration.csv",
    "realKnownCause/nyc_taxi.csv",
    "realTraffic/speed_7578.csv",
    "realTraffic/TravelTime_387.csv",
    "realTweets/Twitter_volume_AAPL.csv",
    "realTweets/Twitter_volume_KO.csv",
)
"""Files that settings are chosen on."""
GAUSSIAN_ROWS, GAUSSIAN_STEP, GAUSSIAN_DIGITS = 6400, 100, 12
"""Window of the windowed Gaussian, its step, and the digits of the scores in the files of the benchmark."""


class File(NamedTuple):
    """Values of a file of the benchmark, and the first and last row of each of its windows."""

    name: str
    values: np.ndarray
    windows: list[tuple[int, int]]


def read_files(path: Path) -> list[File]:
    """All files of the benchmark, from its archive."""
    with tarfile.open(path) as archive:
        members = {member.name.lstrip("./"): member for member in archive.getmembers() if member.isfile()}

        def read(name: str) -> str:
            stream = archive.extractfile(members[name])
            assert stream is not None
            return stream.read().decode()

        labels = next(name for name in members if name.endswith("combined_windows.json"))
        windows = json.loads(read(labels))
        files = []
        for name in sorted(windows):
            member = next(member for member in members if member.endswith(f"data/{name}"))
            rows = list(csv.DictReader(io.StringIO(read(member))))
            times = np.array([row["timestamp"] for row in rows], dtype="datetime64[s]")
            places = [find_rows(times, *window) for window in windows[name]]
            files.append(File(name, np.array([float(row["value"]) for row in rows]), places))
    return files


def find_rows(times: np.ndarray, first: str, last: str) -> tuple[int, int]:
    """First and last row of a window between two times."""
    bounds = [np.datetime64(time.split(".")[0]) for time in (first, last)]
    rows = np.flatnonzero((times >= bounds[0]) & (times <= bounds[1]))
    return int(rows[0]), int(rows[-1])


def score_gaussian(values: np.ndarray) -> np.ndarray:
    """Scores of the windowed Gaussian: 1 less the tail probability of a value among those before it."""
    scores, rows, waiting, mean, deviation = np.zeros(len(values)), [], [], 0.0, 1.0
    for step, value in enumerate(values.tolist()):
        if rows:
            scores[step] = 1 - 0.5 * math.erfc(abs(value - mean) / deviation / math.sqrt(2))
        if len(rows) < GAUSSIAN_ROWS:
            rows.append(value)
        else:
            waiting.append(value)
            if len(waiting) < GAUSSIAN_STEP:
                continue
            rows, waiting = rows[GAUSSIAN_STEP:] + waiting, []
        mean, deviation = float(np.mean(rows)), float(np.std(rows)) or 1e-6
    return scores.round(GAUSSIAN_DIGITS)


def run(file: File, out: str, settings: list[str], refractory: float, threads: int) -> dict[str, tuple[np.ndarray, float]]:
    """Scores of each detector, trained on the probation rows of a file, and its threshold."""
    import torch

    import regard
    from regard import api
    from regard.tasks.anomaly.predictor import score_all

    torch.set_num_threads(threads)
    count = nab.probation_rows(len(file.values))
    folder = Path(out) / file.name.replace("/", "-").removesuffix(".csv")
    tables = {"train": file.values[:count], "all": file.values}
    for name, values in tables.items():
        path = Path(f"{folder}-{name}.csv")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["value", *map(repr, values.tolist())]) + "\n", encoding="utf-8")
    config = api.read_config("anomaly", overrides=settings)
    data = {"train": f"{folder}-train.csv", "constant": "score"}
    model = {"refractory": round(refractory * count)}
    predictor = regard.train("anomaly", config=config, data=data, model=model, out=folder, quiet=True).load("cpu")
    [record] = predictor.read(f"{folder}-all.csv")
    scored = score_all(predictor.model, [predictor.codec.encode(record)], predictor.config)
    return {name: (scored[name].scores[0], scored[name].threshold) for name in scored}


def print_scores(title: str, files: list[nab.File], alarms: list[nab.File] | None = None) -> None:
    """Scores of the three profiles with the scoreboard's threshold and, where there are alarms, the label-free one."""
    best = [nab.optimise_threshold(files, profile).score for profile in nab.PROFILES.values()]
    own = [] if alarms is None else [nab.score_corpus(alarms, 0.5, profile) for profile in nab.PROFILES.values()]
    print(f"{title:20}", *(f"{score:8.2f}" for score in best), " | ", *(f"{score:8.2f}" for score in own), flush=True)


def print_table(title: str, files: list[File], results: list[dict[str, tuple[np.ndarray, float]]]) -> None:
    """Scores of all detectors."""
    print(f"\n{title}, {len(files)} files: {', '.join(nab.PROFILES)}, scoreboard's threshold | label-free")
    for name in results[0]:
        scores = [nab.File(result[name][0], file.windows) for file, result in zip(files, results, strict=True)]
        flags = [(result[name][0] >= result[name][1]).astype(float) for result in results]
        print_scores(name, scores, [nab.File(flag, file.windows) for flag, file in zip(flags, files, strict=True)])


def main(out: str, *settings: str) -> None:
    """Score the windowed Gaussian, then train and score a detector for each file."""
    files = read_files(Path(os.environ["REGARD_DATA"]) / "nab" / "nab_data_labels.tar.xz")
    if os.environ.get("FILES") == "chosen":
        files = [file for file in files if file.name in CHOSEN]
    print_scores("windowed Gaussian", [nab.File(score_gaussian(file.values), file.windows) for file in files])
    jobs, refractory = int(os.environ.get("JOBS", "2")), float(os.environ.get("REFRACTORY", "0"))
    overrides = [setting.removeprefix("--") for setting in settings]
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run, file, out, overrides, refractory, threads) for file in files]
        results = [future.result() for future in futures]
    arrays = {f"{file.name}/{name}": result[name][0] for file, result in zip(files, results, strict=True) for name in result}
    np.savez_compressed(Path(out) / "scores.npz", **arrays)
    pairs = list(zip(files, results, strict=True))
    for title, part in (
        ("all", pairs),
        ("settings are chosen on these", [pair for pair in pairs if pair[0].name in CHOSEN]),
        ("the others", [pair for pair in pairs if pair[0].name not in CHOSEN]),
    ):
        if part:
            print_table(title, [file for file, _ in part], [result for _, result in part])


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python examples/series/nab.py OUT [SETTINGS]")
    main(*sys.argv[1:])
