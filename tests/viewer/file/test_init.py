"""The trace file: what goes in comes out, and what is broken is refused by a sentence that names it."""

import json
import os
import tracemalloc
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file

from regard.viewer.axes import Audio, Image, Index, Series, Text
from regard.viewer.file import container, load, manifest_of, offsets, save, upgrade
from regard.viewer.file.check import TraceError
from regard.viewer.file.schema import fault
from regard.viewer.trace import Beams, Choice, Edge, Example, Frame, Graph, Look, Node, Trace

rng = np.random.default_rng(0)


def rows(*shape, dtype=np.float32):
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
    looks = (
        Look("own", "source", "source", own, allowed=causal, source="reference", scores=np.where(causal, own, -np.inf)),
        Look("cross", "target", "source", rows(2, 2, 3, dtype=np.float16), layer=1, values=np.ones((2, 3), np.float32)),
        Look("heard", "target", "frames", rows(2, 2, 4) * heads, allowed=heads, sums_to_one=False),
        Look("seen", "target", "patches", rows(1, 1, 5), rows=(1,), statistics={"entropy": np.ones((1, 2), np.float32)}),
        Look("loud", "days", "slots", -9 * rows(1, 3, 6), sums_to_one=False),
        Look("told", "target", "slots", None, statistics={"max": np.ones((3, 2), np.float32), "received": np.ones((3, 6))}),
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
    first = Example(axes, looks, (Choice(0, "汤姆", -0.25, (("汤姆", -0.25), ("汤", -2.0))),), beams, "one")
    graph = Graph(
        (
            Node("m", "model"),
            Node("cross", "attention", "m", {"query": (1, 2, 8)}, (1, 2, 8), 99, {"heads": 2, "score": "dot"}),
        ),
        (Edge("m", "cross", (1, 3, 8), "key,value"),),
    )
    film = (Frame(10, 2.5, {"own": rows(2, 3, 3)}), Frame(20, None, {"own": rows(2, 3, 3, dtype=np.float16)}))
    return Trace("测试", (first, Example({"n": Index(2)}, ())), graph, film, ("took 3 ms",))


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


@pytest.fixture
def path(tmp_path):
    return tmp_path / "t.attn.safetensors"


def simple(weights=None, **parts):
    weights = rows(1, 2, 3) if weights is None else weights
    look = Look("cross", "target", "source", weights, **parts)
    return Trace("t", (Example({"target": Index(weights.shape[1]), "source": Index(weights.shape[2])}, (look,)),))


def test_everything_comes_back_as_it_was(path):
    trace = whole()
    assert save(trace, path) == path
    same(trace, load(path))


def test_what_is_read_can_be_written_again_to_the_same_bytes(path):
    save(whole(), path)
    first = path.read_bytes()
    save(load(path), path)  # over the very file that the arrays are views of
    assert path.read_bytes() == first


def test_every_manifest_follows_the_schema(path):
    save(whole(), path)
    with safe_open(path, framework="numpy") as file:  # the format's own reader
        manifest = json.loads(file.metadata()["manifest"])
        names = set(file.keys())
        np.testing.assert_array_equal(file.get_tensor("a/0/1/f16"), load(path).look("cross").weights)
    assert fault(manifest) is None
    assert manifest["examples"][0]["attentions"][0]["mask"] == "causal"
    assert manifest["examples"][0]["attentions"][2]["mask"] == "given"
    assert {"a/0/1", "a/0/1/f16", "b/0/parents", "r/1/0", "t/0/2/sound"} <= names


def test_eight_bits_are_the_square_root_of_the_weight_by_the_scale(path):
    save(simple(np.array([[[0, 0.25, 4.0]]], np.float32), sums_to_one=False), path)
    with safe_open(path, framework="numpy") as file:
        assert file.get_tensor("a/0/0").tolist() == [[[0, 64, 255]]]  # 255 sqrt(0.25 / 4) = 63.75
        [example] = json.loads(file.metadata()["manifest"])["examples"]
        assert example["attentions"][0]["scale"] == 4.0


def test_without_exact_weights_what_is_read_is_about_right_and_says_so(path, tmp_path):
    trace = simple(rows(2, 40, 300, dtype=np.float16))
    save(trace, path, exact=False)
    small, look = path.stat().st_size, load(path).look()
    wanted = trace.look().weights.astype(np.float32)
    bound = np.sqrt(wanted) / 255 + 1 / 510**2 + wanted * 2.0**-10
    assert (np.abs(look.weights.astype(np.float32) - wanted) <= bound).all()
    assert look.source == "about: stored in 8 bits; given"
    again = tmp_path / "again.safetensors"
    save(load(path), again, exact=False)
    assert load(again).look().source == look.source
    np.testing.assert_array_equal(load(again).look().weights, look.weights)
    save(trace, path)
    assert small < 0.4 * path.stat().st_size


def test_eight_bits_hold_no_negative_weights(path):
    with pytest.raises(TraceError, match="'cross' has negative weights, which 8 bits cannot hold; save it with exact=True"):
        save(simple(-rows(1, 2, 3), sums_to_one=False), path, exact=False)


def test_a_mask_of_many_layers_is_stored_once(path):
    allowed = rng.random((4, 4)) > 0.3
    looks = tuple(Look(f"l{n}", "t", "t", rows(1, 4, 4) * allowed, n, allowed.copy(), sums_to_one=False) for n in range(3))
    save(Trace("t", (Example({"t": Index(4)}, looks),)), path)
    assert [name for name in offsets(path) if name.endswith("allowed")] == ["a/0/0/allowed"]
    np.testing.assert_array_equal(load(path).look("l2").allowed, allowed)


def test_a_broken_trace_is_not_written(path):
    with pytest.raises(TraceError, match="weights must sum to 1"):
        save(simple(rows(1, 2, 3) / 2), path)
    assert not path.exists()


def test_numbers_of_numpy_are_numbers_and_other_things_are_refused(path):
    trace = replace(simple(), training=(Frame(3, 0.5, {}),))
    object.__setattr__(trace.training[0], "step", np.int64(4))  # what people pass, though its type says otherwise
    object.__setattr__(trace.training[0], "loss", np.float32(0.25))
    save(trace, path)
    assert (load(path).training[0].step, load(path).training[0].loss) == (4, 0.25)
    object.__setattr__(trace.training[0], "step", np.array([4]))
    with pytest.raises(TraceError, match=r"a manifest holds texts and numbers, got array\(\[4\]\), a ndarray"):
        save(trace, path)


def test_a_type_that_the_container_does_not_have_is_refused(path):
    with pytest.raises(TraceError, match="the array 'a/0/0/statistics/max' is of type complex64; a trace holds uint8"):
        save(simple(statistics={"max": np.ones((1, 2), np.complex64)}), path)


def test_the_path_must_be_one_that_can_be_written(tmp_path):
    with pytest.raises(TraceError, match=r"called something.attn.safetensors, got 't.html'"):
        save(simple(), tmp_path / "t.html")
    with pytest.raises(TraceError, match="there is no directory"):
        save(simple(), tmp_path / "no" / "t.safetensors")


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    save(simple(), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *paths: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        save(whole(), path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_large_file_opens_without_being_read_into_memory(path):
    weights = np.zeros((12, 2048, 1024), np.float16)
    weights[:, :, 7] = 1
    save(simple(weights), path)
    tracemalloc.start()
    trace = load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert path.stat().st_size > 70e6
    assert peak < 1e6
    assert trace.look().weights[3, 4, 7] == 1
    with pytest.raises(ValueError, match="read-only"):
        trace.look().weights[0] = 0


def test_offsets_say_where_the_bytes_are(path):
    trace = simple()
    save(trace, path)
    place = offsets(path)["a/0/0/f32"]
    assert (place.dtype, place.shape) == ("F32", (1, 2, 3))
    data = path.read_bytes()[place.start : place.end]
    np.testing.assert_array_equal(np.frombuffer(data, "<f4").reshape(1, 2, 3), trace.look().weights)


@pytest.mark.parametrize("scale", [1.0, 3.7, 60000.0, 1e6])
def test_every_level_of_eight_bits_survives_being_read_and_written_again(path, scale):
    levels = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    save(simple((scale * (levels / 255.0) ** 2).astype(np.float32), sums_to_one=False), path, exact=False)
    save(load(path), path, exact=False)
    np.testing.assert_array_equal(container.read(path)[0]["a/0/0"], levels)


# what is not a trace


def raw(path, header, data=b""):
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


def refused(path, *said):
    with pytest.raises(TraceError) as caught:
        load(path)
    for part in (path.name, *said):
        assert part in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(TraceError, match="there is no file"):
        load(tmp_path / "t.safetensors")
    with pytest.raises(TraceError, match="is not a file; a trace is one file"):
        load(tmp_path)


@pytest.mark.parametrize(
    "data", [b"", b"hello", b"PK\x03\x04 a zip or a pickle of long ago", b"\x02" + b"\0" * 7 + b"[]", b"\0" * 30]
)
def test_a_file_of_another_kind(path, data):
    path.write_bytes(data)
    refused(path, "is not a safetensors file, so it is no trace")


def test_a_file_cut_off_anywhere_is_refused(path):
    save(whole(), path)
    data = path.read_bytes()
    for length in [*range(40), *range(40, len(data), 61), len(data) - 1]:
        path.write_bytes(data[:length])
        with pytest.raises(TraceError, match=r"cut off|not a safetensors file"):
            load(path)
    path.write_bytes(data + b"x")
    refused(path, "has 1 bytes behind its last array")


@given(st.integers(0, 2**31), st.integers(0, 255))
def test_a_changed_byte_never_gives_anything_but_a_trace_or_a_refusal(tmp_path_factory, place, value):
    path = tmp_path_factory.mktemp("changed") / "t.safetensors"
    save(simple(np.full((1, 2, 3), 1 / 3, np.float16)), path)
    data = bytearray(path.read_bytes())
    data[place % len(data)] = value
    path.write_bytes(data)
    try:
        found = load(path)
    except TraceError as error:
        found = error
    assert isinstance(found, Trace) or str(path) in str(found)


@pytest.mark.parametrize(
    ("header", "data", "said"),
    [
        (b"{nonsense", b"", "the header is not JSON"),
        (b'{"a": 1, "a": 2}', b"", "the header is not JSON: the key 'a' stands twice"),
        (b'{"a": NaN}', b"", "NaN is not a number"),
        (b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b"", "the header is nested too deep to be read"),
        ({"__metadata__": {"a": 1}}, b"", "the metadata of its header must be texts by name"),
        ({"a": {"dtype": "F32"}}, b"", "the entry of 'a' must have dtype, shape and data_offsets"),
        ({"a": 3}, b"", "the entry of 'a' must have"),
        ({"a": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}, b"1", "the array 'a' is of type F8_E4M3; a trace holds U8, BOOL"),
        ({"a": {"dtype": "U8", "shape": [-1], "data_offsets": [0, 1]}}, b"1", "the array 'a' has the shape [-1], which is none"),
        ({"a": {"dtype": "U8", "shape": [True], "data_offsets": [0, 1]}}, b"1", "the array 'a' has the shape [True]"),
        ({"a": {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4]}}, b"1234", "of shape (1000000000000,) in F32 needs 4,000,000,000,000 bytes, it has 4"),
        ({"a": {"dtype": "U8", "shape": [10**12], "data_offsets": [0, 10**12]}}, b"1", "is cut off: its arrays end at byte 1,000,000,000,0"),
        ({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}, b"12", "the array 'a' begins at byte"),
        ({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}, "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}}, b"123", "the array 'b' begins at byte"),
    ],
)  # fmt: skip
def test_a_header_that_lies(path, header, data, said):
    raw(path, header, data)
    refused(path, said)


def test_a_header_longer_than_the_file(path):
    path.write_bytes((1000).to_bytes(8, "little") + b"{}")
    refused(path, "is cut off: its header has 1,000 bytes and 2 are there")


def test_a_safetensors_file_that_is_no_trace(path):
    save_file({"a": np.ones(3)}, path)
    refused(path, "a safetensors file without a manifest in its metadata, so it is no trace")


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("{", "the manifest is not JSON"),
        ("[]", "the manifest's format must be 'attn-trace', got '[]'"),
        ('{"format": "other"}', "the manifest's format must be 'attn-trace', got 'other'"),
        ('{"format": "attn-trace", "format": "attn-trace"}', "the key 'format' stands twice"),
        ("[" * 100_000 + "]" * 100_000, "the manifest is nested too deep to be read"),
        ('{"format": "attn-trace"}', "the manifest's version must be a whole number, got None"),
        ('{"format": "attn-trace", "version": true}', "the manifest's version must be a whole number, got True"),
        ('{"format": "attn-trace", "version": 2}', "written by a newer regard, in version 2 of the format; this one reads up to 1: upgrade"),
        ('{"format": "attn-trace", "version": 1}', "the manifest does not follow the schema: model is missing"),
        ('{"format": "attn-trace", "version": 1' + '9' * 5000 + '}', "the manifest is not JSON"),
    ],
)  # fmt: skip
def test_a_manifest_that_is_none(path, manifest, said):
    raw(path, {"__metadata__": {"manifest": manifest}})
    refused(path, said)


def change(*keys, to):
    def apply(manifest):
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = to

    return apply


ATTENTION = ("examples", 0, "attentions", 0)


@pytest.mark.parametrize(
    ("keys", "to", "said"),
    [
        (("extra",), 1, "does not follow the schema: extra must not be there"),
        ((*ATTENTION, "layer"), "0", "examples[0].attentions[0].layer must be of type integer, got '0'"),
        ((*ATTENTION, "mask"), "some", "examples[0].attentions[0].mask must be one of 'full', 'causal', 'given', got 'some'"),
        (("examples", 0, "axes", "source", "length"), 10**12, "axes.source.length must be at most 16777216, got 1000000000000"),
        (("examples", 0, "axes", "source", "kind"), "smell", "axes.source.kind must be one of 'text', 'audio', 'image', 'series', 'index', got 'smell'"),
        (("examples", 0, "axes", "source", "length"), 7, "attention 'cross': weights (heads, target, source) must be (1, 2, 7) to fit the axes, got (1, 2, 3)"),
        ((*ATTENTION, "weights"), "a/9", "attention 'cross', weights: the manifest names the array 'a/9', and the file has none of that name"),
        ((*ATTENTION, "weights"), "a/0/0/f32", "the array 'a/0/0/f32' must be uint8, got float32"),
        ((*ATTENTION, "weights"), None, "it has exact weights 'a/0/0/f32', and none in 8 bits; it needs both"),
        ((*ATTENTION, "exact"), "small", "its weights are (1, 2, 3) in 8 bits and (1,) exact; they must agree"),
        ((*ATTENTION, "exact"), "nan", "attention 'cross', head 0, query 0, key 0: a weight must be a finite number, got nan"),
        ((*ATTENTION, "heads"), 2, "weights of 2 heads are (heads, queries, keys), got (1, 2, 3)"),
        ((*ATTENTION, "mask"), "given", "its mask is said to be given, and allowed names no array"),
        ((*ATTENTION, "query"), "middle", "its query axis is 'middle', and the example has the axes target, source"),
        ((*ATTENTION, "scale"), 1e300, "scale must be at most 3e+38, got 1e+300"),
        ((*ATTENTION, "rows"), [5], "row 5 was recorded, and the axis 'target' has 2 places"),
        ((*ATTENTION, "statistics"), {"max": "lost"}, "statistic 'max': the manifest names the array 'lost'"),
        (("training",), [{"step": 1, "attentions": {"cross": "lost"}}], "training frame 0, attention 'cross': the manifest names the array 'lost'"),
    ],
)  # fmt: skip
def test_a_manifest_that_does_not_fit(path, keys, to, said):
    arrays = {"small": np.ones(1, np.float32), "nan": np.full((1, 2, 3), np.nan, np.float32)}
    stored(path, change(*keys, to=to), arrays)
    refused(path, said)


def test_a_causal_mask_is_bounded_since_the_file_does_not_bound_it(path):
    def wide(manifest):
        example = manifest["examples"][0]
        example["axes"] = {"source": {"kind": "index", "length": 1 << 20}, "target": {"kind": "index", "length": 1 << 20}}
        example["attentions"][0]["mask"] = "causal"

    stored(path, wide)
    refused(path, "attention 'cross': its causal mask has 1,048,576 x 1,048,576 cells")


def test_a_causal_mask_needs_its_axes_and_enough_keys(path):
    def lost(manifest):
        manifest["examples"][0]["attentions"][0] |= {"mask": "causal", "key": "middle"}

    stored(path, lost)
    refused(path, "its axes 'target' and 'middle' are not among target, source")

    def short(manifest):
        manifest["examples"][0]["attentions"][0]["mask"] = "causal"
        manifest["examples"][0]["axes"]["source"]["length"] = 1

    stored(path, short)
    refused(path, "a causal mask needs at least as many keys as queries, got 1 and 2")


def test_nan_in_a_large_file_is_found_too(path, monkeypatch):
    monkeypatch.setattr("regard.viewer.file.THOROUGH", 0)
    stored(path, change(*ATTENTION, "exact", to="nan"), {"nan": np.full((1, 2, 3), np.nan, np.float32)})
    refused(path, "head 0, query 0, key 0: a weight must be a finite number, got nan")


VERSION_0 = {
    "format": "attn-trace",
    "version": 0,
    "model": {"name": "bahdanau", "graph": {"nodes": [], "edges": []}},
    "examples": [
        {
            "axes": {
                "src": {"kind": "text", "pieces": ["Tom", "<eos>"], "text": "Tom", "spans": [[0, 3], None], "special": [1]},
                "tgt": {"kind": "text", "pieces": ["汤姆"], "text": "汤姆", "spans": [[0, 2]]},
            },
            "attentions": [
                {"id": "cross", "query": "tgt", "key": "src", "layer": 0, "heads": 1, "weights": "a/0", "mask": "full", "rows_sum_to": 1}
            ],
        }
    ],
}  # fmt: skip


def test_a_file_of_version_0_opens(path):
    save_file({"a/0": np.array([[[255, 0]]], np.uint8)}, path, metadata={"manifest": json.dumps(VERSION_0)})
    trace = load(path)
    assert (trace.name, trace.training, trace.notes) == ("bahdanau", (), ())
    assert trace.look("cross").weights.tolist() == [[[1.0, 0.0]]]
    assert trace.example().axes["src"].labels == ["Tom", "<eos>"]


def test_an_upgrade_reaches_todays_version_and_today_stays():
    assert upgrade({"version": 0}) == {"version": 1, "training": [], "notes": []}
    assert upgrade({"version": 1}) == {"version": 1}


def test_a_manifest_can_be_asked_for_alone(path):
    save(simple(), path)
    assert manifest_of(container.read(path)[1])["model"]["name"] == "t"
