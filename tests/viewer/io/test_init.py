"""The trace file: what goes in comes out, and what is broken is refused by a sentence that names it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from regard.viewer.io import container, load, manifest_of, save, upgrade
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Frame, Trace

from .traces import ATTENTION, change, raw, refused, rows, same, simple, stored, whole


def test_everything_comes_back_as_it_was(path):
    trace = whole()
    assert save(trace, path) == path
    same(trace, load(path))


def test_what_is_read_can_be_written_again_to_the_same_bytes(path):
    save(whole(), path)
    first = path.read_bytes()
    save(load(path), path)  # over the very file that the arrays are views of
    assert path.read_bytes() == first


def test_without_exact_weights_what_is_read_is_about_right_and_says_so(path, tmp_path):
    trace = simple(rows(2, 40, 300, dtype=np.float16))
    save(trace, path, exact=False)
    small, attention_map = path.stat().st_size, load(path).attention()
    wanted = trace.attention().weights.astype(np.float32)
    bound = np.sqrt(wanted) / 255 + 1 / 510**2 + wanted * 2.0**-10
    assert (np.abs(attention_map.weights.astype(np.float32) - wanted) <= bound).all()
    assert attention_map.source == "eight_bits; given"
    again = tmp_path / "again.safetensors"
    save(load(path), again, exact=False)
    assert load(again).attention().source == attention_map.source
    np.testing.assert_array_equal(load(again).attention().weights, attention_map.weights)
    save(trace, path)
    assert small < 0.4 * path.stat().st_size


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


def test_the_path_must_be_one_that_can_be_written(tmp_path):
    with pytest.raises(TraceError, match=r"called something.attn.safetensors, got 't.html'"):
        save(simple(), tmp_path / "t.html")
    with pytest.raises(TraceError, match="there is no directory"):
        save(simple(), tmp_path / "no" / "t.safetensors")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(TraceError, match="there is no file"):
        load(tmp_path / "t.safetensors")
    with pytest.raises(TraceError, match="is not a file; a trace is one file"):
        load(tmp_path)


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


def test_nan_in_a_large_file_is_found_too(path, monkeypatch):
    monkeypatch.setattr("regard.viewer.io.THOROUGH", 0)
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
    assert trace.attention("cross").weights.tolist() == [[[1.0, 0.0]]]
    assert trace.example().axes["src"].labels == ["Tom", "<eos>"]


def test_an_upgrade_reaches_todays_version_and_today_stays():
    assert upgrade({"version": 0}) == {"version": 1, "training": [], "notes": []}
    assert upgrade({"version": 1}) == {"version": 1}


def test_a_manifest_can_be_asked_for_alone(path):
    save(simple(), path)
    assert manifest_of(container.read(path)[1])["model"]["name"] == "t"
