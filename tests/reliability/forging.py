"""Damage and forgeries of models, each opened in a fork of one process: torch is imported once, and a case may take no memory
of the next.

Called as python forging.py DIRECTORY SHARE, it opens every SHARE-th case and prints one JSON object.
"""

import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "training"))
import small
from onnx import TensorProto, helper

import regard
from regard import manifest, tasks
from regard.config import read
from regard.errors import ConfigError, DamagedError, DataError, RefusedError
from regard.inference.ensemble.directory import Settings, write
from regard.inference.load import load
from regard.interop.huggingface import settings as huggingface
from regard.interop.huggingface.importer import files as imported
from regard.interop.huggingface.tensors import shapes
from regard.training.loop import train
from regard.training.publish import resume
from regard.training.run_directory import MODEL, RunDirectory
from regard.training.state_dict import weights
from regard.training.step import Update

OURS = (DamagedError, RefusedError, ConfigError, DataError)
SECONDS = 20
GROWTH = 256 * 2**20
STATE = "state.safetensors"
GRAPHS = ("encoder.onnx", "step.onnx")
HOSTILE: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**63, 2**70, 10**400, 1e308, float("nan"), float("inf"), "", "x", "\ud800", "a" * 100_000),
    *([], {}, [[]], {"a": {}}, [1, "x", None], list(range(5000)), "../../etc/passwd", "os.system", "__class__"),
)
DEEP = 100_000


class Case(NamedTuple):
    """A copy of a base, what is done to it, and how it is opened."""

    base: str
    name: str
    forge: Callable[[Path, random.Random], None]


# The bases: models that were hardly trained, or not at all.


def run(folder: Path, task: str, *overrides: str) -> None:
    """A run directory of a network with its first weights."""
    from safetensors.torch import save

    config = read(tasks.find(task).Config, overrides=overrides)
    experiment, _ = tasks.experiment(task, config)
    with RunDirectory(folder) as directory:
        directory.claim(experiment)
        directory.publish({MODEL: save(weights(experiment.model))})
    shutil.rmtree(folder / "checkpoints")


TEXT = ("data.samples=40", "model.hidden_size=8", "search.max_length=4", "model.heads=2", "model.attention.heads=2")
CODEC = (
    "data.samples=60",
    "data.height=16",
    "data.width=16",
    "model.hidden_size=8",
    "model.heads=2",
    "model.attention.heads=2",
)
LEARNED = ("model.encoder=transformer", "model.decoder=transformer", "model.positions=learned", "data.joint_vocab=true")


def bases(home: Path) -> None:
    """Fill a folder with one model of each kind."""
    run(home / "words", "translate", *TEXT)
    run(home / "other", "translate", *TEXT, "train.seed=1")
    run(home / "bpe", "translate", *TEXT, *LEARNED, "data.tokenizer=bpe", "data.vocab_size=300")
    run(home / "unigram", "inflect", *TEXT, "data.tokenizer=unigram", "data.vocab_size=280")
    run(home / "caption", "caption", *CODEC)
    run(home / "classify", "classify", *CODEC)
    run(home / "detect", "detect", *CODEC)
    run(home / "vqa", "vqa", *CODEC)
    run(home / "retrieve", "retrieve", *CODEC)
    write(home / "ensemble", [home / "words", home / "other"], Settings("probabilities", (1.0, 2.0)))
    train(small.experiment(max_steps=2, checkpoint_every=1), home / "checkpoint", quiet=True)
    exported(home)
    transformers(home / "huggingface")


def graph(inputs: list[str], outputs: list[str], external: str | None = None) -> bytes:
    """A graph that gives its first input back by other names, and holds one weight."""
    weight = helper.make_tensor("weight", TensorProto.FLOAT, [1], [1.0])
    if external is not None:
        weight.ClearField("float_data")
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value=external)
    nodes = [helper.make_node("Identity", [inputs[0]], [name]) for name in outputs]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None]) for name in (*inputs, *outputs)]
    made = helper.make_graph(nodes, "graph", values[: len(inputs)], values[len(inputs) :], [weight])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    return model.SerializeToString()


STEP_INPUTS = ["token", "keep", "memory.decoder.cross.keys", "memory.decoder.cross.values"]
ENCODER_OUTPUTS = STEP_INPUTS[2:]


