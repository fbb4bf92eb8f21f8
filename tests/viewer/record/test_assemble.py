import numpy as np
import pytest
import torch

import regard
from regard.attention import MultiHead
from regard.attention.types import Encoded
from regard.data.batch import pad
from regard.decoding import greedy
from regard.viewer.record.assemble import Run, examples, joined
from regard.viewer.record.calls import Call

from ...models.small import made


def call(weights, **options):
    """A call by its weights, (batch, heads, queries, keys), with the statistics that joining looks at."""
    weights = np.asarray(weights, np.float16)
    batch, _, queries, keys = weights.shape
    statistics = {"entropy": np.zeros(weights.shape[:3], np.float32), "received": weights.sum(2, dtype=np.float32)}
    return Call(batch, queries, keys, "by hand", weights, statistics, **options)


def test_steps_become_rows_and_what_each_key_received_adds_up():
    calls = [call([[[[1.0]]]]), call([[[[0.25, 0.75]]]]), call([[[[0.5, 0.25, 0.25]]]])]
    attention_map = joined("a", calls, 0)
    assert attention_map.weights.tolist() == [[[1, 0, 0], [0.25, 0.75, 0], [0.5, 0.25, 0.25]]]
    assert attention_map.allowed.tolist() == [[True, False, False], [True, True, False], [True, True, True]]
    assert attention_map.statistics["received"].tolist() == [[1.75, 1.0, 0.25]]
    assert attention_map.statistics["entropy"].shape == (1, 3)


def test_padding_is_cut_from_keys_and_where_a_sequence_looks_at_itself_from_queries():
    weights = np.full((2, 1, 3, 3), 1 / 3)
    keep = np.array([[True, True, True], [True, True, False]])
    own, other = (joined("a", [call(weights, keep=keep, itself=itself)], 1) for itself in (True, False))
    assert own.weights.shape == (1, 2, 2)
    assert other.weights.shape == (1, 3, 2)


def test_a_mask_is_as_small_as_it_can_be():
    weights = np.eye(2)[None, None].repeat(2, axis=1)
    same = np.array([[[[True, False], [True, True]]]])
    assert joined("a", [call(weights, allowed=same)], 0).allowed.tolist() == same[0, 0].tolist()
    differ = np.stack([same[0, 0], np.ones((2, 2), bool)])[None]
    assert joined("a", [call(weights, allowed=differ)], 0).allowed.shape == (2, 2, 2)
    assert joined("a", [call(weights, allowed=np.ones((1, 1, 1, 2), bool))], 0).allowed is None


def test_layers_are_counted_for_each_pair_of_axes():
    run = Run("t")
    for name in ("x", "y", "z"):
        run.add(name, call([[[[1.0]]]]))
    [example] = examples(run, {"x": ("q", "k"), "y": ("q", "q"), "z": ("q", "k")})
    assert [(attention_map.name, attention_map.layer) for attention_map in example.attentions] == [
        ("x", 0),
        ("y", 0),
        ("z", 1),
    ]
    assert example.title == "t"


def test_sentences_that_leave_a_batch_are_refused_with_a_way_out():
    model = made().eval()
    with torch.no_grad(), regard.record(model) as rec:
        greedy(model.decoder, model.encode(pad([[4, 5, 2], [7, 2]])), length=[4, 2])
    with pytest.raises(ValueError, match=r"'decoder.cross' was asked for 2 and then 1 rows in one run"):
        rec.trace()


def test_a_cache_that_grows_becomes_causal_rows():
    model = made("transformer", encoder="transformer", decoder="transformer").eval()
    with torch.no_grad(), regard.record(model) as rec:
        [found] = greedy(model.decoder, model.encode(pad([[4, 5, 2]])), length=5)
    attention_map = rec.trace().attention("decoder.0.self")
    steps = len(found.tokens)
    assert (attention_map.query, attention_map.key, attention_map.weights.shape) == ("target", "written", (2, steps, steps))
    assert (attention_map.allowed == np.tri(steps, dtype=bool)).all()
    harmonic = [sum(1 / (query + 1) for query in range(key, steps)) for key in range(steps)]
    np.testing.assert_allclose(attention_map.statistics["uniform"], [harmonic] * 2, rtol=1e-6)
    with torch.no_grad(), regard.record(model) as taught:
        model(pad([[4, 5, 2]]), torch.tensor([[1, *found.tokens[:-1]]]))
    np.testing.assert_allclose(attention_map.weights, taught.trace().attention("decoder.0.self").weights, atol=1e-3)


def test_chosen_rows_that_are_all_padding_leave_statistics_alone(tmp_path):
    heads, source = MultiHead(8, heads=2).eval(), torch.randn(2, 6, 8)
    keep = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    with torch.no_grad(), regard.record(heads, rows=(4,)) as rec:
        heads(source, heads.remember(Encoded(source, keep)))
    trace = rec.trace()
    assert [trace.attention(example=number).rows for number in (0, 1)] == [(4,), None]
    assert trace.attention(example=1).weights is None
    trace.save(tmp_path / "t.attn.safetensors")
