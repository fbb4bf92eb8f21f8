"""Traces from arrays of any model, and what is said where they do not fit."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.data.axis import Image, Index, Text
from regard.viewer.io.check import TraceError
from regard.viewer.trace import Trace

TARGET, SOURCE = ["汤姆", "追逐", "杰瑞"], ["Tom", "chases", "Jerry", "<eos>"]
CROSS = np.full((3, 4), 0.25, np.float32)
OWN = np.full((3, 3), 1 / 3, np.float32)


def test_one_matrix_with_its_tokens():
    trace = Trace.from_arrays(CROSS, TARGET, SOURCE, name="decoder.cross", title="one", lang="zh")
    attention_map, [example] = trace.attention(), trace.examples
    assert (attention_map.name, attention_map.query, attention_map.key, attention_map.layer) == (
        "decoder.cross",
        "queries",
        "keys",
        0,
    )
    assert attention_map.weights.shape == (1, 3, 4)
    assert example.axes["queries"].labels == TARGET
    assert (example.axes["keys"].lang, example.title) == ("zh", "one")


def test_heads_and_layers_come_first():
    trace = Trace.from_arrays(np.broadcast_to(CROSS, (2, 5, 3, 4)), TARGET, SOURCE, name="cross")
    assert [
        (attention_map.name, attention_map.layer, attention_map.weights.shape)
        for attention_map in trace.example().attentions
    ] == [
        ("cross.0", 0, (5, 3, 4)),
        ("cross.1", 1, (5, 3, 4)),
    ]


def test_without_a_key_a_square_is_self_attention():
    trace = Trace.from_arrays(OWN, TARGET)
    assert (trace.attention().query, trace.attention().key) == ("tokens", "tokens")
    assert trace.example().axes["tokens"].labels == TARGET


def test_without_tokens_places_are_numbered():
    assert Trace.from_arrays(OWN).example().axes["tokens"].labels == ["0", "1", "2"]
    axes = Trace.from_arrays(CROSS).example().axes
    assert (len(axes["queries"]), len(axes["keys"])) == (3, 4)


def test_an_axis_is_taken_as_it_is_and_a_number_is_so_many_places():
    axes = Trace.from_arrays(CROSS, 3, Image((2, 2), (8, 8))).example().axes
    assert isinstance(axes["queries"], Index)
    assert axes["keys"].grid == (2, 2)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (torch.tensor(CROSS, requires_grad=True), np.float32),
        (torch.tensor(CROSS, dtype=torch.bfloat16), np.float32),
        (torch.tensor(CROSS, dtype=torch.float16), np.float16),
        (torch.tensor(CROSS, dtype=torch.float64), np.float32),
        (CROSS.astype(np.float64), np.float32),
        (CROSS.astype(np.float16), np.float16),
        (CROSS.tolist(), np.float32),
        (np.eye(3, 4, dtype=np.int64), np.float32),
    ],
)
def test_tensors_arrays_and_lists_of_any_precision(given, dtype):
    weights = Trace.from_arrays(given, TARGET, SOURCE).attention().weights
    assert weights.dtype == dtype
    np.testing.assert_allclose(weights.sum(-1), 1)


def test_several_attentions_share_axes():
    trace = Trace.from_arrays(
        {"encoder": np.full((2, 1, 4, 4), 0.25), "own": OWN, "cross": CROSS},
        axes={"source": SOURCE, "target": Text.of(TARGET, lang="zh")},
        query={"encoder": "source", "own": "target", "cross": "target"},
        key={"encoder": "source", "own": "target", "cross": "source"},
        mask={"own": None},
    )
    found = [
        (attention_map.name, attention_map.query, attention_map.key, attention_map.layer)
        for attention_map in trace.example().attentions
    ]
    assert found == [
        ("encoder.0", "source", "source", 0),
        ("encoder.1", "source", "source", 1),
        ("own", "target", "target", 0),
        ("cross", "target", "source", 0),
    ]


def test_layers_of_one_pair_of_axes_are_counted_over_all_its_attentions():
    trace = Trace.from_arrays({"a": OWN, "b": OWN}, axes={"t": TARGET}, query="t", key="t")
    assert [attention_map.layer for attention_map in trace.example().attentions] == [0, 1]


def test_an_axis_that_alone_is_long_enough_is_found():
    trace = Trace.from_arrays({"cross": CROSS}, axes={"source": SOURCE, "target": TARGET})
    assert (trace.attention().query, trace.attention().key) == ("target", "source")


def test_masks_and_scores():
    causal = np.tri(3) / np.tri(3).sum(-1, keepdims=True)
    trace = Trace.from_arrays(causal, TARGET, mask="causal", scores=np.zeros((3, 3)))
    np.testing.assert_array_equal(trace.attention().allowed, np.tri(3, dtype=bool))
    assert trace.attention().scores.shape == (1, 3, 3)
    given = Trace.from_arrays(causal, TARGET, mask=torch.tensor(np.tri(3, dtype=bool)))
    np.testing.assert_array_equal(given.attention().allowed, np.tri(3, dtype=bool))


def test_attentions_that_do_not_sum_to_one_say_so():
    assert Trace.from_arrays(3 * CROSS, TARGET, SOURCE, sums_to_one=False).attention().sums_to_one is False


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((CROSS, TARGET, SOURCE[:3]), {}, "example 0, attention 'attention': weights (heads, queries, keys) must be (1, 3, 3) to fit the axes, got (1, 3, 4)"),
        ((CROSS.T / 3 * 4, TARGET, SOURCE), {}, "these have keys before queries"),
        ((2 * CROSS, TARGET, SOURCE), {}, "head 0, query 0: weights must sum to 1, these sum to 2"),
        ((CROSS, TARGET), {}, "attention 'attention' has 4 keys and 3 queries, so it is no self-attention; say key=..."),
        ((CROSS, "汤姆追逐杰瑞", SOURCE), {}, "query: needs a list of tokens, got the text '汤姆追逐杰瑞'; split it as the model does"),
        ((CROSS, TARGET, 3.5), {}, "key: needs a list of tokens, an axis or a number of places, got float"),
        ((CROSS[0], TARGET, SOURCE), {}, "needs (queries, keys), (heads, queries, keys) or (layers, heads, queries, keys), got shape (4,)"),
        (([[1], [1, 2]], TARGET, SOURCE), {}, "attention 'attention': rows of different lengths"),
        ((np.array(["a"]), TARGET, SOURCE), {}, "needs an array or tensor of numbers, got ndarray of <U1"),
        ((np.zeros((0, 1, 3, 4)), TARGET, SOURCE), {}, "needs at least one layer, got none"),
        ((CROSS, TARGET, SOURCE), {"mask": "causal"}, "mask is an array or 'causal', which needs as many keys as queries, got 'causal' for 3 queries and 4 keys"),
        ((OWN, TARGET), {"mask": "diagonal"}, "got 'diagonal'"),
        ((CROSS, TARGET, SOURCE), {"mask": np.ones((3, 4))}, "a mask is boolean, True where a query may see a key, got float64"),
        ((CROSS, TARGET, SOURCE), {"scores": np.zeros((2, 1, 3, 4))}, "1 layers of weights and 2 of scores; they must agree"),
        (({"a": CROSS},), {}, "several attentions need axes={name: tokens or axis, ...}"),
        (({},), {"axes": {"t": TARGET}}, "at least one attention, got none"),
        (({"a": OWN},), {"axes": {"t": TARGET, "u": TARGET}}, "attention 'a' has a query axis of 3 places, and 2 of the axes t, u are that long; say query={'a': ...}"),
        (({"a": OWN},), {"axes": {"t": SOURCE}}, "and 0 of the axes t are that long"),
        (({"a": OWN}, TARGET), {"axes": {"t": TARGET}}, "with axes={...}, query is the name of one of them, got list"),
        (({"a": OWN}, "u", "t"), {"axes": {"t": TARGET}}, "its query axis is 'u', and the example has the axes t"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(arguments, options, said):
    with pytest.raises(TraceError) as caught:
        Trace.from_arrays(*arguments, **options)
    assert said in str(caught.value)


def test_the_example_of_any_model_runs_in_thirty_lines(tmp_path, monkeypatch):
    script = Path(__file__).parents[2] / "examples" / "trace_any_model.py"
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 30
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    attention_map = Trace.load(tmp_path / "any.attn.safetensors").attention("decoder.cross")
    assert attention_map.weights.shape == (4, 4, 4)
    assert {"any.attn.safetensors", "any.html"} <= {path.name for path in tmp_path.iterdir()}


def test_how_the_first_axis_was_read_is_said_and_that_weights_look_causal():
    rows = np.full((3, 4, 4), 0.25)
    assert "(3, 4, 4) was read as 3 heads; of a batch, give one example at a time" in Trace.from_arrays(rows).notes[0]
    assert "(2, 3, 4, 4) was read as 2 layers" in Trace.from_arrays(np.stack([rows, rows])).notes[0]
    lower = np.tri(4) / np.tri(4).sum(-1, keepdims=True)
    [note] = Trace.from_arrays(lower).notes
    assert "no query looks at a later key, as with a causal mask, and no mask was given; with mask='causal'" in note
    assert Trace.from_arrays(lower, mask="causal").notes == ()
    assert Trace.from_arrays(rows[0]).notes == ()