def exported(home: Path) -> None:
    """An exported directory, whose graphs are as small as graphs can be, and its archive."""
    folder = home / "exported"
    shutil.copytree(home / "words", folder)
    (folder / MODEL).unlink()
    (folder / "encoder.onnx").write_bytes(graph(["source", "keep"], ENCODER_OUTPUTS))
    (folder / "step.onnx").write_bytes(graph(STEP_INPUTS, ["log_probabilities"]))
    reseal(folder)
    pack(folder, home / "archive.zip")


def pack(folder: Path, path: Path, compression: int = 0) -> None:
    with ZipFile(path, "w", compression) as archive:
        for file in sorted(each for each in folder.rglob("*") if each.is_file() and each.name != ".lock"):
            archive.write(file, file.relative_to(folder))


def transformers(folder: Path) -> None:
    """What save_pretrained would write of a Marian."""
    from safetensors.torch import save_file

    table = {"model_type": "marian", "vocab_size": 12, "d_model": 8, "encoder_layers": 1, "decoder_layers": 1}
    table |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    table |= {"max_position_embeddings": 16, "pad_token_id": 3, "eos_token_id": 0, "decoder_start_token_id": 3}
    table |= {"activation_function": "relu", "scale_embedding": True, "architectures": ["MarianMTModel"]}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(table))
    held = shapes(huggingface.read(folder))
    save_file({name: torch.zeros(shape) for name, shape in held.items()}, folder / MODEL)


# Opening: what a command does with a model.


def open_case(path: Path) -> None:
    if path.name == "huggingface":
        imported(path)
    elif path.name == "checkpoint":
        resume_training(path)
    else:
        found = load(path, "cpu")
        if isinstance(found, regard.inference.sequence_predictor.SequencePredictor) and path.name not in (
            "exported",
            "archive.zip",
            "caption",
        ):
            list(found.predict(["Tom chases Jerry", "a"]))


def resume_training(path: Path) -> None:
    """Take up a training where its newest checkpoint stands, as `regard train` does, with warnings as they come."""
    with warnings.catch_warnings(), RunDirectory(path) as directory:
        warnings.simplefilter("ignore")
        experiment = small.experiment(max_steps=3, checkpoint_every=1)
        directory.claim(experiment)
        resume(directory, Update(experiment).state)


def reseal(folder: Path, change: Callable[[dict], None] = lambda table: None) -> None:
    """Compute the manifest again over whatever the files are now, as a forger can."""
    table = json.loads((folder / manifest.NAME).read_bytes())
    for name in list(table["files"]):
        if os.path.isfile(folder / name):
            table["files"][name] = manifest.digest((folder / name).read_bytes())
        else:
            del table["files"][name]
    for name in GRAPHS:
        if (folder / name).is_file():
            table["files"][name] = manifest.digest((folder / name).read_bytes())
    table.pop("check", None)
    change(table)
    table["check"] = manifest._check(table)
    (folder / manifest.NAME).write_bytes(json.dumps(table).encode())


