"""Every output of every command on every kind of target that cannot be written, and two writers of one output.

The options are those of the command line itself: one that takes a path and is neither among the cases nor among the inputs
fails the first test.
"""

import inspect
import json
import os
import shutil
import subprocess
import typing
from contextlib import suppress

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from regard import io
from regard.cli import app
from regard.data.image.writing import png
from regard.interop.huggingface.settings import read
from regard.interop.huggingface.tensors import shapes
from regard.viewer.io import container
from regard.viewer.trace import Trace

from ..cli.conftest import _closed, ready  # noqa: F401  # the fixture ends the process

TINY = ["--model.hidden_size=16", "--data.samples=60", "--train.max_steps=2", "--quiet"]
SMALL = ["--data.height=32", "--data.width=32", "--model.projection_size=8", "--model.text_layers=1"]
MARIAN = {"model_type": "marian", "d_model": 8, "vocab_size": 20, "max_position_embeddings": 12, "pad_token_id": 19}
MARIAN |= {"decoder_start_token_id": 19, "eos_token_id": 0, "activation_function": "swish"}
MARIAN |= {f"{half}_{name}": value for half in ("encoder", "decoder") for name, value in (("layers", 1), ("ffn_dim", 8))}
MARIAN |= {f"{half}_attention_heads": 2 for half in ("encoder", "decoder")}

INPUTS = {"align --gold", "align --reverse"}
OUTPUTS = {
    "train --out": ("train reverse {tiny}", "run", True),
    "compare --out": ("compare reverse --vary model.attention=none {tiny}", "runs", True),
    "ensemble --out": ("ensemble {run} {run}", "all", True),
    "export --out": ("export {run} --to huggingface", "hub", True),
    "import --out": ("import {theirs}", "run", True),
    "predict --out": ("predict {run} --file {texts}", "answers.txt", False),
    "predict --trace": ("predict {run} --file {texts}", "t.attn.safetensors", False),
    "view --html": ("view {trace}", "page.html", False),
    "view --out": ("view {trace} --figure heatmap", "figure.pdf", False),
    "backtranslate --out": ("backtranslate {run} --file {texts} --quiet", "pairs.tsv", False),
    "align --out": ("align {run} --data.test={pairs}", "links.txt", False),
    "index --out": ("index {retriever} --file {pictures}", "index.safetensors", False),
}
"""What each option that writes is tried with, a name for its output, and whether that is a directory."""
PRINTING = ["list", "show additive", "bench", "--help", "predict --help", "--version", "predict {run} --file {texts}"]
PRINTING += ["evaluate {run} --data.test={pairs} --json", "align {run} --data.test={pairs}", "predict {run} 4 --stream"]
"""Commands that write to standard output alone."""

TARGETS = ["read-only", "full", "device", "taken", "long", "nowhere", "below a file", "loop", "below a loop", "deleted"]
MADE = {"train --out", "compare --out"}
"""These make the directories above their own, and are at home in one that is there."""
SKIPPED = {(each, kind) for each in MADE for kind in ("nowhere", "deleted")}
CASES = [(option, target) for option in OUTPUTS for target in TARGETS if (option, target) not in SKIPPED]
DELETE = """
import inspect, shutil
from regard import io
name = io.temporary_name
def delete(directory):
    if inspect.currentframe().f_back.f_code.co_name != "check_place":
        shutil.rmtree({!r}, ignore_errors=True)
    return name(directory)
io.temporary_name = delete
"""
"""Deletes the directory of the output when the command, which has computed everything, is about to write there."""


def part(cases, every):
    """All cases, of which one of `every` runs outside of the soak; the stride meets each option and each kind."""
    return [case if place % every == 0 else pytest.param(*case, marks=pytest.mark.soak) for place, case in enumerate(cases)]


def soaked(cases, quick):
    """All cases, of which the quick ones run outside of the soak."""
    return [case if case in quick else pytest.param(case, marks=pytest.mark.soak) for case in cases]


