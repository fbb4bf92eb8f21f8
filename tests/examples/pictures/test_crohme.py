import json
import lzma
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def crohme(script):
    return script("crohme")


def letter(x, height=100):
    """A zigzag as high as a letter."""
    return [x, 0, x + height // 2, height // 2, x, height]


def test_every_formula_is_drawn_and_no_formula_is_in_two_tables(crohme, rows, tmp_path):
    train = [{"id": f"w{n}", "latex": f"x + {n // 2}", "strokes": [letter(0), letter(80)]} for n in range(20)]
    test = [{"id": "t-0", "latex": r"\frac { 1 } { 2 }", "strokes": [letter(0)]}]
    for name, part in (("train", train), ("test2014", test)):
        with lzma.open(tmp_path / f"{name}.jsonl.xz", "wt", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(each)}\n" for each in part)
    crohme.main(tmp_path, tmp_path / "out", dev=6)
    parts = {part: rows(tmp_path / "out" / f"{part}.tsv") for part in ("train", "dev", "test")}
    assert {part: len(each) for part, each in parts.items()} == {"train": 14, "dev": 6, "test": 1}
    assert not {latex for _, latex in parts["train"]} & {latex for _, latex in parts["dev"]}
    given = {(f"pictures/train/{each['id']}.png", each["latex"]) for each in train}
    assert {*parts["train"], *parts["dev"]} == given
    assert parts["test"] == [("pictures/test/t-0.png", r"\frac { 1 } { 2 }")]
    for image, _ in parts["train"] + parts["dev"] + parts["test"]:
        with Image.open(tmp_path / "out" / image) as opened:
            assert opened.mode == "L"


def test_dev_is_filled_with_whole_formulas_the_same_each_time(crohme):
    copies = Counter({f"f{n}": n % 5 + 1 for n in range(50)})
    held = crohme.hold(copies, 20)
    assert sum(copies[each] for each in held) == 20
    assert crohme.hold(Counter(dict(reversed(copies.items()))), 20) == held
    assert crohme.hold(Counter({"often": 7, "never": 30}), 10) == {"often"}


@pytest.mark.parametrize("height", [10, 100, 1000])
def test_symbols_are_as_high_whatever_the_size_of_the_formula(height, crohme):
    drawn = crohme.draw([letter(0, height), letter(height, height)])
    assert drawn.height == crohme.SYMBOL + 2 * crohme.MARGIN
    assert drawn.width == 3 * crohme.SYMBOL // 2 + 2 * crohme.MARGIN


def test_bars_and_dots_say_nothing_of_how_large_one_writes(crohme):
    paths = [
        np.array(each, dtype=float).reshape(-1, 2) for each in (letter(0), letter(80, 60), [0, 120, 500, 130], [40, 40])
    ]
    assert crohme.symbol_height(paths) == 80
    assert crohme.symbol_height(paths[2:3]) == 500  # a minus sign alone
    assert crohme.symbol_height(paths[3:]) == 1  # a dot alone


def test_what_is_too_wide_or_too_high_is_made_smaller_in_proportion(crohme):
    wide = [letter(x) for x in range(0, 9001, 500)]  # 9,050 x 100 units in 1,012 pixels
    high = [[0, y, 50, y + 50, 0, y + 100] for y in range(0, 2000, 100)]  # 50 x 2,000 units in 244 pixels
    assert crohme.draw(wide).size == (1024, 12 + 12)
    assert crohme.draw(high).size == (7 + 12, 256)


def test_ink_is_white_and_lines_are_smooth_and_as_wide_as_the_pen(crohme):
    drawn = np.asarray(crohme.draw([[0, 0, 0, 1000], [500, 0, 1000, 1000]])).astype(float) / 255
    middle = crohme.MARGIN + crohme.SYMBOL // 2
    across = drawn[middle, : crohme.MARGIN + 5].sum()
    assert across == pytest.approx(crohme.PEN, abs=0.01)
    assert drawn[0].max() == drawn[:, -1].max() == 0
    assert len(np.unique(drawn)) > 4
    slanted = drawn[middle, crohme.MARGIN + 5 :].sum()
    assert slanted == pytest.approx(crohme.PEN * 5**0.5 / 2, rel=0.35)


def test_a_dot_is_seen(crohme):
    alone = np.asarray(crohme.draw([letter(0), [500, 100]])).astype(float) / 255
    dot = alone[:, crohme.MARGIN + 60 :]
    assert dot.sum() == pytest.approx(np.pi * crohme.PEN**2, rel=0.25)
    assert dot.max() == 1


def test_copies_are_written_again_and_only_for_training(tmp_path):
    formulas = [
        {"id": f"w{n}", "latex": f"x + {n}", "strokes": [letter(0), letter(80), [0, 120, 150, 121]]} for n in range(420)
    ]
    (tmp_path / "data/crohme").mkdir(parents=True)
    for name, part in (("train", formulas), ("test2014", formulas[:1])):
        with lzma.open(tmp_path / f"data/crohme/{name}.jsonl.xz", "wt", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(each)}\n" for each in part)
    where = Path("examples/pictures/crohme.py").resolve()
    known = {**os.environ, "REGARD_DATA": str(tmp_path / "data"), "COPIES": "2"}
    subprocess.run([sys.executable, where, tmp_path / "out"], env=known, check=True, capture_output=True)
    lines = (tmp_path / "out/train.tsv").read_text().splitlines()
    assert len(lines) == 20 * 3
    names = {line.split("\t")[0]: line.split("\t")[1] for line in lines}
    dev = {line.split("\t")[1] for line in (tmp_path / "out/dev.tsv").read_text().splitlines()}
    assert len(dev) == 400
    assert not dev & set(names.values())
    first = next(name for name in names if not name.endswith(("-1.png", "-2.png")))
    again = [first.replace(".png", f"-{number}.png") for number in (1, 2)]
    assert [names[each] for each in again] == [names[first]] * 2
    drawn = [np.asarray(Image.open(tmp_path / "out" / each).resize((60, 40))) for each in (first, *again)]
    assert not np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[1], drawn[2])


def test_copies_that_are_no_number_are_refused(tmp_path):
    known = {**os.environ, "REGARD_DATA": str(tmp_path), "COPIES": "many"}
    done = subprocess.run(
        [sys.executable, "examples/pictures/crohme.py", tmp_path / "out"], env=known, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "COPIES: a whole number of more pictures of each formula is needed, got 'many'" in done.stderr
