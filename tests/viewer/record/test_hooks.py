import numpy as np
import pytest
import torch

import regard
from regard.attention import MultiHead
from regard.attention.normalise.gumbel import Gumbel
from regard.attention.normalise.hard import Hard
from regard.attention.scope.causal import Causal
from regard.attention.types import Encoded
from regard.models.attention_factory import build_attention


def test_statistics_leave_the_fused_kernel_running_and_equal_those_of_the_weights():
    heads, source = MultiHead(8, heads=2).eval(), torch.randn(2, 6, 8)
    keep = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])

    def run(**settings):
        with torch.no_grad(), regard.record(heads, **settings) as rec:
            heads(source, heads.remember(Encoded(source, keep)))
        return rec.trace().examples

    whole, fused = run(), run(statistics=True)
    for one, other in zip(whole, fused, strict=True):
        assert one.attentions[0].source == "instead:sdpa"
        assert other.attentions[0].source == "measured:sdpa"
        assert other.attentions[0].weights is None
        for name, values in one.attentions[0].statistics.items():
            np.testing.assert_allclose(other.attentions[0].statistics[name], values, atol=1e-5, err_msg=name)
    # in the second row two queries are padding: what keys receive comes from the other four alone
    np.testing.assert_allclose(fused[1].attentions[0].statistics["received"].sum(-1), [4, 4], atol=1e-5)
    np.testing.assert_allclose(fused[1].attentions[0].statistics["uniform"], 1.0, atol=1e-6)


def test_chosen_rows_are_recomputed_and_equal_those_of_all_weights():
    heads, source = MultiHead(8, heads=2, scope=Causal()).eval(), torch.randn(1, 12, 8)

    def run(**settings):
        with torch.no_grad(), regard.record(heads, **settings) as rec:
            heads(source, heads.remember(source))
        return rec.trace().attention()

    whole, some = run(), run(rows=(0, 5, 9, 40))
    assert some.rows == (0, 5, 9)
    assert some.source.endswith("; rows:float32")
    np.testing.assert_allclose(some.weights, whole.weights[:, [0, 5, 9]], atol=1e-3)


def test_rows_of_an_attention_that_steps_or_gathers_are_its_own():
    for name in ("coverage", "monotonic", "local_p"):
        cross = build_attention(name, 4, 4).eval()
        query, source = torch.randn(1, 5, 4), torch.randn(1, 6, 4)

        def run(cross=cross, query=query, source=source, **settings):
            with torch.no_grad(), regard.record(cross, **settings) as rec:
                cross(query, cross.remember(source))
            return rec.trace().attention()

        whole, some = run(), run(rows=(1, 4))
        assert some.rows == (1, 4)
        np.testing.assert_array_equal(some.weights, whole.weights[:, [1, 4]])


def test_hard_attention_draws_the_same_whether_it_is_heard_or_not():
    for settings in ({}, {"rows": (0,)}, {"statistics": True}):
        cross = build_attention("additive+hard", 4, 4)
        query, source = torch.randn(1, 5, 4), torch.randn(1, 6, 4)
        torch.manual_seed(1)
        plain = cross(query, cross.remember(source)).context
        after = torch.rand(())
        torch.manual_seed(1)
        with regard.record(cross, **settings):
            recorded = cross(query, cross.remember(source)).context
        assert torch.equal(recorded, plain)
        assert torch.rand(()) == after


def test_scores_are_those_before_the_softmax():
    heads, source = MultiHead(8, heads=2, scope=Causal()).eval(), torch.randn(1, 4, 8)
    with torch.no_grad(), regard.record(heads, scores=True) as rec:
        heads(source, heads.remember(source))
    attention_map = rec.trace().attention()
    assert np.isneginf(attention_map.scores[:, ~np.tri(4, dtype=bool)]).all()
    np.testing.assert_allclose(torch.tensor(attention_map.scores).float().softmax(-1), attention_map.weights, atol=2e-3)
    values = heads.split(heads.value(source)).norm(dim=-1)[0].detach()
    np.testing.assert_allclose(attention_map.values, values, rtol=1e-5)


def test_several_heads_under_half_precision_are_recorded_as_well():
    heads, source = MultiHead(8, heads=2).eval(), torch.randn(1, 5, 8)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16), regard.record(heads) as rec:
        recorded = heads(source, heads.remember(source)).context
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(recorded, heads(source, heads.remember(source)).context)
    np.testing.assert_allclose(rec.trace().attention().weights.sum(-1, dtype=np.float32), 1.0, atol=5e-3)


def test_what_somebody_else_put_in_the_place_of_a_method_comes_back():
    heads, calls = MultiHead(8, heads=2), []
    own = heads.forward
    heads.forward = lambda *args, **options: calls.append(1) or own(*args, **options)
    mine = heads.forward
    with regard.record(heads):
        heads(torch.randn(1, 2, 8), heads.remember(torch.randn(1, 2, 8)))
    assert heads.forward is mine
    assert calls == [1]


@pytest.mark.parametrize("normaliser", [Hard, Gumbel])
def test_an_attention_that_draws_is_heard_in_what_it_drew_and_draws_no_more(normaliser):
    heads, source = MultiHead(8, heads=2, normalise=normaliser()).train(), torch.randn(2, 6, 8)
    keep = torch.tensor([[True] * 6, [True] * 4 + [False] * 2])
    found, after = [], []
    for settings in ({}, {"statistics": True}):
        torch.manual_seed(3)
        with regard.record(heads, **settings) as rec:
            heads(source, heads.remember(Encoded(source, keep)))
        after.append(torch.rand(()))
        found.append(rec.trace().attention(example=1).statistics["received"])
    np.testing.assert_allclose(found[1], found[0], atol=1e-6)
    assert after[0] == after[1]