@pytest.fixture(scope="module")
def inputs(once):
    """What commands are tried on: a model that writes, one that retrieves, a trace, and texts."""

    def fill(folder):
        (folder / "theirs").mkdir(parents=True)
        (folder / "theirs" / "config.json").write_text(json.dumps(MARIAN))
        torch.manual_seed(0)
        weights = {name: torch.randn(shape) for name, shape in shapes(read(folder / "theirs")).items()}
        save_file(weights, folder / "theirs" / "model.safetensors")
        run(f"import {folder}/theirs --out {folder}/run", 0)
        run(" ".join(["train retrieve --out", f"{folder}/retriever", *SMALL, *TINY]), 0)
        (folder / "texts.txt").write_text("4 5 6\n7 8\n")
        (folder / "pairs.tsv").write_text("4 5 6\t7 8\n5 6\t8 9\n")
        (folder / "a.png").write_bytes(png(torch.zeros(3, 32, 32)))
        (folder / "pictures.txt").write_text("a.png\n")
        weights = np.array([[0.7, 0.3], [0.1, 0.9]], np.float32)
        Trace.from_arrays(weights, query=["a", "b"], key=["c", "d"]).save(folder / "trace.attn.safetensors")

    home = once("outputs", fill)
    files = {"texts": "texts.txt", "pairs": "pairs.tsv", "pictures": "pictures.txt", "trace": "trace.attn.safetensors"}
    files |= {name: name for name in ("theirs", "run", "retriever")}
    return {"tiny": " ".join(TINY)} | {name: str(home / path) for name, path in files.items()}


def run(line, code, *more, **how):
    done = ready.run([*line.split(), *more], None, **how)
    assert done.returncode == code, (line, more, done.stdout, done.stderr)
    return done


@pytest.fixture(scope="module")
def disks(tmp_path_factory):
    """A read-only and a full file system; None where there can be none."""
    home = tmp_path_factory.mktemp("disks")
    found = {"read-only": home / "read-only", "full": home / "full"}
    mounted = []
    for name, options in (("read-only", "ro"), ("full", "size=64k")):
        found[name].mkdir()
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(found[name])]
        if os.geteuid() == 0 and not subprocess.run(command, capture_output=True, check=False).returncode:
            mounted.append(found[name])
    if found["full"] in mounted:
        with open(found["full"] / "filler", "wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
    else:
        found["full"] = None
    if found["read-only"] not in mounted:
        found["read-only"].chmod(0o555)  # which does not hold root back
        found["read-only"] = None if os.geteuid() == 0 else found["read-only"]
    yield found
    for each in mounted:
        subprocess.run(["umount", "-l", str(each)], check=True)


def prepared(kind, name, directory, folder, disks):
    """A target of this kind, in the folder or on a disk."""
    if kind in disks:
        if disks[kind] is None:
            pytest.skip(f"needs to mount a {kind} file system, which takes root in a machine of one's own")
        return disks[kind] / name
    if kind == "device":
        (folder / name).symlink_to("/dev/full")
    elif kind == "taken" and directory:
        (folder / name).write_text("mine")
    elif kind == "taken":
        (folder / name / "mine").mkdir(parents=True)
    elif kind == "long":
        return folder / ("x" * 300 + name)
    elif kind == "nowhere":
        return folder / "nowhere" / name
    elif kind == "below a file":
        (folder / "file").write_text("mine")
        return folder / "file" / name
    elif kind == "loop":
        (folder / name).symlink_to(name)
    elif kind == "below a loop":
        (folder / "loop").symlink_to("loop")
        return folder / "loop" / name
    else:
        (folder / "gone").mkdir()
        return folder / "gone" / name
    return folder / name


def tree(folder):
    """Every name below a folder, but for what a later `predict --out` goes on from."""
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.suffix != ".partial")


def check_paragraph(done):
    """The last line on standard error is the only one that tells of an error."""
    assert "Traceback" not in done.stderr
    *before, last = done.stderr.splitlines()
    assert last.startswith("regard: ")
    assert not any(line.startswith("regard: ") for line in before), done.stderr
    assert "`regard --debug ...` shows where" not in last, last
    return last


