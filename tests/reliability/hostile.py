"""Open, resume and ask hostile model directories, each in a fork under an audit hook: everything is imported once, here.

Called as python hostile.py FOLDER COUNT REAL, it prints one JSON object: for every case that fell, what it did. With REAL=1
the exported models have real graphs of ONNX, which takes a minute; else they are made by hand, as they always are where a case
asks the engine onnx of a run: to export one PyTorch generates code and executes it, which the hook would note. The hook sees what Python does; what
libraries open by themselves is seen by a watch (inotify) on the folder outside, which nothing may open.
"""

import contextlib
import gc
import importlib
import io
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import is_dataclass
from functools import wraps
from pathlib import Path

import hostile_cases
import hostile_leaks
import pydantic
import torch
import typer
from audit import Audit, Watch

import regard
import regard.cli
import regard.tasks
from regard.interop.onnx import write
from regard.models.seq2seq import Seq2Seq

SECONDS = 20
"""A question that takes longer has hung."""
COMPILING = 120
MEMORY = 2 * 2**30
"""Bytes of memory that a case may take beside what is taken already."""
TEXT = "Tom chases Jerry"
SMALL = ["--data.samples=16", "--model.hidden_size=8", "--model.layers=1", "--train.max_steps=1", "--quiet"]
TRANSFORMER = ["--model.encoder=transformer", "--model.decoder=transformer", "--model.attention=transformer"]
TRANSFORMER += ["--model.attention.heads=2", "--model.heads=2", "--data.joint_vocab=true", "--model.tie_embeddings=true"]
TRAIN = {
    "rnn": ["translate", *SMALL],
    "other": ["translate", *SMALL, "--train.seed=2"],
    "transformer": ["translate", *SMALL, *TRANSFORMER],
    "picture": ["classify", "--data.samples=8", "--data.height=32", "--data.width=32", "--train.max_steps=1", "--quiet"],
}
ENGINES = {"native": [], "onnx": ["--engine", "onnx"], "ctranslate2": ["--engine", "ctranslate2"], "compiled": ["--compile"]}
EVERY = (*ENGINES, "resume", "import")
"""The names of all questions."""


def questions(base: str, model: Path) -> dict[str, list[str]]:
    """Everything that is asked of a model, by name: the arguments of the command."""
    if base == "theirs":
        return {
            "native": ["predict", str(model), TEXT],
            "import": ["import", str(model), "--out", str(model.parent / "out" / "run")],
        }
    what = str(model.parent / "out" / "picture.png") if base == "picture" else TEXT
    asked = {name: ["predict", str(model), what, "--device", "cpu", *options] for name, options in ENGINES.items()}
    if base != "archive.zip":
        asked["resume"] = ["train", *TRAIN.get(base, TRAIN["rnn"]), "--out", str(model)]
    return asked


def ask(command: object, arguments: list[str]) -> tuple[int, str, str]:
    """The exit status of a command, and what it wrote, in this process."""
    out, error = io.StringIO(), io.StringIO()
    code: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_: typer.echo(f"regard: {message}", err=True)
                command.main(arguments, prog_name="regard")
        except SystemExit as ended:
            code = ended.code or 0
        except BaseException:
            code = traceback.format_exc()
    return code if isinstance(code, int) else f"{code}", out.getvalue(), error.getvalue()


def wrong(code: object, told: str) -> str | None:
    """What is wrong with how a command ended; None: it answered, or refused in our own words."""
    if not isinstance(code, int):
        return f"raised {code[-300:]}"
    lines = [line for line in told.splitlines() if line]
    if code == 0:
        return None
    if code != 2 or "Traceback" in told or any(line.endswith("shows where)") for line in lines):
        return f"exit status {code}: {told[-300:]}"
    return None if lines and all(line.startswith("regard: ") for line in lines) else f"no paragraph: {told[-300:]}"


class Bases:
    """Small models of every kind, and what they answer."""

    def __init__(self, home: Path, command: object):
        self.home, self.command = home, command
        self.answers: dict[str, dict[str, list]] = {}

    def made(self) -> None:
        for name, options in TRAIN.items():
            self.run("train", *options, "--out", self.home / name)
        self.run("ensemble", self.home / "rnn", self.home / "other", "--out", self.home / "ensemble")
        self.run("export", self.home / "transformer", "--to", "huggingface", "--out", self.home / "theirs")

    def exported(self, export: object) -> None:
        """In a fork: onnxruntime starts threads, which no fork would have."""
        write.graphs = export
        self.run("export", self.home / "rnn", "--to", "onnx", "--out", self.home / "onnx")
        self.run("export", self.home / "rnn", "--to", "onnx", "--out", self.home / "archive.zip")

    def run(self, *arguments: object) -> None:
        code, _, told = ask(self.command, list(map(str, arguments)))
        assert code == 0, (arguments, code, told)


