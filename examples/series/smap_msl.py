"""SMAP and MSL: one detector for each channel, and the means over the channels of VUS-PR and other metrics.

    REGARD_DATA=folder/with/smap_msl python examples/series/smap_msl.py OUT [SETTINGS]

Settings are chosen on five channels of each spacecraft, which are left out of the means; CHANNELS=chosen runs those alone.
The labels of P-2 of SMAP are listed twice, and the combined sets leave it out; so do the means. JOBS is the number of
processes.
"""

import ast
import csv
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

CHOSEN = {"SMAP": ("A-3", "D-4", "E-7", "G-1", "P-3"), "MSL": ("C-1", "D-15", "F-7", "M-4", "T-8")}
"""Channels that settings are chosen on."""
LEFT_OUT = {"SMAP": ("P-2",), "MSL": ()}


def read_labels(path: Path) -> dict[str, list[tuple[int, int]]]:
    """First and last row of each anomaly of the test rows of a channel."""
    with path.open(newline="", encoding="utf-8") as file:
        return {row["chan_id"]: ast.literal_eval(row["anomaly_sequences"]) for row in csv.DictReader(file)}


def write_table(path: Path, values: np.ndarray, label: np.ndarray | None = None) -> None:
    """CSV file of a channel: the telemetry value, its commands, and labels where there are some."""
    names = ["value", *(f"command_{number}" for number in range(1, values.shape[1]))]
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join([*names, *(["anomaly"] if label is not None else [])]) + "\n")
        for row, values_of_row in enumerate(values.tolist()):
            cells = [f"{value:.6g}" for value in values_of_row]
            file.write(",".join([*cells, *([str(int(label[row]))] if label is not None else [])]) + "\n")


def write_tables(data: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Tables of all channels, below the folder; the spacecraft and name of each."""
    labels = read_labels(data / "labeled_anomalies.csv")
    for spacecraft in CHOSEN:
        with np.load(data / f"{spacecraft}.npz") as arrays:
            for name in sorted({key.rpartition("_")[0] for key in arrays.files} - set(LEFT_OUT[spacecraft])):
                place = folder / spacecraft / name
                if not (place / "test.csv").is_file():
                    place.mkdir(parents=True, exist_ok=True)
                    test = arrays[f"{name}_test"]
                    label = np.zeros(len(test), bool)
                    for first, last in labels[name]:
                        label[first : last + 1] = True
                    write_table(place / "train.csv", arrays[f"{name}_train"])
                    write_table(place / "test.csv", test, label)
                yield spacecraft, name


def run(spacecraft: str, name: str, tables: str, out: str, settings: list[str], threads: int) -> dict[str, float]:
    """Train on a channel, and measure on its test rows."""
    import torch

    import regard
    from regard import api

    torch.set_num_threads(threads)
    folder = Path(tables) / spacecraft / name
    with (folder / "train.csv").open(encoding="utf-8") as file:
        columns = file.readline().strip().split(",")
    config = api.read_config("anomaly", overrides=settings)
    targets = "value" if not config.data.target else ",".join(columns)
    data = {"train": str(folder / "train.csv"), "constant": "score", "label": "", "target": targets}
    data["past"] = "" if config.data.target else ",".join(columns[1:])
    trained = regard.train("anomaly", config=config, data=data, out=Path(out) / spacecraft / name, quiet=True)
    metrics = trained.load("cpu").evaluate(folder / "test.csv", label="anomaly")
    return {metric: measurement.value for metric, measurement in metrics.items()}


def print_means(title: str, results: dict[str, dict[str, float]]) -> None:
    """Table of the means over channels."""
    from regard.cli._comparison import format_table

    names = list(next(iter(results.values())))
    means = {name: float(np.mean([result[name] for result in results.values()])) for name in names}
    print(f"{title}: mean over {len(results)} channels\n{format_table(means)}\n", flush=True)


def main(out: str, *settings: str) -> None:
    """Train and measure all channels, or those that settings are chosen on."""
    data = Path(os.environ["REGARD_DATA"]) / "smap_msl"
    jobs, chosen_alone = int(os.environ.get("JOBS", "2")), os.environ.get("CHANNELS") == "chosen"
    tables = f"{out}-data"
    channels = list(write_tables(data, Path(tables)))
    if chosen_alone:
        channels = [(spacecraft, name) for spacecraft, name in channels if name in CHOSEN[spacecraft]]
    overrides = [setting.removeprefix("--") for setting in settings]
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {channel: pool.submit(run, *channel, tables, out, overrides, threads) for channel in channels}
        results = {channel: future.result() for channel, future in futures.items()}
    Path(out).mkdir(parents=True, exist_ok=True)
    report = {f"{spacecraft}/{name}": result for (spacecraft, name), result in results.items()}
    (Path(out) / "results.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for spacecraft, chosen in CHOSEN.items():
        own = {name: result for (craft, name), result in results.items() if craft == spacecraft}
        print_means(f"{spacecraft}, settings are chosen on these", {name: own[name] for name in chosen})
        if rest := {name: result for name, result in own.items() if name not in chosen}:
            print_means(spacecraft, rest)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: python examples/series/smap_msl.py OUT [SETTINGS]")
    main(*sys.argv[1:])
