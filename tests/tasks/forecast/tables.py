"""Tables of two short series, and a model trained on them for a few steps."""

import numpy as np

from regard.api import build_experiment, read_config

ROWS = 90


def write_table(path, rows=ROWS, future=0, change=None):
    """Two shops with a weekly season, two targets, a covariate known ahead and a static one; the last rows have no target."""
    generator = np.random.default_rng(3)
    lines = ["date,shop,sales,visits,promotion,town"]
    for number, shop in enumerate("ab"):
        noise = generator.normal(0, 0.3, (rows + future, 2))
        for row in range(rows + future):
            date = np.datetime64("2024-01-01") + row
            promotion = int(row % 11 < 2)
            values = 10 * (number + 1) + 3 * np.sin(2 * np.pi * row / 7) + 2 * promotion + noise[row]
            if change is not None and row >= change:
                values = values + 100
            cells = ["", ""] if row >= rows else [f"{values[0]:.3f}", "" if row == 40 else f"{values[1]:.3f}"]
            lines.append(f"{date},{shop},{','.join(cells)},{promotion},{'Ulm' if number else 'Bern'}")
    path.write_text("\n".join(lines) + "\n")
    return path


COLUMNS = ["data.time=date", "data.id=shop", "data.target=sales,visits", "data.known=promotion", "data.static=town"]
SIZES = ["data.look_back=14", "data.horizon=5", "data.split=60,15,15", "data.batch_size=16"]
MODEL = ["model.hidden_size=8", "model.layers=1", "model.heads=2", "model.patch_length=4", "model.patch_stride=2"]
MODEL += ["model.feedforward_size=8", "train.max_steps=2", "train.device=cpu"]


def read_settings(table, *overrides):
    return read_config("forecast", overrides=[f"data.train={table}", *COLUMNS, *SIZES, *MODEL, *overrides])


def build(table, *overrides):
    return build_experiment("forecast", read_settings(table, *overrides))