def by_hand(trained, precision: str = "float32") -> tuple[bytes, bytes]:
    """Graphs that answer from a table of tokens: an export takes ten seconds, and here they only have to be opened and run."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    if not isinstance(trained.model, Seq2Seq):
        return write.graphs.__wrapped__(trained, precision)  # which refuses it
    size = trained.codec.target.size
    table = -np.abs(np.arange(size)[:, None] + 1.0 - np.arange(size)[None]).astype(np.float32)
    table[size // 2 :, 2] = 1.0

    def graph(name, nodes, given, found, constants):
        inputs = [helper.make_tensor_value_info(each, kind, [None, None]) for each, kind in given.items()]
        outputs = [helper.make_tensor_value_info(each, kind, [None] * rank) for each, (kind, rank) in found.items()]
        values = [numpy_helper.from_array(value, each) for each, value in constants.items()]
        made = helper.make_graph([helper.make_node(*each) for each in nodes], name, inputs, outputs, values)
        return helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=10).SerializeToString()

    assert onnx is not None
    whole, yes = TensorProto.INT64, TensorProto.BOOL
    axes = {"axes": np.array([1]), "one": np.array([1])}
    encoder = graph(
        "encoder",
        [("ReduceSum", ["source", "axes"], ["sum"]), ("Squeeze", ["sum", "axes"], ["state.count"])],
        {"source": whole, "keep": yes},
        {"state.count": (whole, 1)},
        {"axes": axes["axes"]},
    )
    step = graph(
        "step",
        [("Gather", ["table", "token"], ["log_probabilities"]), ("Add", ["state.count", "one"], ["next.count"])],
        {"token": whole, "keep": yes, "state.count": whole},
        {"log_probabilities": (TensorProto.FLOAT, 3), "next.count": (whole, 2)},
        {"table": table, "one": axes["one"]},
    )
    return encoder, step


def forked(work) -> object:
    """What a function gives in a fork, which writes it line by line as JSON; the last line may be that it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            work(lambda line: os.write(writing, json.dumps(line).encode() + b"\n"))
            code = 0
        except BaseException:
            os.write(writing, json.dumps({"harness": traceback.format_exc()}).encode() + b"\n")
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        lines = [json.loads(line) for line in pipe if line.endswith("\n")]
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return [*lines, {"killed": status}] if status < 0 else lines


def attempt(case, bases: Bases, room: Path, outside: Path, asked: dict[str, bool], tell) -> None:
    """One case, in this process, which ends with it. `asked` says of each question whether it may start the compiler."""
    home = Path(tempfile.mkdtemp(dir=room / "cases"))
    model = home / ("model.zip" if case.base.endswith(".zip") else "model")
    source = bases.home / case.base
    shutil.copytree(source, model) if source.is_dir() else shutil.copy(source, model)
    (home / "out").mkdir()
    shutil.copy(room / "picture.png", home / "out" / "picture.png")
    (home / "outside").symlink_to(outside)  # as `..` names it from the directory
    os.chdir(home)
    case.change(model, outside)
    os.chdir(model if model.is_dir() and not model.is_symlink() else home)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    audit = Audit(model, room, outside)
    for name, arguments in questions(case.base, model).items():
        if name not in asked:
            continue
        signal.alarm(COMPILING if asked[name] else SECONDS)
        audit.events, audit.writes_model, audit.compiles = [], name == "resume", asked[name]
        tell({"begins": name})
        audit.busy = False
        code, out, told = ask(bases.command, arguments)
        audit.busy = True
        signal.alarm(0)
        ran = [each for each in ("ran", "imported", "unpickled") if (model / each).exists() or (home / each).exists()]
        tell(
            {
                "asked": name,
                "code": code,
                "out": out.replace(str(home), "HOME"),
                "told": told.replace(str(home), "HOME"),
                "events": audit.events,
                "ran": ran,
            }
        )


def faults(case, lines: list[dict], usual: dict[str, dict], touched: list[str]) -> list[str]:
    """What a case did that it must not."""
    found = [f"outside was touched: {sorted(set(touched))}"] if touched else []
    begun = ""
    for line in lines:
        begun = line.get("begins", begun)
        if "killed" in line or "harness" in line:
            found.append(f"{begun}: {'hung' if line.get('killed') == -signal.SIGALRM else line}")
        if "asked" not in line:
            continue
        found += [f"{begun}: {event}" for event in line["events"]]
        found += [f"{begun}: code ran and left {line['ran']}"] if line["ran"] else []
        if (why := wrong(line["code"], line["told"])) is not None:
            found.append(f"{begun}: {why}")
        expected = usual.get(begun)
        same = expected is None or (line["code"], line["out"]) == (expected["code"], expected["out"])
        if not same and (case.harmless or (line["code"] == 0 and not case.opens)):
            found.append(f"{begun}: answers {line['code']} {line['out'][:60]!r} {line['told'][:100]!r}")
    return found


ADAPTER, ADAPTERS = pydantic.TypeAdapter, dict[object, object]()


