"""What is written of a trace: a manifest that follows the schema, and the arrays that it names."""

import json

import numpy as np
import pytest
from safetensors import safe_open

from regard.data.axis import Index
from regard.viewer.io import load, offsets, save
from regard.viewer.io.errors import TraceError
from regard.viewer.io.schema import fault
from regard.viewer.trace import AttentionMap, Example, Trace

from .traces import rng, rows, simple, whole


def test_every_manifest_follows_the_schema(path):
    save(whole(), path)
    with safe_open(path, framework="numpy") as file:  # the format's own reader
        manifest = json.loads(file.metadata()["manifest"])
        names = set(file.keys())
        np.testing.assert_array_equal(file.get_tensor("a/0/1/f16"), load(path).attention("cross").weights)
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


def test_eight_bits_hold_no_negative_weights(path):
    with pytest.raises(TraceError, match="'cross' has negative weights, which 8 bits cannot hold; save it with exact=True"):
        save(simple(-rows(1, 2, 3), sums_to_one=False), path, exact=False)


def test_a_mask_of_many_layers_is_stored_once(path):
    allowed = rng.random((4, 4)) > 0.3
    attentions = tuple(
        AttentionMap(f"l{n}", "t", "t", rows(1, 4, 4) * allowed, n, allowed.copy(), sums_to_one=False) for n in range(3)
    )
    save(Trace("t", (Example({"t": Index(4)}, attentions),)), path)
    assert [name for name in offsets(path) if name.endswith("allowed")] == ["a/0/0/allowed"]
    np.testing.assert_array_equal(load(path).attention("l2").allowed, allowed)


def test_a_type_that_the_container_does_not_have_is_refused(path):
    with pytest.raises(TraceError, match="the array 'a/0/0/statistics/max' is of type complex64; a trace holds uint8"):
        save(simple(statistics={"max": np.ones((1, 2), np.complex64)}), path)
