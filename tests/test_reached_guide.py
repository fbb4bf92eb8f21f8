"""docs/reached.py: the table of asked and reached figures, from rows that are made up here."""

import csv
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
WHERE = {"hardware": "one", "versions": "torch", "commit": "b"}


@pytest.fixture
def reached(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("reached")


def write(path, *rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0] | WHERE))
        writer.writeheader()
        writer.writerows(row | WHERE for row in rows)


def told(reached, name, rows):
    return {each.what: each.reached for each in reached.PARTS[name](rows)}


def test_what_has_no_row_was_not_measured(reached, tmp_path):
    lines = reached.reached(tmp_path).splitlines()
    assert lines[0] == "| measurement | goal | result |"
    assert "| additive, one step, 64x1x512x1024 | under 1.6 x the time of reading its bytes once | not measured |" in lines
    assert "| additive fwd, 32x256x256x512 | 4.5 x torch.compile | not measured |" in lines
    assert "| recurrent decoder, 64x50x50x1024 | 10 x eager; under 2 x the cuDNN LSTM alone | not measured |" in lines
    assert "| Transformer-base, 128x32 | 450k tokens/s | not measured |" in lines
    assert "| scaled dot, 24 shapes | within 3 % of the fastest public path | not measured |" in lines


def test_additive_is_judged_by_the_device_and_as_python_launches_it(reached):
    common = {"shape": "32x256x256x512", "pass": "fwd", "input_bytes": "10", "floor_ms": "8", "tiles": ""}
    rows = [
        common | {"name": "eager", "ms": "40", "device_ms": "36", "peak_bytes": "900"},
        common | {"name": "compiled", "ms": "20", "device_ms": "18", "peak_bytes": "500"},
        common | {"name": "ours", "tiles": reached.USUAL, "ms": "8", "device_ms": "4", "peak_bytes": "15"},
        common | {"name": "ours", "tiles": "others", "ms": "2", "device_ms": "2", "peak_bytes": "1"},
        common | {"name": "ours", "tiles": reached.ROOMY, "ms": "9", "device_ms": "3", "peak_bytes": "90"},
        {**common, "shape": "64x1x512x1024", "name": "ours", "ms": "9", "device_ms": "12", "peak_bytes": "1"},
    ]
    found = told(reached, "additive", rows)
    fast = "torch.compile and eager: 4.50 x and 9.00 x; 0.50 x the floor"
    assert found["additive fwd, 32x256x256x512"] == f"{fast}; launched by Python 2.50 x and 5.00 x"
    more = "1.50 x; with more room 9.00 x, at 6.00 x and 12.00 x torch.compile and eager"
    assert found["its peak memory, 32x256x256x512, fwd"] == more
    replayed = told(reached, "additive", [row | {"ms": ""} for row in rows])
    assert replayed["additive fwd, 32x256x256x512"] == fast
    rows.pop(4)
    assert told(reached, "additive", rows)["its peak memory, 32x256x256x512, fwd"] == "1.50 x"
    assert found["additive, one step, 64x1x512x1024"] == "1.50 x"


def test_the_grid_counts_the_passes_of_auto(reached):
    rows = [
        {"case": case, "path": path, "to_fastest": ratio}
        for case, path, ratio in (
            ("grid", "auto", "1.02"),
            ("grid", "auto", "1.2"),
            ("grid", "flash", "2"),
            ("host", "auto", "9"),
        )
    ]
    assert told(reached, "dot", rows) == {"scaled dot, 24 shapes": "1 of 2 measured passes of 48, the worst 1.200 x"}


