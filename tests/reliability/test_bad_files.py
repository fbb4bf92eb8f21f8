"""Bad files behind every option that reads one: exit code 2 and one paragraph, in five seconds and 300 MB, and never a wait."""

import gzip
import json
import os
import signal
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from PIL import Image

import regard.inputs

from .commands import Commands, Ended, resident

pytestmark = pytest.mark.unhooked
GROWTH = 300 << 20
commands = Commands()
TEXT = ["--model.hidden_size=8", "--train.max_steps=1", "--quiet"]
SEEN = [*TEXT, "--data.height=16", "--data.width=16"]
TASKS = {"translate": TEXT, "caption": SEEN, "classify": SEEN, "detect": SEEN, "retrieve": SEEN, "vqa": SEEN}
COLUMNS = {"classify": 2, "caption": 2, "retrieve": 2, "vqa": 3}


@pytest.fixture(autouse=True, scope="module")
def _closed():
    yield
    commands.close()


class Place(NamedTuple):
    """Where the runs, the good files and the bad ones lie."""

    home: Path

    def run(self, task: str) -> Path:
        return self.home / "runs" / task

    @property
    def good(self) -> Path:
        return self.home / "good.tsv"

    def table(self, task: str) -> Path:
        return self.home / f"{task}.{'jsonl' if task == 'detect' else 'tsv'}"


