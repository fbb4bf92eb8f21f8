import csv
import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="draws")

DOCS = Path(__file__).parents[1] / "docs"
spec = importlib.util.spec_from_file_location("speed", DOCS / "speed.py")
speed = importlib.util.module_from_spec(spec)
spec.loader.exec_module(speed)

MARKS = "".join(f"<!-- {name} -->\nold\n<!-- end of {name} -->\n" for name in (*speed.CHARTS, "complexity"))


def write(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def measured(name, ms, commit="b", hardware="one", shape="1x2"):
    where = {"hardware": hardware, "versions": "torch", "commit": commit}
    return {"name": name, "shape": shape, "ms": ms, "peak_bytes": 3 * 2**20, **where}


def test_the_guide_has_a_place_for_every_file():
    text = (DOCS / "speed.md").read_text(encoding="utf-8")
    for name in (*speed.CHARTS, "complexity"):
        assert speed.put(text, name, "made").count("made") >= 1


def test_a_missing_mark_is_named():
    with pytest.raises(ValueError, match="needs the marks <!-- flash --> and <!-- end of flash -->, and one is missing"):
        speed.put("<!-- flash -->", "flash", "")


def test_the_fastest_of_the_last_commit_on_the_last_hardware_stands_for_a_side(tmp_path):
    rows = [
        measured("ours", 9, hardware="other"),
        measured("ours", 1, commit="a"),
        measured("ours", 5),
        measured("ours", 4),
        measured("plain", 1234, commit="a"),
    ]
    write(tmp_path / "recurrent.csv", rows)
    found = speed.chosen(speed.read(tmp_path / "recurrent.csv"), speed.CHARTS["recurrent"])
    assert {label: row["ms"] for label, row in found["1x2"].items()} == {"ours": "4", "plain": "1234"}
    lines = speed.table(found, speed.CHARTS["recurrent"]).splitlines()
    assert lines[0] == "| shape | side | ms | peak MiB |"
    assert lines[2:] == ["| 1x2 | ours | 4 | 3 |", "| 1x2 | plain | 1,234 | 3 |"]


def test_rows_of_a_processor_do_not_take_the_place_of_those_of_a_gpu(tmp_path):
    ryzen, one, other = "AMD Ryzen 7 w/ Radeon 780M", "NVIDIA H200", "Tesla T4"
    for hardware, found in (((other, one, ryzen), one), ((one, other, ryzen), other), (("Apple M4", ryzen), ryzen)):
        write(tmp_path / "complexity.csv", [measured("ours", 4, hardware=each) for each in hardware])
        assert [row["hardware"] for row in speed.read(tmp_path / "complexity.csv")] == [found]


def test_a_table_has_the_devices_own_time_where_it_was_measured():
    found = {
        "1x2": {"ours": measured("ours", 4) | {"device_ms": "2.5"}, "theirs": measured("theirs", "") | {"device_ms": "3"}}
    }
    lines = speed.table(found, speed.CHARTS["additive"]).splitlines()
    assert lines == [
        "| shape | side | ms of the device | ms as launched | peak MiB |",
        "|---|---|---|---|---|",
        "| 1x2 | ours | 2.5 | 4 | 3 |",
        "| 1x2 | theirs | 3 | - | 3 |",
    ]


def test_the_grid_has_a_column_for_each_path_and_auto_last():
    common = {"case": "grid", "name": "1x2 causal", "pass": "fwd"}
    sides = (("auto", "0.5", "1.25"), ("flash", "0.4", "1.000"))
    rows = [common | {"path": path, "ms": ms, "to_fastest": ratio} for path, ms, ratio in sides]
    rows += [rows[1] | {"pass": "fwd+bwd", "path": "auto"}, rows[0] | {"case": "host", "path": "attend"}]
    assert speed.grid(rows).splitlines() == [
        "| ms | flash | auto | auto over the fastest |",
        "|---|---|---|---|",
        "| 1x2 causal, fwd | 0.400 | 0.500 | 1.25 |",
        "| 1x2 causal, fwd+bwd | - | 0.400 | 1.000 |",
    ]


def test_where_more_is_better_the_most_stands_for_a_side():
    rows = [measured("ours", 1) | {"tokens_per_second": each} for each in ("10", "30", "20")]
    assert speed.chosen(rows, speed.CHARTS["transformer"])["1x2"]["ours"]["tokens_per_second"] == "30"


def test_a_name_loses_its_tiles_and_keeps_its_shape():
    assert speed._without_tiles({"name": "flash 4x16x64x8 causal 128x64x4x3"}) == "flash 4x16x64x8 causal"


def test_files_become_plots_and_tables_and_the_rest_of_the_page_stays(tmp_path):
    (tmp_path / "speed.md").write_text(f"before\n{MARKS}after\n", encoding="utf-8")
    write(tmp_path / "recurrent.csv", [measured("ours", 4), measured("plain", 8)])
    told = {"pass": "fwd", "size": 8, "batch": 1, "dtype": "float32", "time_exponent": "1.98", "memory_exponent": "1.02"}
    told |= {"textbook": "n² d", "sequential": "1", "path": "1"}
    write(tmp_path / "complexity.csv", [measured("self-attention", n * n) | told | {"length": n} for n in (64, 128)])
    speed.main(tmp_path, tmp_path)
    text = (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| self-attention | O(n² d) | n^1.98 | n^1.02 | O(1) | O(1) |" in text
    assert "| 1x2 | ours | 4 | 3 |" in text
    assert text.count("old") == len(speed.CHARTS) - 1
    drawn = (tmp_path / "speed" / "recurrent.svg").read_bytes()
    speed.main(tmp_path, tmp_path)
    assert (tmp_path / "speed" / "recurrent.svg").read_bytes() == drawn
    for name in ("recurrent", "complexity"):
        assert (tmp_path / "speed" / f"{name}.svg").read_text(encoding="utf-8").startswith("<?xml")
        assert f"![{name}](speed/{name}.svg)" in text
