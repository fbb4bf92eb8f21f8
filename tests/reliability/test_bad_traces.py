"""Mutated traces (F3): opening one gives a trace or a TraceError in one short line, and takes no memory that its file does not."""

import json
import random
from copy import deepcopy
from typing import Any

import pytest

from regard.viewer.io import load, save
from regard.viewer.io.errors import TraceError

from ..viewer.io.traces import simple, whole

VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**63,
    10**40,
    1.5,
    -0.0,
    float("nan"),
    float("inf"),
    "",
    "cross",
    "a/0/0/f32",
]
VALUES += [
    "full",
    "causal",
    "given",
    "text",
    "x" * 5000,
    "\ud800",
    [],
    {},
    [0],
    [[0, 1]],
    {"kind": "index", "length": 60_000},
]
GROWTH = 256 << 20
pytestmark = pytest.mark.unhooked


def parts(content: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """The header of a file, the manifest in it, and the arrays."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["manifest"]), content[8 + length :]


def joined(header: dict[str, Any], manifest: dict[str, Any], arrays: bytes) -> bytes:
    header["__metadata__"]["manifest"] = json.dumps(manifest)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + arrays


def leaves(tree: Any) -> list[tuple[Any, Any]]:
    """Every place of a tree of JSON: what holds it, and its key or number."""
    keys = tree.keys() if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    return [found for key in keys for found in [(tree, key), *leaves(tree[key])]]


def changed(rng: random.Random, tree: dict[str, Any]) -> None:
    """Another value, one more or one less, at one place of a tree."""
    holder, key = rng.choice(leaves(tree))
    way = rng.randrange(6)
    if way == 0:
        del holder[key]
    elif way == 1 and isinstance(holder, dict):
        holder[rng.choice(("extra", "__class__", "kind", "mask"))] = deepcopy(rng.choice(VALUES))
    elif way == 2:
        other, name = rng.choice(leaves(tree))
        holder[key] = json.loads(json.dumps(other[name]))
    else:
        holder[key] = deepcopy(rng.choice(VALUES))


def mutated(rng: random.Random, content: bytes) -> bytes:
    """The bytes of a trace with one to four things done to them."""
    if rng.random() < 0.6:
        header, manifest, arrays = parts(content)
        for _ in range(rng.choice((1, 1, 2, 4))):
            changed(rng, header if rng.random() < 0.2 and len(header) > 1 else manifest)
            if not isinstance(header.get("__metadata__"), dict) or not manifest:
                return json.dumps(header).encode()
        return joined(header, manifest, arrays)
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 3, 12))):
        data[rng.randrange(len(data))] = rng.choice((0, 255, 127, rng.randrange(256)))
    return bytes(data[: rng.randrange(len(data))] if rng.random() < 0.3 else data)


def peak() -> int:
    """The peak of resident memory in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) << 10


def run(path, first: int, count: int) -> None:
    contents = []
    for trace in (simple(), whole()):
        save(trace, path)
        contents.append(path.read_bytes())
    fallen, refused = [], 0
    with open("/proc/self/clear_refs", "w") as marks:
        marks.write("5")  # the peak is that of now
    before = peak()
    for seed in range(first, first + count):
        rng = random.Random(seed)
        path.write_bytes(mutated(rng, rng.choice(contents)))
        try:
            load(path)
        except TraceError as error:
            refused += 1
            if len(str(error)) > 2000 or "\n" in str(error):
                fallen.append(f"seed {seed}: says {str(error)[:300]!r}")
        except Exception as error:
            fallen.append(f"seed {seed}: {type(error).__name__}: {str(error)[:200]}")
        if peak() - before > GROWTH:
            fallen.append(f"seed {seed}: grew by {peak() - before:,} bytes")
            break
    assert fallen == []
    assert refused > count / 2


def test_a_thousand_mutated_traces_are_traces_or_refused(tmp_path):
    run(tmp_path / "t.attn.safetensors", 0, 1000)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_twenty_thousand_mutated_traces_are_traces_or_refused(tmp_path):
    run(tmp_path / "t.attn.safetensors", 1000, 20_000)
