"""Small tiles, so that a few numbers fill several of them."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("these run in the interpreter; benchmarks/additive.py checks on a GPU")
    from regard.kernels.triton.additive import operator
    from regard.kernels.triton.additive.arguments import ReadTile, Tiles

    small = {
        "rows": 16,
        "columns": 16,
        "pairs": 2,
        "four_rows": 16,
        "four_columns": 32,
        "four_least": 3,
        "both": 8,
        "both_rows": 16,
        "read": ReadTile(16, 16, 128, 4),
        "read_single": ReadTile(16, 16, 64, 4),
        "slope_rows": 8,
        "slope_columns": 16,
    }
    monkeypatch.setattr(operator, "TILES", Tiles(**small))
