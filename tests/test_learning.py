"""That attention learns: trainings to 98 % of a validation set right as a whole, as docs/mechanisms.csv has them."""

import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
sys.path.insert(0, str(DOCS))

import mechanisms  # noqa: E402

ROWS = [row for row in mechanisms.best(DOCS / "mechanisms.csv").values() if float(row["exact"]) >= mechanisms.ENOUGH]
EVERY = [[row[name] for name in ("attention", "decoder", "task", "setting", "steps")] for row in ROWS]


@pytest.mark.unhooked  # a training calls so often that looking at every shape takes longer than the rest
@pytest.mark.timeout(600)
def test_a_recurrent_network_learns_to_reverse():
    assert float(mechanisms.train("additive", "recurrent", "reverse", "a", 600)["exact"]) >= mechanisms.ENOUGH


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("attention", "decoder", "task", "setting", "steps"), EVERY)
def test_what_the_table_says_has_learned_learns(attention, decoder, task, setting, steps):
    """A machine of another kind adds up in another order, so that a training near the mark may end just below it."""
    assert float(mechanisms.train(attention, decoder, task, setting, int(steps))["exact"]) >= mechanisms.ENOUGH - 0.02


def test_the_page_shows_the_tables_of_the_file():
    page = (DOCS / "mechanisms.md").read_text(encoding="utf-8")
    assert all(table in page for table in mechanisms.tables(DOCS / "mechanisms.csv"))
