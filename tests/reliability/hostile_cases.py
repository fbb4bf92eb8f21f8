"""Hostile model directories, each made from a good one by one change.

A case is a copy of a base (a small run directory, an exported model, a Hugging Face folder) that one function changes. What it
has to come to: an error of ours, or where only files were added that no manifest names, the answers of the base.
"""

import io
import json
import os
import pickle
import random
import shutil
import socket
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from regard import manifest

MANIFEST, MODEL, CONFIG = "manifest.json", "model.safetensors", "config.toml"
TEXT = ("rnn", "transformer")
RUNS = (*TEXT, "picture")


class Command:
    """Unpickled, it runs a command."""

    def __reduce__(self):
        return os.system, ("touch unpickled",)


PICKLE = pickle.dumps(Command())
SECRET = b"secret " * 100
DIGEST = manifest.digest(SECRET)
"""Of the file outside, which is not opened for it."""
CODE = b"import os\nopen('imported', 'w').close()\nos.system('touch imported')\n"


@dataclass(frozen=True)
class Case:
    name: str
    base: str
    change: Callable[[Path, Path], object]
    """Given the directory and a folder outside of it that nothing may open."""
    harmless: bool = False
    """Whether every question has to get the answer that the base gives."""
    opens: bool = False
    """Whether it may open and answer otherwise than the base: a setting that is allowed was changed."""


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        path.unlink()
    path.write_bytes(data)


def reseal(directory: Path, more: dict | None = None, **entries) -> None:
    """A manifest whose digests are those of the files as they are now, with more files and other entries."""
    table = json.loads((directory / MANIFEST).read_bytes())
    for name in table["files"]:
        if (directory / name).is_file():
            table["files"][name] = manifest.digest((directory / name).read_bytes())
    table["files"] |= more or {}
    table = {name: value for name, value in (table | entries).items() if name not in ("format", "versions", "check")}
    (directory / MANIFEST).write_bytes(manifest.seal(table))


def resealed(change: Callable[[Path, Path], object]) -> Callable[[Path, Path], None]:
    """The change, and a manifest that has the digests of what it left."""

    def changed(directory: Path, outside: Path) -> None:
        change(directory, outside)
        reseal(directory)

    return changed


def replaced(name: str, data: bytes) -> Callable[[Path, Path], None]:
    return resealed(lambda directory, _: put(directory / name, data))


def setting(old: str, new: str) -> Callable[[Path, Path], None]:
    """One line of the config changed."""

    def change(directory: Path, _: Path) -> None:
        text = (directory / CONFIG).read_text()
        assert old in text, (old, text)
        put(directory / CONFIG, text.replace(old, new, 1).encode())

    return resealed(change)


def planted(*files: tuple[str, bytes]) -> Callable[[Path, Path], None]:
    """Files that no manifest names."""
    return lambda directory, _: [put(directory / name, data) for name, data in files]