def fill(home: Path) -> None:
    """Pictures, and a good table for each task."""
    (home / "runs").mkdir(parents=True)
    names = [f"{number}.png" for number in range(12)]
    for number, name in enumerate(names):
        Image.new("RGB", (16, 16), (20 * number, 0, 255 - 20 * number)).save(home / name)
    words = ["tom", "sees", "jerry", "and", "cats"]
    texts = [f"{words[number % 5]} {words[number // 5]} {words[number % 3]}" for number in range(12)]
    (home / "good.tsv").write_text("".join(f"{text}\t{text[::-1]}\n" for text in texts))
    (home / "translate.tsv").write_text((home / "good.tsv").read_text())
    for task in ("caption", "retrieve"):
        (home / f"{task}.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in zip(names, texts, strict=True)))
    (home / "classify.tsv").write_text("".join(f"{name}\t{words[number % 2]}\n" for number, name in enumerate(names)))
    (home / "vqa.tsv").write_text("".join(f"{name}\twhat {words[n % 3]}\t{words[n % 2]}\n" for n, name in enumerate(names)))
    rows = [{"image": name, "labels": ["cat"], "boxes": [[1, 1, 9, 9]]} for name in names]
    (home / "detect.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (home / "pictures.txt").write_text("".join(f"{home / name}\n" for name in names))
    (home / "bad").mkdir()
    packed = gzip.compress((b"tom " * 1000 + b"\tb\n") * (100_000_000 // 4003), 9, mtime=0)
    (home / "bomb").write_bytes(packed)


PARQUET = b"PAR1" + bytes(range(256)) * 4
BAD: dict[str, bytes] = {
    "empty": b"",
    "zeros": bytes(5000),
    "zero in a line": b"a\0b\tc\n" * 20,
    "utf-16": "a cat\tune chatte\n".encode("utf-16") * 20,
    "no utf-8": b"tom sees\t\xff\xfe\x80 jerry\n" * 20,
    "cut gzip": gzip.compress(bytes(range(256)) * 400, mtime=0)[:500],
    "no gzip": b"\x1f\x8b" + b"nothing" * 20,
    "one column": b"tom sees jerry\n" * 20,
    "a million columns": b"a\t" * 400_000 + b"b\n",
    "a long line": b"tom sees " * 250_000 + b"\tb\n",
    "carriage returns": b"tom sees\tjerry\tcats\r\n" * 20,
    "old carriage returns": b"tom sees\tjerry\tcats\r" * 20,
    "byte order mark": b"\xef\xbb\xbftom sees\tjerry\tcats\n" * 20,
    "blank lines": b"\n" * 20,
    "spaces": b"   \t \t\n" * 20,
    "json": b'{"a": [1, 2, {"b": null}]}\n' * 20,
    "deep json": b"[" * 100_000 + b"\n",
    "digits": b'{"image": ' + b"9" * 100_000 + b"}\n",
    "cut parquet": PARQUET,
    "toml": b"[train]\nrate = 0.1\n",
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(64),
    "safetensors": (1 << 40).to_bytes(8, "little") + b"{}" + bytes(64),
    "escapes": b"\x1b[31mred\x1b[0m\t\x07bell\t\xe2\x80\xae\n" * 20,
}
"""What a regular file may hold."""

OTHERS = ["missing", "a folder", "a pipe", "a device", "a loop", "a bomb", "no name", "no permission"]
WRONG = {
    "empty",
    "zeros",
    "utf-16",
    "no utf-8",
    "cut gzip",
    "no gzip",
    "missing",
    "a folder",
    "a pipe",
    "a device",
    "a loop",
}
WRONG |= {"a bomb", "no name", "cut parquet", "a picture", "safetensors", "deep json"}
"""Kinds that nothing can make sense of: the exit code is 2, and never 0."""
KINDS = [*BAD, *OTHERS]


def bad(place: Path, kind: str, suffix: str) -> str:
    """The path of a bad file, which is written for the first who asks."""
    path = place / "bad" / f"{kind}{suffix}"
    if os.path.lexists(path) or kind in ("missing", "a device", "no name"):
        return {"a device": "/dev/zero", "no name": f"{place}/{'x' * 300}{suffix}"}.get(kind, str(path))
    if kind in BAD:
        path.write_bytes(BAD[kind])
    elif kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a loop":
        path.symlink_to(path.name)
    elif kind == "a bomb":
        line = gzip.compress(b"tom " * 25_000_000, 1, mtime=0)  # what is asked line by line is answered until the bound
        path.write_bytes(line if suffix == ".txt" else (place / "bomb").read_bytes())
    else:
        path.write_bytes(b"tom sees\tjerry\n")
        path.chmod(0)
    return str(path)


class Option(NamedTuple):
    """An option that reads a file: what it is called, the run it needs, how its file ends, and the command."""

    name: str
    needs: str | None
    suffix: str
    command: Callable[[Place, str, Path], list[object]]


def options() -> list[Option]:
    found = [
        Option(
            "train config",
            None,
            ".toml",
            lambda at, bad, out: ["train", "translate", bad, *TEXT, "--data.samples=20", "--out", out],
        ),
        Option(
            "compare config",
            None,
            ".toml",
            lambda at, bad, out: ["compare", "translate", bad, "--vary=model.nothing=1,2", "--out", out],
        ),
        Option("compare data.train", None, ".tsv", lambda at, bad, out: compared(bad, at.good, out)),
        Option("compare data.valid", None, ".tsv", lambda at, bad, out: compared(at.good, bad, out)),
        Option("train data.alignments", None, ".links", lambda at, bad, out: guided(at, bad, out)),
        Option("predict --file", "translate", ".txt", lambda at, bad, out: ["predict", at.run("translate"), "--file", bad]),
        Option(
            "predict --file --out",
            "translate",
            ".txt",
            lambda at, bad, out: ["predict", at.run("translate"), "--file", bad, "--out", out],
        ),
        Option("predict --constraints", "translate", ".jsonl", lambda at, bad, out: asked(at, "--constraints", bad)),
        Option("predict --unknown", "translate", ".tsv", lambda at, bad, out: asked(at, "--unknown", bad)),
        Option(
            "predict --stream",
            "translate",
            ".txt",
            lambda at, bad, out: ["predict", at.run("translate"), "--stream", "--file", bad],
        ),
        Option("predict --trace", "translate", ".txt", lambda at, bad, out: [*traced(at, out), "--file", bad]),
        Option(
            "evaluate", "translate", ".tsv", lambda at, bad, out: ["evaluate", at.run("translate"), f"--data.test={bad}"]
        ),
        Option(
            "evaluate jsonl",
            "translate",
            ".jsonl",
            lambda at, bad, out: ["evaluate", at.run("translate"), f"--data.test={bad}"],
        ),
        Option(
            "evaluate parquet",
            "translate",
            ".parquet",
            lambda at, bad, out: ["evaluate", at.run("translate"), f"--data.test={bad}"],
        ),
        Option("align", "translate", ".tsv", lambda at, bad, out: ["align", at.run("translate"), f"--data.test={bad}"]),
        Option("align --gold", "translate", ".links", lambda at, bad, out: [*aligned(at), "--gold", bad]),
        Option("backtranslate --file", "translate", ".txt", lambda at, bad, out: [*back(at, out), "--file", bad]),
        Option(
            "backtranslate --append",
            "translate",
            ".tsv",
            lambda at, bad, out: [*back(at, out), "--file", at.good, "--append", bad],
        ),
        Option("ensemble", "translate", ".tsv", lambda at, bad, out: learned(at, bad, out)),
        Option("view", None, ".attn.safetensors", lambda at, bad, out: ["view", bad, "--html", f"{out}.html"]),
        Option(
            "view --figure",
            None,
            ".attn.safetensors",
            lambda at, bad, out: ["view", bad, "--figure", "heatmap", "--out", f"{out}.png"],
        ),
        Option("index texts", "retrieve", ".txt", lambda at, bad, out: [*indexed(at, out), "--file", bad, "--of", "texts"]),
        Option("index pictures", "retrieve", ".txt", lambda at, bad, out: [*indexed(at, out), "--file", bad]),
        Option(
            "predict --index",
            "retrieve",
            ".safetensors",
            lambda at, bad, out: ["predict", at.run("retrieve"), "tom", "--index", bad],
        ),
        Option("predict picture", "caption", ".png", lambda at, bad, out: ["predict", at.run("caption"), bad]),
        Option("predict pictures", "caption", ".txt", lambda at, bad, out: ["predict", at.run("caption"), "--file", bad]),
        Option(
            "view picture", "caption", ".png", lambda at, bad, out: ["view", at.run("caption"), bad, "--html", f"{out}.html"]
        ),
        Option(
            "predict question", "vqa", ".png", lambda at, bad, out: ["predict", at.run("vqa"), bad, "--question", "what tom"]
        ),
        Option("predict classify", "classify", ".png", lambda at, bad, out: ["predict", at.run("classify"), bad]),
    ]
    for task, settings in TASKS.items():
        found += [trained(task, settings, "train"), trained(task, settings, "valid")]
        if task != "translate":
            found.append(measured(task))
    return found


def trained(task: str, settings: list[str], side: str) -> Option:
    def command(at: Place, bad: str, out: Path) -> list[object]:
        other = [] if side == "train" else [f"--data.train={at.table(task)}"]
        return ["train", task, f"--data.{side}={bad}", *other, *settings, "--out", out]

    return Option(f"train {task} data.{side}", None, ".jsonl" if task == "detect" else ".tsv", command)


def measured(task: str) -> Option:
    suffix = ".jsonl" if task == "detect" else ".tsv"
    return Option(f"evaluate {task}", task, suffix, lambda at, bad, out: ["evaluate", at.run(task), f"--data.test={bad}"])


def compared(train: object, valid: object, out: Path) -> list[object]:
    vary = ["--vary=model.attention=none,dot"]
    return ["compare", "translate", f"--data.train={train}", f"--data.valid={valid}", *vary, *TEXT, "--out", out]


def guided(at: Place, bad: str, out: Path) -> list[object]:
    settings = [
        f"--data.train={at.good}",
        f"--data.valid={at.good}",
        "--train.guided_alignment=1",
        f"--data.alignments={bad}",
    ]
    return ["train", "translate", *settings, *TEXT, "--out", out]


def asked(at: Place, option: str, bad: str) -> list[object]:
    return ["predict", at.run("translate"), "--file", at.good, option, bad]


def traced(at: Place, out: Path) -> list[object]:
    return ["predict", at.run("translate"), "--trace", f"{out}.attn.safetensors"]


def aligned(at: Place) -> list[object]:
    return ["align", at.run("translate"), f"--data.test={at.good}"]


def back(at: Place, out: Path) -> list[object]:
    return ["backtranslate", at.run("translate"), "--out", f"{out}.tsv", "--quiet"]


def learned(at: Place, bad: str, out: Path) -> list[object]:
    return ["ensemble", at.run("translate"), at.run("translate"), "--out", out, "--learn", bad]


def indexed(at: Place, out: Path) -> list[object]:
    return ["index", at.run("retrieve"), "--out", f"{out}.safetensors"]


OPTIONS = options()
Case = tuple[Option, str]
CASES: list[Case] = [
    (option, kind) for option in OPTIONS for kind in KINDS if "compare data" not in option.name or kind in WRONG - {"a bomb"}
]
"""But a comparison reads one record before it trains, and what falls later is in its table, with exit code 1."""
FEW = [case for case in CASES if case[0].needs in (None, "translate")][::15]
"""What runs without the models of pictures."""


@pytest.fixture(scope="session")
def place(once) -> Place:
    return Place(once("bad files", fill))


def training(place: Place, task: str) -> list[object]:
    """The command that trains the run that options of a task need."""
    settings = [f"--data.{side}={place.table(task)}" for side in ("train", "valid")]
    return ["train", task, *settings, *TASKS[task], "--out", place.run(task)]


@pytest.fixture(scope="session")
def run(once, place):
    """Trains a run for the first who asks."""

    def trained(task: str) -> None:
        def fill(folder: Path) -> None:
            ended = commands.run(*training(place, task), folder=place.home, processor=60)
            assert ended.code == 0, ended.error

        once(f"bad files of {task}", fill)

    return trained


def paragraph(error: str) -> str:
    """The last paragraph of an error; the bad lines of a table follow its first line, each indented."""
    lines = error.strip().splitlines()
    first = next((number for number in reversed(range(len(lines))) if not lines[number].startswith("  ")), 0)
    return "\n".join(lines[first:])


def fault(ended: Ended, option: Option, kind: str) -> str | None:
    """What is wrong with how a command ended."""
    last = paragraph(ended.error)
    if ended.code not in (0, 2):
        return f"ended with {ended.code}: {ended.error[-300:]}"
    if "Traceback" in ended.error or "--debug" in ended.error:
        return f"is unexpected: {ended.error[-300:]}"
    if ended.code == 2 and not (last.startswith("regard: ") and len(last) < 4000):
        return f"is no paragraph: {ended.error[-300:]!r}"
    if any(not (letter.isprintable() or letter in "\t\n") for letter in last):
        return f"writes control characters: {last[-300:]!r}"
    if ended.code == 0 and kind in WRONG and not (kind == "empty" and option.suffix == ".toml"):
        return f"is taken as if nothing were wrong: {ended.error[-300:]}"
    if ended.grown > GROWTH:
        return f"grew by {ended.grown:,} bytes"
    return None


def ask(cases: list[Case], place: Place, folder: Path, answer: Callable[[list[object]], Ended]) -> list[str]:
    """What fell of some cases, each with its number."""
    fallen = []
    for number, (option, kind) in enumerate(cases):
        if kind == "no permission" and os.geteuid() == 0:
            kind = "carriage returns"  # whoever may read everything may read that, too
        command = option.command(place, bad(place.home, kind, option.suffix), folder / f"{number}")
        if (wrong := fault(answer(command), option, kind)) is not None:
            fallen.append(f"{option.name}, {kind}: {wrong}")
    return fallen


def answered(command: list[object]) -> Ended:
    """A command in this process, which may be killed for it: half a minute is its time."""
    from typer.testing import CliRunner

    from regard.cli import app

    warnings.simplefilter("ignore")  # which the command prints, and pytest makes errors
    with open("/proc/self/clear_refs", "w") as marks:
        marks.write("5")  # the peak is that of now
    before = resident("VmHWM")
    signal.alarm(30)
    ended = CliRunner().invoke(app, list(map(str, command)))
    return Ended(ended.exit_code, resident("VmHWM") - before, ended.stdout, ended.stderr)


def test_a_few_bad_files_behind_options_are_refused_in_one_paragraph(tmp_path):
    """In one child, which is enough to find out that one of them is killed or waits: then nothing comes back."""
    assert len(FEW) >= 54
    place = Place(tmp_path / "bad files")
    fill(place.home)
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        with os.fdopen(ends[1], "w") as report:
            try:
                regard.inputs.WAIT = 0.2
                os.chdir(tmp_path)
                assert answered(training(place, "translate")).code == 0
                json.dump(ask(FEW, place, tmp_path, answered), report)
            except BaseException:
                json.dump([traceback.format_exc()], report)
        os._exit(0)
    os.close(ends[1])
    with os.fdopen(ends[0]) as report:
        said = report.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert json.loads(said) == [], "\n".join(json.loads(said))


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("option", OPTIONS, ids=[option.name for option in OPTIONS])
def test_every_bad_file_behind_every_option_is_refused_in_one_paragraph(option, place, run, tmp_path):
    assert len(CASES) >= 1076
    if option.needs is not None:
        run(option.needs)
    cases = [case for case in CASES if case[0] is option]
    assert ask(cases, place, tmp_path, lambda command: commands.run(*command, folder=place.home)) == []


@pytest.mark.soak
def test_a_pipe_that_is_written_to_is_an_input_as_any_other(place, run):
    run("translate")
    ended = commands.run("predict", place.run("translate"), "--file", "/dev/stdin", folder=place.home, given=place.good)
    assert ended.code == 0, ended.error
    assert len(ended.out.splitlines()) == 12