def adapter(kind: object, **options: object) -> object:
    """What checks a config, made once for all forks: it takes longer than most questions."""
    if not is_dataclass(kind):
        return ADAPTER(kind, **options)
    if kind not in ADAPTERS:
        ADAPTERS[kind] = ADAPTER(kind, **options)
    return ADAPTERS[kind]


class Server:
    """Has imported everything, has the bases, and asks cases, each in a fork."""

    def __init__(self, room: Path, real: bool):
        self.room = room
        for name in ("tmp", "cache", "cases", "bases", "outside"):
            (room / name).mkdir(mode=0o700)
        (room / "outside" / "secret").write_bytes(hostile_cases.SECRET)
        compiled = Path.home() / ".cache" / "regard" / "compiled"
        if compiled.is_dir():  # or it is compiled here, which takes ten seconds
            shutil.copytree(compiled, room / "cache" / "regard" / "compiled")
            (room / "cache" / "regard").chmod(0o700)
        os.environ |= {"XDG_CACHE_HOME": str(room / "cache"), "TMPDIR": str(room / "tmp")}
        tempfile.tempdir = str(room / "tmp")
        os.environ.pop("TORCHINDUCTOR_CACHE_DIR", None)
        torch.set_num_threads(1)
        os.fsync = lambda handle: None  # which is for power failures
        self.bases = Bases(room / "bases", typer.main.get_command(regard.cli.app))
        export, write.graphs = write.graphs, wraps(write.graphs)(by_hand)
        self.bases.made()
        pydantic.TypeAdapter = adapter
        shutil.copy(next((room / "bases" / "picture" / "samples").glob("*.png")), room / "picture.png")
        self.together(lambda tell: self.bases.exported(export if real else write.graphs))
        for task in ("translate", "classify"):
            kind = regard.tasks.find(task).Config
            adapter(kind)
        self.usual = {
            base: self.usually(base)
            for base in ("rnn", "transformer", "picture", "ensemble", "onnx", "archive.zip", "theirs")
        }
        gc.collect()
        gc.freeze()
        gc.disable()  # a fork that looked through what is here would copy it
        self.watch = Watch(room / "outside")

    def together(self, work) -> list[dict]:
        """Do something in a fork, and import here what it has imported, so that no case has to."""
        before = set(sys.modules)

        def told(tell):
            work(tell)
            tell({"modules": [name for name in sys.modules if name not in before]})

        lines = forked(told)
        assert "modules" in lines[-1], lines
        for name in lines.pop()["modules"]:
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        return lines

    def usually(self, base: str) -> dict[str, dict]:
        """What each question to a base comes to."""
        case = hostile_cases.Case(f"{base} itself", base, lambda directory, outside: None)
        everything = dict.fromkeys(EVERY, True)
        lines = self.together(lambda tell: attempt(case, self.bases, self.room, self.room / "outside", everything, tell))
        return {line["asked"]: line for line in lines if "asked" in line}

    def fell(self, case, names: Sequence[str] = EVERY, compiles: bool = False) -> list[str]:
        """What is wrong with a case, asked these questions; nothing where all is well."""
        asked = dict.fromkeys(names, False) | ({"compiled": True} if compiles else {})
        self.watch.seen()
        lines = forked(lambda tell: attempt(case, self.bases, self.room, self.room / "outside", asked, tell))
        found = faults(case, lines, self.usual[case.base], self.watch.seen())
        for left in (self.room / "cases").iterdir():
            shutil.rmtree(left, ignore_errors=True)
        return found


def spent() -> float:
    """Seconds of the processor that this process and its forks have taken."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def main(room: Path, count: int, real: bool) -> None:
    sys.path.remove(str(Path(__file__).parent))  # like the command `regard`, no module comes from where this is
    server = Server(room, real)
    ready = spent()
    chosen = hostile_cases.some(hostile_cases.every(), count)
    fallen, times = dict[str, list[str]](), dict[str, float]()
    for case in chosen:
        before = spent()
        if found := server.fell(case):
            fallen[case.name] = found
            print(case.name, str(found)[:500], file=sys.stderr, flush=True)
        times[case.name] = round(spent() - before, 2)
    leaks = {case.name: server.fell(case, ["native"]) for case in hostile_leaks.CASES}
    anew = hostile_cases.Case("rnn: the library is compiled anew", "rnn", lambda directory, _: None, harmless=True)
    if real:
        shutil.rmtree(room / "cache" / "regard" / "compiled")
        chosen.append(anew)
        if found := server.fell(anew, compiles=True):
            fallen[anew.name] = found
    print(
        json.dumps(
            {
                "cases": len(chosen),
                "bases": sorted({case.base for case in chosen}),
                "fallen": fallen,
                "leaks": leaks,
                "usual": {
                    base: {name: line["code"] for name, line in lines.items()} for base, lines in server.usual.items()
                },
                "strange": {
                    base: [line for line in lines.values() if line["events"]] for base, lines in server.usual.items()
                },
                "slowest": sorted(times.items(), key=lambda each: -each[1])[:8],
                "seconds": [round(ready, 1), round(spent(), 1)],
            }
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1")