# Damage: what disks and hands do; the manifest stays.


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def zero_block(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    start = chance.randrange(len(data))
    data[start : start + 64] = bytes(len(data[start : start + 64]))
    path.write_bytes(data)


def exchange(path: Path, make: Callable[[Path], Any]) -> None:
    path.unlink()
    make(path)


DAMAGE: dict[str, Callable[[Path, random.Random], Any]] = {
    "flip": flip,
    "zero block": zero_block,
    "cut": lambda path, chance: os.truncate(path, chance.randrange(path.stat().st_size)),
    "empty": lambda path, chance: os.truncate(path, 0),
    "longer": lambda path, chance: path.write_bytes(path.read_bytes() + b"x"),
    "missing": lambda path, chance: path.unlink(),
    "random bytes": lambda path, chance: path.write_bytes(chance.randbytes(500)),
    "directory": lambda path, chance: exchange(path, Path.mkdir),
    "pipe": lambda path, chance: exchange(path, os.mkfifo),
    "endless": lambda path, chance: exchange(path, lambda each: each.symlink_to("/dev/zero")),
    "link out": lambda path, chance: exchange(path, lambda each: each.symlink_to("/etc/hostname")),
    "link to itself": lambda path, chance: exchange(path, lambda each: each.symlink_to(each.name)),
    "sparse": lambda path, chance: os.truncate(path, 2**40),
    "pickle": lambda path, chance: path.write_bytes(b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94."),
}

# Forgeries: the manifest is right.


def hostile_text(chance: random.Random) -> bytes:
    """A document that is no JSON or TOML, or one that takes a parser's stack or time."""
    deep = chance.choice((b"[" * DEEP, b'{"a":' * DEEP, b"a = " + b"[" * DEEP, b"a" + b".a" * DEEP + b" = 1"))
    choices = (b"", b"null", b"[]", b"3", b'"x"', b"\xff\xfe\x00", b"\x00", b"9" * 10_000, b'{"a": 1, "a": 2}', b"NaN", deep)
    return chance.choice(choices)


def forge_document(name: str, folder: Path, chance: random.Random) -> None:
    (folder / name).write_bytes(hostile_text(chance))
    reseal(folder)


def places(table: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a document: what holds it, and its key or index."""
    keys = table.keys() if isinstance(table, dict) else range(min(len(table), 20)) if isinstance(table, list) else ()
    for key in list(keys):
        yield table, key
        yield from places(table[key])


def forge_value(name: str, folder: Path, chance: random.Random) -> None:
    """Another value in one place of a JSON file, or a place less, or one more."""
    table = json.loads((folder / name).read_bytes())
    holder, key = chance.choice(list(places(table)))
    what = chance.randrange(8)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[chance.choice(("strange", "__class__", "auto_map"))] = chance.choice(HOSTILE)
    else:
        holder[key] = chance.choice(HOSTILE)
    (folder / name).write_text(json.dumps(table), encoding="utf-8")
    if (folder / manifest.NAME).is_file():
        reseal(folder)


CONFIGS = (
    *(
        "model.layers = 1000000",
        "model.hidden_size = 1000000000",
        "model.heads = 1000000",
        "model.feedforward_size = 2147483647",
    ),
    *("data.vocab_size = 9223372036854775807", "data.max_source_length = 1000000000000", "model.layers = 256"),
    *(
        "model.hidden_size = 65536",
        "model.hidden_size = 16384",
        "model.embedding_size = 65536",
        "model.decoder = 'transformer'",
    ),
    *("model.encoder = 'convolution'", "model.positions = 'none'", "model.attention.name = 'none'", "model.layers = 'x'"),
    *("model.attention.name = 'os.system'", "model.attention.name = '__import__'", "task = 'nowhere'", "task = 'caption'"),
    *("task = 'detect'", "task = '../x'", "train.max_steps = -1", "train.learning_rate = nan", "train.seed = 1" + "0" * 30),
    *(
        "model = 3",
        "data = []",
        "strange = 1",
        "model.strange = 1",
        "search.beam = 100000000",
        "search.max_length = 1000000000",
    ),
    *("model.hidden_size = " + "9" * 5000, "model.kernel_size = 1000000", "model.stride = 65536", "model.depth = 1000000"),
    *("data.tokenizer = 'pretrained'", "data.joint_vocab = true", "data.height = 65536", "model.queries = 65536"),
    *("model.heads = 7", "model.self_attention = 'x+y+z'", "model.output.name = 'mixture'", "model.output.heads = 1024"),
    *("search.precision = 'int8'", "search.compile = true", "train.init_from = '/dev/zero'", "data.train = '/dev/zero'"),
    *(
        "model.map_norm = 'group'",
        "model.visual_attention = 'channel'",
        "model.hops = 1000000",
        "model.text_layers = 1000000",
    ),
    *(
        "model.question_layers = 1000000",
        "model.vit.cls_tokens = 1000000",
        "model.glimpses = 1024",
        "model.glimpses = 10**9",
    ),
)


def forge_config(line: str, folder: Path, chance: random.Random) -> None:
    """One setting of config.toml, by its dotted name."""
    import tomllib

    import tomli_w

    path = folder / "config.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    keys, _, value = line.partition(" = ")
    *parents, last = keys.split(".")
    inner = table
    for each in parents:
        inner = inner.setdefault(each, {})
    try:
        inner[last] = tomllib.loads(f"a = {value}")["a"]
        path.write_text(tomli_w.dumps(table), encoding="utf-8")
    except ValueError:  # what only a forger writes
        path.write_text(f"{line}\n{tomli_w.dumps(table)}", encoding="utf-8")
    reseal(folder)


def split(data: bytes) -> tuple[dict, bytes]:
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def joined(header: Any, data: bytes, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


HEADERS: dict[str, Callable[[dict, bytes, str], bytes]] = {
    "length 0": lambda header, data, name: joined(header, data, 0),
    "length of the file": lambda header, data, name: joined(header, data, len(data) + 10_000),
    "length 2^63": lambda header, data, name: joined(header, data, 2**63),
    "length 10^8": lambda header, data, name: joined(header, data, 100_000_000),
    "no JSON": lambda header, data, name: joined(b"[" * DEEP, data),
    "a list": lambda header, data, name: joined([], data),
    "no tensors": lambda header, data, name: joined({}, data),
    "no data": lambda header, data, name: joined(header, b""),
    "a tensor less": lambda header, data, name: joined({k: v for k, v in header.items() if k != name}, data),
    "a tensor more": lambda header, data, name: joined({**header, "more": header[name]}, data),
    "an empty tensor more": lambda header, data, name: joined(
        {**header, "more": {"dtype": "F32", "shape": [0], "data_offsets": [len(data)] * 2}}, data
    ),
    "twice": lambda header, data, name: joined(
        (json.dumps(header)[:-1] + f", {json.dumps(name)}: {json.dumps(header[name])}}}").encode(), data
    ),
    "renamed": lambda header, data, name: joined({k + "x" * (k == name): v for k, v in header.items()}, data),
    "metadata": lambda header, data, name: joined({**header, "__metadata__": HOSTILE[3]}, data),
}
for number, change in enumerate(
    (
        *({"dtype": each} for each in ("F16", "F64", "BOOL", "F8_E4M3", "x", None, [], 3)),
        *({"shape": each} for each in ([], [-1], [2**62, 2**62], [0], ["1"], None, "x", [1.0], [True], {"a": 1})),
        *({"data_offsets": each} for each in ([0, 0], [0, 2**63], [-4, 0], [float("nan"), 4], [4, 0], [], "ab", [0, 4, 8])),
        *({"data_offsets": [float("nan")] * 2, "shape": [0]}, {"shape": [2**40], "data_offsets": [0, 2**42]}),
    )
):
    HEADERS[f"entry {number}: {str(change)[:40]}"] = lambda header, data, name, change=change: joined(
        {**header, name: {**header[name], **change}}, data
    )


def forge_header(kind: str, file: str, folder: Path, chance: random.Random) -> None:
    header, data = split((folder / file).read_bytes())
    name = chance.choice([each for each in header if each != "__metadata__"])
    (folder / file).write_bytes(HEADERS[kind](header, data, name))
    if (folder / manifest.NAME).is_file():
        reseal(folder)


def forge_numbers(value: float, folder: Path, chance: random.Random) -> None:
    """Weights that are no numbers, or are too large."""
    from safetensors.torch import load, save

    tensors = load((folder / MODEL).read_bytes())
    changed = {name: each.fill_(value) if each.is_floating_point() else each for name, each in tensors.items()}
    (folder / MODEL).write_bytes(save(changed))
    reseal(folder)


MANIFESTS: dict[str, Callable[[dict], Any]] = {
    "outside": lambda table: table["files"].update({"../x": "0"}),
    "absolute": lambda table: table["files"].update({"/etc/hostname": "0"}),
    "NUL": lambda table: table["files"].update({"a\0b": "0"}),
    "itself": lambda table: table["files"].update({".": "0"}),
    "no name": lambda table: table["files"].update({"": "0"}),
    "surrogate": lambda table: table["files"].update({"\ud800": "0"}),
    "long name": lambda table: table["files"].update({"a" * 10_000: "0"}),
    "many": lambda table: table["files"].update({str(number): "0" for number in range(100_000)}),
    "files is a list": lambda table: table.update(files=[]),
    "no files": lambda table: table.update(files={}),
    "digest is a number": lambda table: table["files"].update(x=3),
    "pending is missing": lambda table: table.pop("pending", None),
    "pending is hostile": lambda table: table.update(pending={"config.toml": "0"}),
    "format": lambda table: table.update(format=2),
    "format and versions": lambda table: table.update(format=[], versions=3),
    "alignment": lambda table: table.update(alignment={"attention": 3}),
    "alignment elsewhere": lambda table: table.update(alignment={"attention": "x", "head": 99, "shift": True}),
    "step": lambda table: table.update(step="x"),
    "counters": lambda table: table.update(counters={}),
}


def forge_manifest(kind: str, folder: Path, chance: random.Random) -> None:
    reseal(folder, MANIFESTS[kind])


def forge_counter(folder: Path, chance: random.Random) -> None:
    """Another value for one counter of a checkpoint."""

    def change(table: dict) -> None:
        holder, key = chance.choice(list(places(table["counters"])))
        holder[key] = chance.choice(HOSTILE[:14])

    reseal(folder, change)


def swap(other: str, name: str, folder: Path, chance: random.Random) -> None:
    """A file of another model, its digest in the manifest."""
    source = folder.parent.parent / "bases" / other / name
    shutil.copy(source, folder / name)
    reseal(folder)


GRAPHS_OF: dict[str, Callable[[], bytes]] = {
    "external": lambda: graph(STEP_INPUTS, ["log_probabilities"], "../../../../../../etc/hostname"),
    "external, absolute": lambda: graph(STEP_INPUTS, ["log_probabilities"], "/etc/hostname"),
    "external, memory": lambda: graph(STEP_INPUTS, ["log_probabilities"], "*/_ORT_MEM_ADDR_/*"),
    "external, beside": lambda: graph(STEP_INPUTS, ["log_probabilities"], "config.toml"),
    "another face": lambda: graph(["x"], ["y"]),
    "no outputs": lambda: graph(STEP_INPUTS, ["y"]),
    "more inputs": lambda: graph([*STEP_INPUTS, "state.strange"], ["log_probabilities"]),
    "a graph less": lambda: b"",
    "no protobuf": lambda: b"\xff" * 100,
    "a group": lambda: b"\x0b\x0c" * 100,
    "half": lambda: graph(STEP_INPUTS, ["log_probabilities"])[:60],
    "deep": lambda: b"\x3a" + b"\xff\xff\xff\x7f" * 1000,
    "a file of weights": lambda: b"\x02\0\0\0\0\0\0\0{}",
}


def forge_graph(kind: str, name: str, folder: Path, chance: random.Random) -> None:
    (folder / name).write_bytes(GRAPHS_OF[kind]())
    reseal(folder)


def bomb(path: Path, chance: random.Random) -> None:
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("step.onnx", bytes(200_000_000))


def lie(size: int, path: Path, chance: random.Random) -> None:
    """The sizes in the directory of an archive, which is at its end."""
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02")
    data[place + 20 : place + 28] = size.to_bytes(4, "little") * 2
    path.write_bytes(data)


def many(path: Path, chance: random.Random) -> None:
    with ZipFile(path, "w") as archive:
        for number in range(20_000):
            archive.writestr(str(number), b"")


def twice(path: Path, chance: random.Random) -> None:
    with warnings.catch_warnings(), ZipFile(path, "a") as archive:
        warnings.simplefilter("ignore")
        archive.writestr("config.toml", b"x")


def encrypted(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)


def inner(forge: Callable[[Path, random.Random], None], path: Path, chance: random.Random) -> None:
    """Forge the directory that an archive was made from, and pack it."""
    folder = path.with_name("inner")
    shutil.copytree(path.parent.parent / "bases" / "exported", folder)
    forge(folder, chance)
    pack(folder, path)
    shutil.rmtree(folder)


def nested(folder: Path, chance: random.Random) -> None:
    """An ensemble in an ensemble."""
    bases = folder.parent.parent / "bases"
    shutil.rmtree(folder / "members" / "1")
    shutil.copytree(bases / "ensemble", folder / "members" / "1")
    reseal(folder)


def member(forge: Callable[[Path, random.Random], None], folder: Path, chance: random.Random) -> None:
    """Forge a member of an ensemble, and both manifests."""
    forge(folder / "members" / "1", chance)
    reseal(folder)


def of_file(name: str, damage: Callable[[Path, random.Random], Any], folder: Path, chance: random.Random) -> None:
    damage(folder / name, chance)


def sealed_after(forge: Callable[[Path, random.Random], Any], folder: Path, chance: random.Random) -> None:
    """The same damage, but the manifest agrees with it."""
    forge(folder, chance)
    if (folder / manifest.NAME).is_file():
        reseal(folder)


RUNS = ("words", "bpe", "unigram", "caption", "classify", "detect", "vqa", "retrieve")


def cases(home: Path) -> list[Case]:
    """Every case, always in the same order."""
    found = list[Case]()

    def add(base: str, name: str, forge: Callable[..., Any], *given: Any) -> None:
        found.append(Case(base, name, partial(forge, *given)))

    for base in (*RUNS, "ensemble", "exported", "huggingface"):
        folder = home / "bases" / base
        files = sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())
        files = [name for name in files if not name.startswith((".", "samples")) and "lock" not in name]
        full = base in ("words", "ensemble", "exported", "huggingface")
        for number, name in enumerate(files):
            for place, (kind, damage) in enumerate(DAMAGE.items()):
                if full or (number + place) % 3 == 0:
                    add(base, f"{name}: {kind}", of_file, name, damage)
                if name != manifest.NAME and (number + place) % 2 == 0 and kind not in ("sparse", "link out"):
                    add(base, f"{name}: {kind}, sealed", sealed_after, partial(of_file, name, damage))
            if name.endswith((".json", ".toml", ".model")) and name != manifest.NAME:
                for again in range(3):
                    add(base, f"{name}: document {again}", sealed_after, partial(forge_any, name))
            if name.endswith(".json") and not name.endswith(manifest.NAME):
                for again in range(12):
                    add(base, f"{name}: value {again}", forge_value, name)
        if base == "huggingface":
            for name, value in HUGGINGFACE:
                add(base, f"config.json: {name}={str(value)[:20]}", forge_field, name, value)
        else:
            for kind in MANIFESTS:
                add(base, f"manifest: {kind}", forge_manifest, kind)
        if base in (*RUNS, "huggingface"):
            for kind in HEADERS:
                add(base, f"{MODEL}: {kind}", forge_header, kind, MODEL)
        if base in RUNS:
            for line in CONFIGS:
                add(base, f"config: {line[:40]}", forge_config, line)
            for value in (float("nan"), float("inf"), 1e30):
                add(base, f"weights: {value}", forge_numbers, value)
    for other in ("bpe", "unigram", "caption", "classify"):
        for name in ("config.toml", "codec.json", MODEL):
            add("words", f"{name} of {other}", swap, other, name)
            add(other, f"{name} of words", swap, "words", name)
    for kind in GRAPHS_OF:
        for name in GRAPHS:
            add("exported", f"{name}: {kind}", forge_graph, kind, name)
            add("archive.zip", f"{name}: {kind}", inner, partial(forge_graph, kind, name))
    archives = {"bomb": bomb, "many": many, "twice": twice, "encrypted": encrypted, **DAMAGE}
    archives |= {f"lie {size}": partial(lie, size) for size in (0, 2**31, 2**32 - 1)}
    for kind, forge in archives.items():
        add("archive.zip", kind, forge)
    add("ensemble", "nested", nested)
    for kind in HEADERS:
        add("ensemble", f"member: {kind}", member, partial(forge_header, kind, MODEL))
        for step in ("1", "2"):
            add("checkpoint", f"{step}: {kind}", within, step, partial(forge_header, kind, STATE))
    for step in ("1", "2"):
        for again in range(20):
            add("checkpoint", f"{step}: counter {again}", within, step, forge_counter)
        for kind in MANIFESTS:
            add("checkpoint", f"{step}: manifest: {kind}", within, step, partial(forge_manifest, kind))
        for kind, damage in DAMAGE.items():
            for name in (STATE, manifest.NAME):
                add("checkpoint", f"{step}: {name}: {kind}", within, step, partial(of_file, name, damage))
    return found


def forge_any(name: str, folder: Path, chance: random.Random) -> None:
    (folder / name).write_bytes(hostile_text(chance))


def within(step: str, forge: Callable[[Path, random.Random], None], folder: Path, chance: random.Random) -> None:
    forge(folder / "checkpoints" / step, chance)


HUGGINGFACE = (
    *(("auto_map", {"AutoModel": "x--y.z"}), ("_attn_implementation_internal", "x"), ("trust_remote_code", True)),
    *(("model_type", each) for each in (None, 3, "x", "whisper", "bert", [], "../x", "vision-encoder-decoder")),
    *((size, each) for size in huggingface.SIZES for each in (10**9, -1, 0, "8", None, 1.5, True, 10**400, 2**31)),
    *(("architectures", each) for each in ([], ["os.system"], "x", None)),
    *(("activation_function", each) for each in ("x", None, 3, [], "os.system")),
    *((name, each) for name in ("pad_token_id", "eos_token_id") for each in (-1, 10**9, None, "x", [])),
    *((name, each) for name in ("num_beams", "max_length", "length_penalty") for each in (-1, "x", 10**9, [], float("nan"))),
)


def forge_field(name: str, value: Any, folder: Path, chance: random.Random) -> None:
    table = json.loads((folder / "config.json").read_bytes())
    (folder / "config.json").write_text(json.dumps({**table, name: value}))


# One case after the other, each in a process of its own.


def memory(word: str) -> int:
    """VmRSS or VmHWM of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(word):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"the system tells no {word}")


def judge(case: Case, path: Path) -> dict[str, Any]:
    """What became of a case; called in a fork."""
    before, begun = memory("VmRSS"), time.monotonic()
    text = ""
    try:
        open_case(path)
        outcome = "answer"
    except OURS as error:
        outcome, text = type(error).__name__, str(error)
    except BaseException as error:
        outcome, text = f"unexpected {type(error).__name__}", "".join(traceback.format_exception(error))[-3000:]
    return {"outcome": outcome, "text": text, "growth": memory("VmHWM") - before, "seconds": time.monotonic() - begun}


def attempt(case: Case, home: Path, number: int) -> dict[str, Any]:
    """Forge a copy, and open it in a fork that may take so much time and address space."""
    folder = home / "case"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    source, path = home / "bases" / case.base, folder / case.base
    shutil.copytree(source, path) if source.is_dir() else shutil.copy(source, path)
    case.forge(path, random.Random(f"{number} {case.base} {case.name}"))
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with os.fdopen(writing, "w", encoding="utf-8", errors="backslashreplace") as pipe:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            json.dump(judge(case, path), pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        said = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found = json.loads(said) if code == 0 else {"outcome": f"unexpected end {code}", "text": "", "growth": 0, "seconds": 0}
    return {"case": f"{number} {case.base}: {case.name}", **found}


def faults(found: dict[str, Any]) -> list[str]:
    """What is wrong with a result."""
    wrong = list[str]()
    if found["outcome"].startswith("unexpected"):
        wrong.append(found["outcome"])
    if found["growth"] > GROWTH:
        wrong.append(f"took {found['growth'] / 2**20:.0f} MiB")
    if found["seconds"] > SECONDS / 2:
        wrong.append(f"took {found['seconds']:.1f} s")
    if found["outcome"] in ("DamagedError", "RefusedError", "ConfigError") and "/case/" not in found["text"]:
        wrong.append(f"names no file: {found['text']}")
    if "\n" in found["text"] and not wrong:
        wrong.append("is more than one line")
    return wrong


def main(home: Path, share: int) -> dict[str, Any]:
    torch.set_num_threads(1)
    random.seed(0)
    (home / "bases").mkdir(parents=True)
    bases(home / "bases")
    every = cases(home)
    counts: dict[str, int] = {}
    fell = list[str]()
    warnings.simplefilter("ignore")
    for base in ("words", "bpe", "unigram", *RUNS[3:], "ensemble", "exported", "archive.zip", "checkpoint", "huggingface"):
        whole = attempt(Case(base, "whole", lambda path, chance: None), home, -1)
        assert whole["outcome"] == "answer", whole
    chosen = list(enumerate(every))[:: share or 1]
    for number, case in chosen:
        found = attempt(case, home, number)
        counts[found["outcome"]] = counts.get(found["outcome"], 0) + 1
        fell += [f"{found['case']}: {each}\n{found['text']}" for each in faults(found)]
    return {"all": len(every), "cases": len(chosen), "outcomes": counts, "fell": fell}


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]))))