def test_every_option_that_takes_a_path_is_an_input_or_under_test_here():
    found = set()
    for command in app.registered_commands:
        hints = typing.get_type_hints(command.callback, include_extras=True)
        for name in inspect.signature(command.callback).parameters:
            kinds = [type(each).__name__ for each in getattr(hints[name], "__metadata__", ())]
            writes = name in ("out", "html", "trace", "save", "write", "log", "output") or "Path" in str(hints[name])
            if "OptionInfo" in kinds and writes:
                found.add(f"{command.name or command.callback.__name__} --{name.replace('_', '-')}")
    assert found == {*OUTPUTS, *INPUTS}


@pytest.mark.parametrize(("option", "kind"), part(CASES, 9))
def test_an_output_that_cannot_be_written_is_one_paragraph_and_leaves_nothing(option, kind, inputs, disks, tmp_path):
    line, name, directory = OUTPUTS[option]
    target = prepared(kind, name, directory, tmp_path, disks)
    home = disks.get(kind, tmp_path)
    before = tree(home)
    sabotage = DELETE.format(str(target.parent)) if kind == "deleted" else ""
    done = run(line.format(**inputs), 2, option.split()[1], str(target), before=sabotage)
    told = check_paragraph(done)
    assert name in told
    assert io.TEMPORARY not in told
    left = tree(home)
    if kind == "full" and option in MADE:  # a run directory that has begun stays
        assert not [each for each in left if io.TEMPORARY in each]
        shutil.rmtree(target)
    else:
        assert left == [each for each in before if not (kind == "deleted" and each == "gone")]


@pytest.mark.parametrize("line", soaked(PRINTING, PRINTING[2:4]))
def test_a_full_standard_output_is_one_paragraph(line, inputs):
    done = run(line.format(**inputs), 2, stdout="/dev/full")
    assert check_paragraph(done) == (
        "regard: cannot write to standard output: No space left on device; its end is missing: make room, or write elsewhere"
    )


STRANGE = "\udcff"
"""A byte that is no UTF-8, as Python has it in a name."""
ASKED = ["predict {0} a", "predict {0} a --json --align", "evaluate {0}", "view {0} a --html {0}.html"]
ASKED += ["export {0} --to onnx", "ensemble {0} {0} --out {0}-both", "view {0} a --figure heatmap --out {0}.svg"]
UNKNOWN = ["{0}", "--{0}", "list {0}", "show {0}", "bench {0}", "train {0} --out x", "train reverse {0}.toml --out x"]
UNKNOWN += ["train reverse --{0}=1 --out x", "compare reverse --vary {0}=1 --out x", "predict {0} a", "evaluate {0}"]
UNKNOWN += ["predict {run} --file {0}", "predict {run} a --engine {0}", "predict {run} a --{0}"]
UNKNOWN += ["evaluate {run} --data.test={0}", "align {0} --data.test={pairs}", "align {run} --data.test={0}", "view {0}"]
UNKNOWN += ["view {0} a", "export {0} --to onnx", "export {run} --to {0}", "import {0} --out x"]
UNKNOWN += ["index {retriever} --file {0} --out x.safetensors", "ensemble {0} {0} --out x", "backtranslate {0} --out x.tsv"]
UNKNOWN += [
    "backtranslate {run} --file {0} --out x.tsv",
    "predict {retriever} a --index {0}",
    "backtranslate {run} --out x{0}",
]
"""Commands in which a name that nothing has is not UTF-8."""


@pytest.mark.parametrize("option", soaked([each for each in OUTPUTS if each != "train --out"], {"predict --trace"}))
def test_names_that_are_not_utf8_are_read_and_written(option, inputs, tmp_path):
    home = tmp_path / f"in{STRANGE}"
    shutil.copytree(os.path.dirname(inputs["run"]), home)
    strange = {name: each.replace(os.path.dirname(inputs["run"]), str(home)) for name, each in inputs.items()}
    strange["theirs"] = inputs["theirs"]  # safetensors opens no such path: a reader's to refuse
    line, name, _ = OUTPUTS[option]
    out = tmp_path / f"{STRANGE}{name}"
    done = run(line.format(**strange), 0, option.split()[1], str(out))
    assert out.exists()
    assert "Traceback" not in done.stderr
    assert "regard: " not in done.stderr.replace("regard: no installed font", "")


