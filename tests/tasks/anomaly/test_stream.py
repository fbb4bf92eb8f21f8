import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import regard
from regard.errors import ConfigError, DataError
from regard.tasks.anomaly.stream import stream_table

from .test_experiment import wave, write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("stream")


def table(folder, name, rows=60, machines=("m", "n"), hours=range(10**6), value=wave):
    lines = ["machine,time,a"]
    for row in range(rows):
        stamp = f"2024-01-{1 + hours[row] // 24:02} {hours[row] % 24:02}:00"
        lines += [f"{machine},{stamp},{value(row + 7 * place)}" for place, machine in enumerate(machines)]
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def predictor(folder):
    data = {"train": table(folder, "train.csv", 100), "id": "machine", "window": 8, "stride": 3, "calendar": True}
    model = {"hidden_size": 8, "heads": 2, "layers": 1, "clusters": 3}
    return regard.train("anomaly", out=folder / "run", data=data, model=model, train={"max_steps": 2}, quiet=True).load(
        "cpu"
    )


def with_policy(codec, irregular):
    columns = replace(codec.series.columns, irregular=irregular)
    return replace(codec, series=replace(codec.series, columns=columns))


def by_series(lines):
    return {machine: [line for line in lines if line.startswith(machine)] for machine in ("m", "n")}


def close(lines, others):
    """Rows that are equal up to the last digits of a score, which the size of a batch changes."""
    for line, other in zip(lines, others, strict=True):
        (*start, score, alarm), (*again, score_again, alarm_again) = line.split(","), other.split(",")
        assert (start, alarm) == (again, alarm_again)
        assert (score == "") == (score_again == "")
        assert not score or float(score) == pytest.approx(float(score_again), rel=1e-3)


@pytest.mark.parametrize("irregular", ["refuse", "insert"])
def test_series_that_arrive_together_have_the_scores_of_whole_ones(predictor, folder, irregular, monkeypatch):
    hours = list(range(60)) if irregular == "refuse" else [row + 3 * (row > 40) for row in range(60)]
    path = table(folder, "live.csv", hours=hours)
    monkeypatch.setattr(predictor, "codec", with_policy(predictor.codec, irregular))
    monkeypatch.setattr(sys, "stdin", type("Input", (), {"buffer": io.BytesIO(Path(path).read_bytes())})())
    whole = by_series(predictor.predict(path).text.splitlines()[1:])
    for source in (path, "-"):
        streamed = by_series("".join(predictor.stream(source)).splitlines()[1:])
        for machine in ("m", "n"):
            close(streamed[machine], whole[machine])


def test_a_step_is_written_before_the_end(predictor, folder, monkeypatch):
    path = table(folder, "endless.csv", 40, machines=("m",))
    read = []

    class Input(io.BytesIO):
        def readline(self, size=-1):
            read.append(1)
            return super().readline(size)

    monkeypatch.setattr(sys, "stdin", type("Input", (), {"buffer": Input(Path(path).read_bytes())})())
    steps = stream_table("-", predictor.codec, predictor.build_stream)
    next(steps)
    assert len(read) < 20


def expect(predictor, folder, text, message, error=DataError):
    path = folder / "bad.csv"
    path.write_text(text)
    steps = []
    with pytest.raises(error, match=message):
        steps.extend(stream_table(str(path), predictor.codec, predictor.build_stream))
    return steps


HEAD = "machine,time,a\nm,2024-01-01 00:00,1\nm,2024-01-01 01:00,2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "m,2024-01-01 02:00\n", r"bad.csv:4 has 2 cells, and the header names 3"),
        (HEAD + "m,2024-01-01 02:00,x\n", r"bad.csv:4 needs a number in column 'a', got 'x'"),
        (HEAD + "m,2024-01-01 02:00,inf\n", r"bad.csv:4 has an infinity in column 'a'"),
        (HEAD + "m,2024-01-01 00:30,1\n", r"bad.csv:4 is at .* before the row above it"),
        (HEAD + "m,2024-01-01 04:00,1\n", r"bad.csv:4 is at 2024-01-01 04:00:00 in column 'time'.*the step"),
        (HEAD + 'm,2024-01-01 02:00,"1\n', r"bad.csv:4 is not CSV"),
        ("machine,time,a\n", r"bad.csv has a header and no rows"),
        ("machine,time,a\nm,2024-01-01 00:00,1\n", r"bad.csv:2 is the only row, and a series needs two at least"),
        (HEAD.replace("m,", "z,"), r"bad.csv:2 is of series 'z', which was not among the training series"),
    ],
)
def test_a_bad_row_is_named(predictor, folder, text, message):
    expect(predictor, folder, text, message)


def test_steps_before_a_bad_row_are_not_lost(predictor, folder):
    good = "".join(f"m,2024-01-01 {hour:02}:00,{wave(hour)}\n" for hour in range(20))
    path = folder / "bad.csv"
    path.write_text("machine,time,a\n" + good + "m,2024-01-01 20:00,x\n")
    with open(path, "rb") as file:
        sys_stdin, sys.stdin = sys.stdin, type("Input", (), {"buffer": io.BytesIO(file.read())})()
    steps = []
    try:
        with pytest.raises(DataError, match=r"stdin:22 needs a number"):
            steps.extend(stream_table("-", predictor.codec, predictor.build_stream))
    finally:
        sys.stdin = sys_stdin
    assert [time for _, time, _ in steps] == [f"2024-01-01 {hour:02}:00:00" for hour in range(20)]


def test_parquet_is_no_stream(predictor):
    with pytest.raises(DataError, match=r"live.parquet is Parquet, and a stream has rows of CSV"):
        list(stream_table("live.parquet", predictor.codec, predictor.build_stream))


def test_resampling_is_no_stream(predictor, folder):
    codec = with_policy(predictor.codec, "mean")
    with pytest.raises(ConfigError, match=r"data.irregular=mean resamples whole series"):
        list(stream_table(table(folder, "live.csv"), codec, predictor.build_stream))


def test_rows_without_times_are_numbered(folder):
    plain = write(folder / "plain.csv", {"a": wave}, 80)
    run = regard.train(
        "anomaly",
        out=folder / "plain",
        data={"train": plain, "window": 8},
        model={"name": "memory", "clusters": 3},
        train={"max_steps": 1},
        quiet=True,
    )
    predictor = run.load("cpu")
    assert "".join(predictor.stream(plain)).splitlines()[-1].startswith("79,")


def test_rows_of_another_step_are_refused(folder):
    numbered = write(folder / "numbered.csv", {"t": lambda row: 2 * row, "a": wave}, 80)
    run = regard.train(
        "anomaly",
        out=folder / "numbered",
        data={"train": numbered, "time": "t", "window": 8},
        model={"name": "memory", "clusters": 3},
        train={"max_steps": 1},
        quiet=True,
    )
    predictor = run.load("cpu")
    other = write(folder / "other.csv", {"t": lambda row: 3 * row, "a": wave}, 30)
    with pytest.raises(DataError, match=r"other.csv:2 begins rows 3 apart, and the training series have a step of 2"):
        list(predictor.stream(other))