def test_of_several_tiles_the_fastest_stands_for_a_side(reached):
    names = {"flash 1x2 none 64x4": 4, "flash 1x2 quick 64x4": 6, "flash 1x2 none 8x8": 8, "flash 1x2 quick 8x8": 5}
    names |= {"flash 3x4 none 8x8": 4, "flash 3x4 quick 8x8": 6, "sdpa 3x4 quick": 90}
    rows = [{"case": "statistics", "name": name, "ms": str(ms)} for name, ms in names.items()]
    windows = {"flash fwd 64x4": 4, "flash fwd 8x8": 3, "flex fwd": 2, "sdpa with a mask fwd": 30, "flash fwd+bwd 8x8": 1}
    rows += [{"case": "window", "name": name, "ms": str(ms)} for name, ms in windows.items()]
    found = told(reached, "flash", rows)
    assert found["statistics, quick"] == "25 to 50 %"
    assert found["statistics, all"] == "not measured"
    launched = "launched by Python 1.50 x FlexAttention's time, 10.00 x as fast as the dense one"
    assert found["window of +-128 at 8192, fwd"] == launched
    replays = {"flash fwd, replayed 8x8": 1, "flash fwd, replayed 64x4": 2, "flex fwd, replayed": 2}
    rows += [{"case": "window", "name": name, "ms": str(ms)} for name, ms in replays.items()]
    on_device = "0.50 x FlexAttention's time, 30.00 x as fast as the dense one"
    assert told(reached, "flash", rows)["window of +-128 at 8192, fwd"] == f"{on_device}; {launched}"


def test_decoders_and_trainings_stand_beside_their_peers(reached):
    loops = {"LSTMCell loop": "40", "cuDNN LSTM alone": "4", "ours one operation, graph": "2"}
    rows = [{"name": name, "shape": "128x32x32x512", "ms": ms} for name, ms in loops.items()]
    assert told(reached, "recurrent", rows)["recurrent decoder, 128x32x32x512"] == "20.00 x eager; 0.50 x cuDNN's time"
    trainings = {"Hugging Face Marian, eager": "40", "ours, graph": "20", "ours, eager": "60"}
    rows = [{"name": name, "shape": "400x32", "ms": ms, "tokens_per_second": "640000"} for name, ms in trainings.items()]
    found = told(reached, "transformer", rows)["Transformer-base, 400x32"]
    assert found == "640k (ours, graph); Hugging Face 2.00 x; nn.Transformer compiled not measured"


def test_both_pages_are_written_and_keep_the_rest(reached, tmp_path):
    (tmp_path / "speed.md").write_text("before\n<!-- reached -->\nold\n<!-- end of reached -->\nafter\n", encoding="utf-8")
    (tmp_path / "search.md").write_text("a\n<!-- decoding_gpu -->\nold\n<!-- end of decoding_gpu -->\nz\n", encoding="utf-8")
    common = {"batch": "64", "peak_bytes": "100", "asked": "9"}
    write(
        tmp_path / "decoding_gpu.csv",
        common | {"name": "ours", "beam": "1", "ms_a_sentence": "0.5"},
        common | {"name": "ours", "beam": "5", "ms_a_sentence": "2", "peak_bytes": "125"},
        common | {"name": "Hugging Face", "beam": "1", "ms_a_sentence": "4.5"},
    )
    reached.main(tmp_path, tmp_path)
    search = (tmp_path / "search.md").read_text(encoding="utf-8")
    assert "| 1, 64 | 0.5 | 4.5 | 9.00 x | 9 x |  |\n" in search
    assert "| 5, 64 | 2 | not measured | not measured | 9 x | 1.25 x |\n" in search
    assert (search[:2], search[-2:]) == ("a\n", "z\n")
    assert "old" not in search + (tmp_path / "speed.md").read_text(encoding="utf-8")


def test_a_page_without_its_marks_is_named(reached):
    with pytest.raises(
        ValueError, match=r"docs/search\.md needs the marks <!-- decoding_gpu --> and <!-- end of decoding_gpu"
    ):
        reached.put("", "decoding_gpu", "", "search.md")


@pytest.mark.parametrize("script", ["reached", "speed"])
def test_what_is_no_folder_is_named_and_no_page_is_written(script):
    done = subprocess.run([sys.executable, DOCS / f"{script}.py", "--help"], capture_output=True, text=True)
    assert done.returncode == 1
    assert f"python docs/{script}.py [RESULTS] [DOCS]" in done.stderr
    assert done.stderr.endswith("--help is no folder\n")