@pytest.mark.parametrize(
    "asked", [ASKED[:2], pytest.param(ASKED[2:], marks=[pytest.mark.soak, pytest.mark.timeout(300)])], ids=len
)
def test_a_run_whose_name_is_not_utf8_is_trained_to_its_end_and_asked(asked, inputs, tmp_path):
    home = str(tmp_path / f"run{STRANGE}")
    done = run(f"train reverse {inputs['tiny']} --train.log_every=1", 0, "--out", home)
    assert done.stdout.startswith(f"{tmp_path}/run\\udcff: all 2 steps are done; best at step 2")
    (tmp_path / f"test{STRANGE}.tsv").write_text("a\ta\n")
    for line in asked:
        more = [f"--data.test={tmp_path}/test{STRANGE}.tsv"] if line.startswith("evaluate") else []
        done = run(line.format(home), 0, *more)
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("line", soaked(UNKNOWN, UNKNOWN[9::10]))
def test_a_name_that_is_not_utf8_is_spelt_in_a_message(line, inputs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(line.format(f"no{STRANGE}", **inputs), 2)
    assert "no\\udcff" in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("setting", soaked(["data.train", "data.valid", "data.test", "train.init_from"], ["data.train"]))
def test_a_path_that_a_run_could_not_hold_is_refused_before_anything_is_trained(setting, inputs, tmp_path):
    (tmp_path / f"x{STRANGE}.tsv").write_text("abc\tcba\n" * 20)
    out = tmp_path / "run"
    done = run(f"train reverse --out {out}", 2, f"--{setting}={tmp_path}/x{STRANGE}.tsv")
    assert check_paragraph(done) == (
        f"regard: {setting} needs to be UTF-8, since config.toml has it in, got '{tmp_path}/x\\udcff.tsv'; "
        "give the file another name, or link to it"
    )
    assert not out.exists()


def fork(act, *arguments):
    """A child that runs this and says by its exit code whether it ended well."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act(*arguments)
            code = 0
        finally:
            os._exit(code)
    return child


def contents(letter):
    """Files of one writer, so many bytes that another writer comes between."""
    return dict.fromkeys(("x", "below/y"), letter * 300_000)


def write_trace(path, letter):
    container.write(path, {"a": np.frombuffer(letter * 600_000, np.uint8)}, {"writer": letter.decode()})


def write_slowly(path, letter):
    with io.replacing(path) as file:
        for _ in range(10):
            with io.room(path):
                file.write(letter * 60_000)


def read_tree(path):
    """The bytes of a file, or of the files of a directory."""
    return path.read_bytes() if path.is_file() else {name: (path / name).read_bytes() for name in contents(b"a")}


WRITERS = {
    "file": lambda path, letter: io.write(path, letter * 600_000),
    "pieces": write_slowly,
    "directory": lambda path, letter: io.write_directory(path, contents(letter)),
    "trace": write_trace,
}


def check_writers(folder, times):
    """Two writers at once of one path, again and again: both end well, and one of the two is whole there."""
    for place in range(times):
        kind = list(WRITERS)[place % len(WRITERS)]
        alone = []
        for letter in (b"a", b"b"):
            WRITERS[kind](folder / "alone", letter)
            alone.append(read_tree(folder / "alone"))
            io.remove(folder / "alone")
        if place % 8 < 4:  # nothing may stand there, or something of before
            WRITERS[kind](folder / "out", b"c")
        children = [fork(WRITERS[kind], folder / "out", letter) for letter in (b"a", b"b")]
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert codes == [0, 0], kind
        assert read_tree(folder / "out") in alone, kind
        assert os.listdir(folder) == ["out"], kind
        io.remove(folder / "out")


def test_two_writers_of_one_output_both_end_well(tmp_path):
    check_writers(tmp_path, 20)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_two_writers_of_one_output_five_hundred_times(tmp_path):
    check_writers(tmp_path, 500)
