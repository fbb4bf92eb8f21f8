"""The scripts of `make gpu` on machines that lack something: packages, Triton, torch or a GPU."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="Triton is for Linux")

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TIMED = ["additive", "dot", "flash", "recurrent", "transformer", "decode", "simplex", "norm"]


def required(*names):
    """The installed packages of these names, and of what they require."""
    found, waiting = {}, list(names)
    while waiting:
        name = waiting.pop().lower()
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # for another system
            continue
        needs = (each for each in found[name].requires or [] if "extra ==" not in each)
        waiting += {re.match(r"[\w.-]+", each)[0] for each in needs} - set(found)
    return found


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Runs a script where `packages` and what they require are all that is installed, and no GPU is seen."""
    folders = {}

    def run(*command, packages=("torch", "triton")):
        if packages not in folders:
            folder = folders[packages] = tmp_path_factory.mktemp("packages")
            for name, package in required(*packages).items():
                for top in {file.parts[0] for file in package.files} - {"..", "__pycache__"}:
                    if not (folder / top).exists() and ("triton" in packages or name != "triton"):
                        (folder / top).symlink_to(package.locate_file(top))
        return process("-S", *command, path=folders[packages])

    return run


def process(*command, path):
    kept = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    changed = {
        "PYTHONPATH": str(path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "ignore",
        "CUDA_VISIBLE_DEVICES": "",
    }
    return subprocess.run(
        [sys.executable, *command], env={**kept, **changed}, cwd=BENCHMARKS, capture_output=True, text=True
    )


def test_these_are_the_scripts_that_are_timed(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu

    assert list(gpu.TIMES) == TIMED


def test_however_long_its_parts_take_the_whole_is_under_eight_minutes(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu

    clock, begun = [0.0], []

    def slow(process, limit):
        clock[0] += max(0.0, limit)
        return f"stopped after {limit:.0f} s"

    monkeypatch.setattr(gpu, "lacking", lambda: None)
    monkeypatch.setattr(gpu, "started", lambda name, *told: begun.append(name))
    monkeypatch.setattr(gpu, "ended", slow)
    monkeypatch.setattr(gpu.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(sys, "argv", ["gpu"])
    assert gpu.main() == 1
    assert clock[0] <= gpu.WHOLE < 480
    assert begun[:1] == ["parity"]
    said = capsys.readouterr().out.splitlines()[-9:]
    assert [line.split()[0] for line in said] == ["parity", *TIMED]
    assert said[-1].endswith("0.0 s  left out: the time is up")
    monkeypatch.setattr(sys, "argv", ["gpu", "--only", "times", "--seconds", "90"])
    gpu.main()
    assert "left out" not in capsys.readouterr().out


def test_every_part_has_its_share_of_what_parity_and_compiling_leave(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu

    clock, begun, given = [0.0], [], {}

    def usual(process, limit):
        given[begun[-1]] = limit - gpu.GRACE
        clock[0] += 70 if begun[-1] == "parity" else limit - gpu.GRACE + gpu.BEGINS
        return "ok"

    monkeypatch.setattr(gpu, "lacking", lambda: None)
    monkeypatch.setattr(gpu, "started", lambda name, *told: begun.append(name))
    monkeypatch.setattr(gpu, "ended", usual)
    monkeypatch.setattr(gpu, "compiled", lambda names, seconds: clock.append(clock.pop() + 80))
    monkeypatch.setattr(gpu.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(sys, "argv", ["gpu"])
    assert gpu.main() == 0
    shares = [given[name] / usual for name, usual in gpu.TIMES.items()]
    assert min(shares) == pytest.approx(max(shares))
    assert 0.7 < min(shares) < 1
    assert clock[0] == pytest.approx(gpu.WHOLE - gpu.GRACE)


@pytest.mark.parametrize("script", ["gpu", "parity", *TIMED])
def test_a_script_that_needs_torch_and_triton_alone_says_that_there_is_no_gpu(bare, script):
    done = bare(f"{script}.py")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert re.fullmatch("needs a GPU, and there is none; .+\n", done.stderr)


def test_lengths_need_no_more_than_the_times_and_there_is_no_more(bare):
    done = bare("-c", "import complexity, importlib.util; print(importlib.util.find_spec('numpy'))")
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr


def test_whole_searches_say_that_there_is_no_gpu_and_write_nothing():
    results = BENCHMARKS / "results" / "decoding_gpu.csv"
    before = results.read_bytes()
    done = process("decoding_gpu.py", path=BENCHMARKS.parent / "src")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "needs a GPU, and there is none; on a CPU run benchmarks/decoding.py\n"
    assert results.read_bytes() == before


@pytest.mark.parametrize("script", ["gpu", "additive", "room"])
def test_a_script_that_needs_triton_says_so(bare, script):
    done = bare(f"{script}.py", packages=("torch",))
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch("needs triton, and it is not installed; pip install triton.*\n", done.stderr)


def test_without_torch_nothing_is_started(bare):
    done = bare("gpu.py", packages=())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "needs torch, and it is not installed; pip install torch triton\n"
