"""Stock-like prices: a forecast beside repeat-last, which it does not beat.

python examples/stock.py OUT [steps]
"""

import csv
import datetime
import sys
from pathlib import Path

import numpy as np

import regard

out, steps = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300
out.mkdir(parents=True, exist_ok=True)
returns = np.random.default_rng(0).standard_t(4, size=(1500, 2)) * 0.01
with (out / "prices.csv").open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["date", "first", "second"])
    for day, prices in enumerate(100 * np.exp(np.cumsum(returns, 0))):
        table.writerow([datetime.date(2020, 1, 1) + datetime.timedelta(day), *(f"{price:.2f}" for price in prices)])

run = regard.train(
    "forecast",
    data={"train": str(out / "prices.csv"), "time": "date", "horizon": 10, "look_back": 60, "calendar": False},
    model={"network": "patch", "output": "student_t", "normalise": "last"},
    train={"max_steps": steps, "evaluate_every": steps},
    out=out / "run",
)
model = run.load()
print(model.tabulate(model.evaluate(out / "prices.csv")))
print(
    "Prices like these follow a random walk: the last one is the best forecast of the next. A model whose error is lower\n"
    "than that of repeat-last was lucky, or has read the future. It can tell how far prices will stray: the intervals."
)