def safetensors(header: bytes, data: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(**changes) -> bytes:
    """A header with one tensor."""
    return json.dumps({"weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes}).encode()


def torch_zip() -> bytes:
    """What torch.save writes: a zip with a pickle."""
    room = io.BytesIO()
    with zipfile.ZipFile(room, "w") as archive:
        archive.writestr("archive/data.pkl", PICKLE)
        archive.writestr("archive/version", "3\n")
    return room.getvalue()


FOREIGN = {
    "a pickle": PICKLE,
    "a file of torch.save": torch_zip(),
    "nothing": b"",
    "eight bytes of 255": b"\xff" * 8,
    "a header longer than the file": safetensors(b"{}", length=2**40),
    "a header of 2^63": safetensors(b"{}", length=2**63),
    "a header that is no JSON": safetensors(b"{not json"),
    "a header of 10,000 brackets": safetensors(b"[" * 10_000),
    "an offset beyond the end": safetensors(entry(data_offsets=[0, 2**40]), bytes(8)),
    "a shape of 2^62": safetensors(entry(shape=[2**62]), bytes(8)),
    "a shape that overflows": safetensors(entry(shape=[2**32, 2**32]), bytes(8)),
    "a negative shape": safetensors(entry(shape=[-1]), bytes(8)),
    "an unknown dtype": safetensors(entry(dtype="PICKLE"), bytes(8)),
    "metadata with a pickle": safetensors(json.dumps({"__metadata__": {"pickle": PICKLE.hex()}}).encode()),
    "a pickle as the bytes of a tensor": safetensors(
        entry(shape=[len(PICKLE)], dtype="U8", data_offsets=[0, len(PICKLE)]), PICKLE
    ),
}
VALUES = {
    "a module": "os.system",
    "a class of PyTorch": "torch.nn.Linear",
    "a dunder name": "__import__",
    "an attribute": "additive.__class__",
    "a way up": "../../outside/secret",
    "an absolute path": "/etc/passwd",
    "a NUL": "additive\\u0000",
    "an expression": "${os.system('touch ran')}",
    "a template": "{{ self.__init__.__globals__ }}",
    "nothing": "",
    "a long name": "a" * 100_000,
}
SIZES = {
    "a million layers": ("layers = 1", "layers = 1000000"),
    "a size of 2^40": ("hidden_size = 8", "hidden_size = 1099511627776"),
    "a size of 10^5": ("hidden_size = 8", "hidden_size = 100000"),
    "a billion heads": ("heads = 4", "heads = 1000000000"),
    "a size of 0": ("hidden_size = 8", "hidden_size = 0"),
    "a negative size": ("hidden_size = 8", "hidden_size = -8"),
    "a size that is no number": ("hidden_size = 8", "hidden_size = nan"),
    "an infinite size": ("hidden_size = 8", "hidden_size = inf"),
    "a size of 10,000 digits": ("hidden_size = 8", f"hidden_size = {'9' * 10_000}"),
    "a kernel of 10^9": ("kernel_size = 3", "kernel_size = 1000000000"),
}
EXTRA = {
    "_target_": '_target_ = "os.system"',
    "_instantiator": '_instantiator = "os.system"',
    "__class__": '__class__ = "os.system"',
    "__reduce__": '__reduce__ = ["os.system", "touch ran"]',
    "auto_map": 'auto_map = { AutoModel = "modeling.Model" }',
    "trust_remote_code": "trust_remote_code = true",
    "10,000 brackets": "deep = " + "[" * 10_000 + "]" * 10_000,
    "a table in its place": "size.deep = 1",
}
MODULES = ("sitecustomize", "usercustomize", "ctypes", "json", "torch", "numpy", "safetensors", "tokenizers", "config")
PLANTED = {
    "engines with pickles": [
        (f"engines/{name}", PICKLE)
        for name in (
            "compiled/fxgraph/ab/abc/entry",
            "compiled/aotautograd/abc/entry",
            "onnx-float32-0123456789abcdef/step.onnx",
        )
    ],
    "engines with libraries": [
        (f"engines/compiled/{name}.so", b"\x7fELF" + bytes(60)) for name in ("engine", "kernel", "abc")
    ],
    "libraries": [(f"{name}.so", b"\x7fELF" + bytes(60)) for name in ("engine", "_C", "regard", "libtorch", "libgomp")],
    "modules": [(f"{name}.py", CODE) for name in MODULES],
    "packages": [(f"{name}/__init__.py", CODE) for name in (*MODULES, "regard")],
    "compiled modules": [(f"__pycache__/{name}.cpython-{v}.pyc", CODE) for name in MODULES for v in (311, 312, 313)],
    "a .pth file": [("evil.pth", b"import os; os.system('touch ran')\n"), ("pyvenv.cfg", b"home = .\n")],
    "pickles under usual names": [
        (name, PICKLE)
        for name in ("model.pt", "pytorch_model.bin", "training_args.bin", "optimizer.pt", "state.pkl", "model.npz", "x.npy")
    ],
    "a tokenizer with code": [
        ("tokenizer_config.json", b'{"auto_map": {"AutoTokenizer": ["evil.T", null]}}'),
        ("evil.py", CODE),
    ],
    "a conftest and a Makefile": [
        ("conftest.py", CODE),
        ("Makefile", b"all:\n\ttouch ran\n"),
        (".env", b"LD_PRELOAD=./x.so\n"),
    ],
    "a .git with hooks": [
        (".git/hooks/post-checkout", b"#!/bin/sh\ntouch ran\n"),
        (".git/config", b"[core]\nfsmonitor=touch ran\n"),
    ],
    "an odd cache": [("regard/compiled/abc.so", b"\x7fELF"), (".cache/regard/compiled/abc.so", b"\x7fELF")],
    "checkpoints that are pickles": [("checkpoints/9/state.pt", PICKLE), ("checkpoints/9/state.safetensors", PICKLE)],
    "a checkpoint with a manifest of its own": [
        ("checkpoints/9/state.safetensors", PICKLE),
        ("checkpoints/9/manifest.json", manifest.seal({"files": {"state.safetensors": manifest.digest(PICKLE)}, "step": 9})),
    ],
}
NAMES = {
    "an absolute path": lambda outside: str(outside / "secret"),
    "a way up": lambda outside: "../outside/secret",
    "a way down and up": lambda outside: "checkpoints/../../outside/secret",
    "a way up with a point": lambda outside: "./../outside/./secret",
    "a device": lambda outside: "/dev/zero",
    "a NUL": lambda outside: "a\0b",
    "nothing": lambda outside: "",
    "itself": lambda outside: ".",
    "a home folder": lambda outside: "~/secret",
    "a long name": lambda outside: "a" * 5000,
    "a file that is missing": lambda outside: "missing",
    "a folder": lambda outside: "checkpoints",
}
ENTRIES = {
    "files as a list": {"files": ["config.toml"]},
    "files as nothing": {"files": None},
    "digests that are numbers": {"files": {"config.toml": 1}},
    "pending as a word": {"pending": "os.system"},
    "pending names outside": {"pending": {"../outside/secret": "0" * 64}},
    "an alignment that is a pickle": {"alignment": PICKLE.hex()},
    "an alignment with a module": {"alignment": {"attention": "os.system", "head": 2**70, "shift": True}},
}


def linked(name: str, target: Callable[[Path], Path]) -> Callable[[Path, Path], None]:
    """A symbolic link in the place of a file or a folder."""

    def change(directory: Path, outside: Path) -> None:
        remove(directory / name)
        (directory / name).symlink_to(target(outside))

    return change


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    with suppress(FileNotFoundError):
        path.unlink()


def link_with_digest(name: str) -> Callable[[Path, Path], None]:
    """A link out of the directory whose target has the digest that the manifest asks for."""

    def change(directory: Path, outside: Path) -> None:
        if name != MANIFEST:
            reseal(directory, more={name: DIGEST})
        linked(name, lambda where: where / "secret")(directory, outside)

    return change


def special(name: str, how: str) -> Callable[[Path, Path], None]:
    """Something that is no regular file in the place of one."""

    def change(directory: Path, _: Path) -> None:
        path = directory / name
        remove(path)
        if how == "a FIFO":
            os.mkfifo(path)
        elif how == "a folder":
            path.mkdir()
        elif how == "a socket":
            os.chdir(directory)  # a socket's name is short
            with socket.socket(socket.AF_UNIX) as sock:
                sock.bind(name)
        else:
            path.symlink_to("/dev/zero")

    return change


def named(name: Callable[[Path], str]) -> Callable[[Path, Path], None]:
    """A manifest that names one more file, with the digest of the secret outside."""
    return lambda directory, outside: reseal(directory, more={name(outside): DIGEST})


def many_names(directory: Path, _: Path) -> None:
    reseal(directory, more={f"file-{number}": "0" * 64 for number in range(100_000)})


def manifest_of(data: Callable[[bytes], bytes]) -> Callable[[Path, Path], None]:
    return lambda directory, _: put(directory / MANIFEST, data((directory / MANIFEST).read_bytes()))


def member(change: Callable[[Path, Path], object]) -> Callable[[Path, Path], None]:
    """A change of an ensemble's first member, after which the manifests agree."""

    def changed(directory: Path, outside: Path) -> None:
        change(directory / "members" / "0", outside)
        reseal(directory)

    return changed


def inside_itself(directory: Path, _: Path) -> None:
    """An ensemble whose first member is the ensemble."""
    shutil.rmtree(directory / "members" / "0")
    (directory / "members" / "0").symlink_to(directory)
    table = json.loads((directory / MANIFEST).read_bytes())
    del table["files"]["members/0/manifest.json"]
    reseal(directory)


def external(location: Callable[[Path], str], name: str = "step.onnx", fits: bool = False) -> Callable[[Path, Path], None]:
    """A graph of ONNX whose weights lie in another file."""

    def change(directory: Path, outside: Path) -> None:
        import onnx

        model = onnx.load_from_string((directory / name).read_bytes())
        model.graph.initializer[0].ClearField("raw_data")
        model.graph.initializer[0].ClearField("float_data")
        model.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
        where = location(outside)
        for key, value in {"location": where, "offset": "0", "length": "16"}.items():
            pair = model.graph.initializer[0].external_data.add()
            pair.key, pair.value = key, value
        put(directory / name, model.SerializeToString())
        if fits:
            (directory / where).symlink_to(outside / "secret")

    return resealed(change)


def graph(change: Callable[[object], object], name: str = "step.onnx") -> Callable[[Path, Path], None]:
    """A graph of ONNX that is changed as a protocol buffer."""

    def changed(directory: Path, _: Path) -> None:
        import onnx

        model = onnx.load_from_string((directory / name).read_bytes())
        change(model)
        put(directory / name, model.SerializeToString())

    return resealed(changed)


def own_domain(model) -> None:
    model.graph.node[0].domain = "os.system"
    model.opset_import.add(domain="os.system", version=1)


def huge_constant(model) -> None:
    tensor = model.graph.initializer[0]
    tensor.dims[:] = [2**40, 2**20]


def archive_of(change: Callable[[zipfile.ZipFile], object]) -> Callable[[Path, Path], None]:
    """An archive with more in it than there was."""

    def changed(path: Path, _: Path) -> None:
        with zipfile.ZipFile(path, "a") as archive:
            change(archive)

    return changed


def zip_link(archive: zipfile.ZipFile) -> None:
    info = zipfile.ZipInfo("link")
    info.external_attr = 0o120777 << 16
    archive.writestr(info, "/etc/passwd")


def bomb(archive: zipfile.ZipFile) -> None:
    archive.writestr("bomb", bytes(2**26), zipfile.ZIP_DEFLATED)


def theirs(**changes) -> Callable[[Path, Path], None]:
    """A Hugging Face folder with other settings."""

    def changed(directory: Path, _: Path) -> None:
        table = json.loads((directory / "config.json").read_text()) | changes
        put(directory / "config.json", json.dumps(table).encode())

    return changed


def of_runs() -> list[Case]:
    """Changes of run directories that hold weights."""
    cases = list[Case]()
    for base in RUNS:
        cases += [Case(f"{base}: {what} beside it", base, planted(*files), harmless=True) for what, files in PLANTED.items()]
        cases += [Case(f"{base}: weights are {what}", base, replaced(MODEL, data)) for what, data in FOREIGN.items()]
        cases += [Case(f"{base}: the manifest names {what}", base, named(name)) for what, name in NAMES.items()]
        cases += [
            Case(f"{base}: a manifest with {what}", base, lambda directory, _, change=change: reseal(directory, **change))
            for what, change in ENTRIES.items()
        ]
        for name in (MODEL, CONFIG, MANIFEST, "codec.json"):
            cases += [
                Case(f"{base}: {name} is {how}", base, special(name, how))
                for how in ("a FIFO", "a folder", "a socket", "a link to /dev/zero")
            ]
            cases.append(Case(f"{base}: {name} is a link to a secret", base, link_with_digest(name)))
        for name in (".lock", "log.jsonl", "metrics.json", ".tmp-manifest.json", ".tmp-old-model.safetensors"):
            cases.append(
                Case(f"{base}: {name} is a link to a secret", base, linked(name, lambda outside: outside / "secret"))
            )
        for name in ("checkpoints", "engines", ".tmp-old", "checkpoints/1"):
            cases.append(Case(f"{base}: {name} is a link to a folder outside", base, linked(name, lambda outside: outside)))
        cases.append(Case(f"{base}: log.jsonl is a FIFO", base, special("log.jsonl", "a FIFO")))
        cases.append(Case(f"{base}: the codec is a pickle", base, replaced("codec.json", PICKLE)))
        cases.append(Case(f"{base}: the codec is 10,000 brackets", base, replaced("codec.json", b"[" * 10_000)))
        cases.append(Case(f"{base}: the config is a pickle", base, replaced(CONFIG, PICKLE)))
        cases.append(Case(f"{base}: the config is no UTF-8", base, replaced(CONFIG, b'task = "\xff"\n')))
        cases.append(Case(f"{base}: the manifest is a pickle", base, manifest_of(lambda data: PICKLE)))
        cases.append(Case(f"{base}: the manifest is 100,000 brackets", base, manifest_of(lambda data: b"[" * 100_000)))
        cases.append(Case(f"{base}: the manifest is cut", base, manifest_of(lambda data: data[:100])))
        cases.append(Case(f"{base}: the manifest has 100,000 names", base, many_names))
        for what, value in VALUES.items():
            task = "classify" if base == "picture" else "translate"
            cases.append(Case(f"{base}: the task is {what}", base, setting(f'task = "{task}"', f'task = "{value}"')))
    return cases


def of_text() -> list[Case]:
    """Changes of what runs that write text have."""
    cases = list[Case]()
    for base in TEXT:
        attention = "additive" if base == "rnn" else "transformer"
        side = "source" if base == "rnn" else "joint"
        for what, value in VALUES.items():
            cases += [
                Case(f"{base}: the attention is {what}", base, setting(f'name = "{attention}"', f'name = "{value}"')),
                Case(f"{base}: tokens are {what}", base, setting('tokenizer = "words"', f'tokenizer = "{value}"')),
                Case(f"{base}: search.unknown is {what}", base, setting('unknown = "keep"', f'unknown = "{value}"')),
            ]
        cases += [Case(f"{base}: {what}", base, setting(*change)) for what, change in SIZES.items()]
        cases += [
            Case(f"{base}: a config with {what}", base, setting("[model]\n", f"[model]\n{text}\n"))
            for what, text in EXTRA.items()
        ]
        cases += [
            Case(
                f"{base}: the config begins from a file outside",
                base,
                setting("[train]\n", '[train]\ninit_from = "../outside/secret"\n'),
                opens=True,
            ),
            Case(
                f"{base}: the config names data outside",
                base,
                setting("[data]\n", '[data]\ntrain = "../outside/secret"\n'),
                opens=True,
            ),
            Case(
                f"{base}: the config has search.compile",
                base,
                setting("[search]\n", "[search]\ncompile = true\n"),
            ),
            Case(
                f"{base}: the config has train.compile",
                base,
                setting("\ncompile = false\n", "\ncompile = true\n"),
                opens=True,
            ),
        ]
        for name in (f"{side}.json", f"{side}.vocabulary.json"):
            for what, data in {
                "a pickle": PICKLE,
                "nothing": b"",
                "10,000 brackets": b"[" * 10_000,
                "a list": b"[1, 2]",
                "a module": b'{"format": 1, "tokens": "os.system", "_target_": "os.system"}',
            }.items():
                cases.append(Case(f"{base}: {name} is {what}", base, replaced(name, data)))
        for name in (f"{side}.model", f"{side}.tokenizer.json"):
            cases.append(Case(f"{base}: {name} is a pickle that no manifest names", base, planted((name, PICKLE))))
    return cases


def of_ensembles() -> list[Case]:
    settings = {
        "a pickle": PICKLE,
        "10,000 brackets": b"[" * 10_000,
        "a module": b'{"format": 1, "average": "os.system", "weights": [0.5, 0.5]}',
        "a million weights": json.dumps({"format": 1, "average": "probabilities", "weights": [1e-6] * 1_000_000}).encode(),
        "weights that are words": b'{"format": 1, "average": "probabilities", "weights": ["os.system"]}',
        "weights that are no numbers": b'{"format": 1, "average": "probabilities", "weights": [NaN, Infinity]}',
        "no weights": b'{"format": 1, "average": "probabilities", "weights": []}',
    }
    cases = [
        Case(f"ensemble: its settings are {what}", "ensemble", replaced("ensemble.json", data))
        for what, data in settings.items()
    ]
    cases += [
        Case(f"ensemble: {what} beside it", "ensemble", planted(*files), harmless=True) for what, files in PLANTED.items()
    ]
    cases += [
        Case(f"ensemble: weights of a member are {what}", "ensemble", member(replaced(MODEL, data)))
        for what, data in FOREIGN.items()
    ]
    cases += [Case(f"ensemble: a member names {what}", "ensemble", member(named(name))) for what, name in NAMES.items()]
    cases += [
        Case("ensemble: a member is a link outside", "ensemble", linked("members/0", lambda outside: outside)),
        Case("ensemble: it is its own member", "ensemble", inside_itself),
        Case("ensemble: a member is a million layers deep", "ensemble", member(setting(*SIZES["a million layers"]))),
        Case("ensemble: weights of a member are a FIFO", "ensemble", special("members/0/model.safetensors", "a FIFO")),
    ]
    return cases


def of_graphs() -> list[Case]:
    """Changes of exported graphs of ONNX."""
    cases = [Case(f"onnx: {what} beside it", "onnx", planted(*files), harmless=True) for what, files in PLANTED.items()]
    for name in ("step.onnx", "encoder.onnx"):
        for what, data in {"a pickle": PICKLE, "nothing": b"", "a thousand bytes of 255": b"\xff" * 1000}.items():
            cases.append(Case(f"onnx: {name} is {what}", "onnx", replaced(name, data)))
        cases.append(Case(f"onnx: {name} is a FIFO", "onnx", special(name, "a FIFO")))
        cases.append(Case(f"onnx: {name} is a link to a secret", "onnx", link_with_digest(name)))
    for what, where in {
        "at an absolute path": lambda outside: str(outside / "secret"),
        "above": lambda outside: "../outside/secret",
        "in /etc/passwd": lambda outside: "/etc/passwd",
        "in a file of the directory": lambda outside: "config.toml",
        "in nothing": lambda outside: "",
    }.items():
        cases.append(Case(f"onnx: weights lie {what}", "onnx", external(where)))
    cases += [
        Case("onnx: weights lie behind a link", "onnx", external(lambda outside: "weights.bin", fits=True)),
        Case("onnx: an operator of another domain", "onnx", graph(own_domain)),
        Case("onnx: a constant of 2^60 numbers", "onnx", graph(huge_constant)),
        Case("onnx: a graph without outputs", "onnx", graph(lambda model: model.graph.ClearField("output"))),
        Case("onnx: a graph without nodes", "onnx", graph(lambda model: model.graph.ClearField("node"))),
        Case("onnx: a format of the future", "onnx", graph(lambda model: setattr(model, "ir_version", 10_000))),
    ]
    cases += [Case(f"onnx: the manifest names {what}", "onnx", named(name)) for what, name in NAMES.items()]
    archives = {
        "a name above": lambda archive: archive.writestr("../../outside/planted", b"x"),
        "an absolute name": lambda archive: archive.writestr("/tmp/planted", b"x"),
        "a link": zip_link,
        "a bomb": bomb,
        "modules": lambda archive: [archive.writestr(f"{name}.py", CODE) for name in MODULES],
        "engines": lambda archive: [archive.writestr(name, data) for name, data in PLANTED["engines with pickles"]],
        "a pickle of torch": lambda archive: archive.writestr("archive/data.pkl", PICKLE),
    }
    cases += [
        Case(
            f"archive: {what} in it",
            "archive.zip",
            archive_of(change),
            harmless=what in ("modules", "engines", "a pickle of torch"),
            opens=what == "a link",
        )
        for what, change in archives.items()
    ]
    for what, data in {"a pickle": PICKLE, "a file of torch.save": torch_zip(), "nothing": b""}.items():
        cases.append(Case(f"archive: it is {what}", "archive.zip", lambda path, _, data=data: put(path, data)))
    cases.append(Case("archive: it is cut", "archive.zip", lambda path, _: put(path, path.read_bytes()[:-100])))
    return cases


def of_folders() -> list[Case]:
    """Changes of what transformers would open."""
    settings = {
        "auto_map": {"auto_map": {"AutoModel": "evil--repo.Model"}},
        "trust_remote_code": {"trust_remote_code": True},
        "an attention of its own": {"_attn_implementation_internal": "evil/kernels"},
        "a kernel from a hub": {"attn_implementation": "evil/kernels:attend"},
        "an unknown family": {"model_type": "../evil"},
        "a module as its class": {"architectures": ["os.system"]},
        "a size of 10^12": {"d_model": 10**12},
        "a million layers": {"encoder_layers": 10**6},
        "a vocabulary of 10^12": {"vocab_size": 10**12},
        "a negative size": {"d_model": -8},
        "no heads": {"encoder_attention_heads": 0},
        "an activation of its own": {"activation_function": "os.system"},
        "a type of its own": {"dtype": "os.system"},
        "nested settings": {"decoder": {"decoder": {"model_type": "os"}}},
    }
    cases = [Case(f"theirs: {what}", "theirs", theirs(**changes)) for what, changes in settings.items()]
    files = {
        "config.json": {"a pickle": PICKLE, "100,000 brackets": b"[" * 100_000, "nothing": b"", "a list": b"[]"},
        "generation_config.json": {"a pickle": PICKLE, "a module": b'{"_target_": "os.system", "num_beams": 1e99}'},
        MODEL: {what: FOREIGN[what] for what in ("a pickle", "a header of 2^63", "a shape that overflows")},
        "tokenizer.json": {"a pickle": PICKLE, "100,000 brackets": b"[" * 100_000, "a list": b"[]"},
    }
    for name, contents in files.items():
        cases += [
            Case(
                f"theirs: {name} is {what}", "theirs", lambda directory, _, name=name, data=data: put(directory / name, data)
            )
            for what, data in contents.items()
        ]
        cases.append(Case(f"theirs: {name} is a FIFO", "theirs", special(name, "a FIFO")))
    cases += [
        Case(
            "theirs: pickles in place of safetensors",
            "theirs",
            lambda directory, _: (remove(directory / MODEL), put(directory / "pytorch_model.bin", PICKLE)),
        ),
        Case(
            "theirs: modules beside it",
            "theirs",
            planted(*((f"{name}.py", CODE) for name in (*MODULES, "modeling_evil"))),
            harmless=True,
        ),
        Case(
            "theirs: an index that names a file outside",
            "theirs",
            planted(("model.safetensors.index.json", b'{"weight_map": {"a": "../outside/secret"}}')),
            opens=True,
        ),
    ]
    return cases


def every() -> list[Case]:
    return [*of_runs(), *of_text(), *of_ensembles(), *of_graphs(), *of_folders()]


def some(cases: list[Case], count: int, seed: int = 0) -> list[Case]:
    """So many, of every base, each kind of change once before any comes again with another base."""
    cases = random.Random(seed).sample(cases, len(cases))
    seen, first, later = set[str](), list[Case](), list[Case]()
    for case in cases:
        what = case.name.partition(": ")[2]
        (later if what in seen else first).append(case)
        seen.add(what)
    return [*first, *later][:count]
