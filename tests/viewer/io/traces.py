"""Traces to store, whole and simple, the ways to break the file of one, and what must then be said."""

import json
from copy import copy
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from regard.data.axis import Audio, Image, Index, Series, Text
from regard.viewer.io import load, save
from regard.viewer.io.check import check
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import AttentionMap, Beams, Choice, Edge, Example, Frame, Graph, Links, Node, Trace

rng = np.random.default_rng(0)

AXES = {"source": Text.of(["Tom", "chases", "Jerry"]), "target": Text.of(["汤姆", "追逐"])}
WEIGHTS = np.array([[[0.5, 0.25, 0.25], [0, 1, 0]], [[1, 0, 0], [0, 0, 1]]], np.float32)
LOOK = AttentionMap("cross", "target", "source", WEIGHTS)
BEAMS = Beams(
    parents=np.array([[0, 0], [1, -1]], np.int32),
    tokens=(("汤姆", "汤"), ("追逐", "")),
    scores=np.array([[-0.5, -1.0], [-1.5, 0]], np.float32),
    ended=np.array([[False, False], [True, False]]),
    best=(1, 0),
    name="cross",
    weights=np.full((2, 2, 3), 1 / 3, np.float32),
)
ATTENTION = ("examples", 0, "attentions", 0)
"""The way to the only attention in the manifest of a simple trace."""


def rows(*shape, dtype=np.float32):
    """Random weights whose rows sum to 1."""
    weights = rng.random(shape) ** 4
    return (weights / weights.sum(-1, keepdims=True)).astype(dtype)


def whole():
    """A trace that uses every part of every record."""
    axes = {
        "source": Text(("▁Tom", "\ud800</script>", "<eos>"), "Tom \ud800", ((0, 3), (4, 5), None), (2,), "en"),
        "target": Text(("汤姆", "追逐"), "汤姆追逐", ((0, 2), (2, 4)), (), "zh-Hans"),
        "frames": Audio(4, 0.04, rng.random((5, 8)).astype(np.float32), rng.random(9).astype(np.float32), 16000),
        "patches": Image((2, 2), (3, 4), rng.integers(0, 255, (3, 4, 3)).astype(np.uint8), ("CLS",)),
        "days": Series(np.arange(3) * 86400.0, np.array([[1], [np.nan], [3]], np.float32), ("load",), 2, True),
        "slots": Index(6),
    }
    causal = np.tri(3, dtype=bool)
    own = rows(2, 3, 3) * causal
    own /= own.sum(-1, keepdims=True)
    heads = np.ones((2, 2, 4), bool)
    heads[1, :, 3] = False
    attentions = (
        AttentionMap(
            "own", "source", "source", own, allowed=causal, source="reference", scores=np.where(causal, own, -np.inf)
        ),
        AttentionMap(
            "cross", "target", "source", rows(2, 2, 3, dtype=np.float16), layer=1, values=np.ones((2, 3), np.float32)
        ),
        AttentionMap("heard", "target", "frames", rows(2, 2, 4) * heads, allowed=heads, sums_to_one=False),
        AttentionMap(
            "seen", "target", "patches", rows(1, 1, 5), rows=(1,), statistics={"entropy": np.ones((1, 2), np.float32)}
        ),
        AttentionMap("loud", "days", "slots", -9 * rows(1, 3, 6), sums_to_one=False),
        AttentionMap(
            "told", "target", "slots", None, statistics={"max": np.ones((3, 2), np.float32), "received": np.ones((3, 6))}
        ),
    )
    beams = Beams(
        np.array([[0, 0], [1, -1]], np.int32),
        (("a", "b"), ("c", "")),
        np.zeros((2, 2), np.float32),
        np.array([[False, False], [True, False]]),
        (1, 0),
        "cross",
        rows(2, 2, 3, dtype=np.float16),
    )
    first = Example(
        axes,
        attentions,
        (Choice(0, "汤姆", -0.25, (("汤姆", -0.25), ("汤", -2.0))),),
        beams,
        "one",
        Links("target", "source", ((0, 0),), ((1, 2), (1, 0))),
    )
    graph = Graph(
        (
            Node("m", "model"),
            Node("cross", "attention", "m", {"query": (1, 2, 8)}, (1, 2, 8), 99, {"heads": 2, "score": "dot"}),
        ),
        (Edge("m", "cross", (1, 3, 8), "key,value"),),
    )
    film = (Frame(10, 2.5, {"own": rows(2, 3, 3)}), Frame(20, None, {"own": rows(2, 3, 3, dtype=np.float16)}))
    return Trace("测试", (first, Example({"n": Index(2)}, ())), graph, film, ("took 3 ms",))


def simple(weights=None, **parts):
    """A trace of one attention between numbered places."""
    weights = rows(1, 2, 3) if weights is None else weights
    attention_map = AttentionMap("cross", "target", "source", weights, **parts)
    return Trace("t", (Example({"target": Index(weights.shape[1]), "source": Index(weights.shape[2])}, (attention_map,)),))


def same(left, right, where="trace"):
    """Whether two trees of records are equal to the last bit."""
    assert type(left) is type(right) or isinstance(left, np.ndarray), f"{where}: {type(left)} and {type(right)}"
    if is_dataclass(left):
        for each in fields(left):
            same(getattr(left, each.name), getattr(right, each.name), f"{where}.{each.name}")
    elif isinstance(left, np.ndarray):
        assert (left.dtype, left.shape) == (right.dtype, right.shape), where
        np.testing.assert_array_equal(left, right, err_msg=where)
    elif isinstance(left, dict):
        assert list(left) == list(right), where
        for name in left:
            same(left[name], right[name], f"{where}[{name!r}]")
    elif isinstance(left, tuple):
        assert len(left) == len(right), where
        for place, (one, other) in enumerate(zip(left, right, strict=True)):
            same(one, other, f"{where}[{place}]")
    else:
        assert left == right, where


def raw(path, header, data=b""):
    """A file with this header, whether or not it is one."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def stored(path, change, arrays=None):
    """A good file with its manifest changed."""
    save(simple(), path)
    with safe_open(path, framework="numpy") as file:
        manifest = json.loads(file.metadata()["manifest"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(manifest)
    save_file({**tensors, **(arrays or {})}, path, metadata={"manifest": json.dumps(manifest)})


def change(*keys, to):
    """What puts something else into a place of a manifest."""

    def apply(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = to

    return apply


def refused(path, *said):
    """A file that is not opened, and what is said instead."""
    with pytest.raises(TraceError) as caught:
        load(path)
    for part in (path.name, *said):
        assert part in str(caught.value), caught.value


def forced(record, **parts):
    """A record with parts of the wrong type, as Python lets people write them; the tests' own type checker would not."""
    wrong = copy(record)
    for name, value in parts.items():
        object.__setattr__(wrong, name, value)
    return wrong


def trace(attention_map=LOOK, axes=AXES, **parts):
    """A trace that passes, unless what is given does not."""
    return Trace("t", (Example(axes, (attention_map,), **parts),))


def changed(head, query, key, value):
    """The good attention with one weight changed."""
    weights = WEIGHTS.copy()
    weights[head, query, key] = value
    return replace(LOOK, weights=weights)


def refuses(broken, *said):
    """A trace that does not pass, and what is said of it."""
    with pytest.raises(TraceError) as caught:
        check(broken)
    for part in said:
        assert part in str(caught.value), caught.value
