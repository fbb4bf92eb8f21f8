"""Weights of chosen queries, in Triton's interpreter."""

import os
import re

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.attention import dispatch
from regard.attention.attend import run_reference
from regard.attention.local_window import GaussianWindow, WindowScope
from regard.attention.normalise.gumbel import Gumbel
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.additive import Additive
from regard.attention.score.alibi import Alibi
from regard.attention.score.concat import Concat
from regard.attention.score.distance import Distance
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.t5 import T5
from regard.attention.types import Request
from regard.kernels import flash, weights
from regard.kernels.runtime import capability
from regard.viewer.record.hooks import Listening, Wanted

from ..costs import set_costs


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setattr(flash, "DEVICES", ("cuda", "cpu"))
    monkeypatch.setattr(flash, "select_tiles", lambda query, values: [16, 16, 4, 1])
    monkeypatch.setattr(weights, "TILES", [16, 16, 4, 1])


def request(score=ScaledDot(), scope=Everywhere(), heads=2, key_heads=2, **options) -> Request:
    query, key, values = torch.randn(2, heads, 18, 5), torch.randn(2, key_heads, 21, 5), torch.randn(2, key_heads, 21, 4)
    usual = {"dropout": 0.0, "offset": 3, "weights": True, "statistics": ()}
    prepared = score.prepare(key).detach()
    return Request(query, prepared, values, score, Softmax(), scope, **{**usual, **options})


def true_weights(asked: Request) -> torch.Tensor:
    score = asked.score.double() if isinstance(asked.score, torch.nn.Module) else asked.score
    wide = [each.double() for each in asked[:3]]
    found = run_reference(
        asked._replace(query=wide[0], keys=wide[1], values=wide[2], score=score, dropout=0.0)
    ).weights.detach()
    if isinstance(score, torch.nn.Module):
        score.float()
    return found


CASES = {
    "everywhere": lambda: request(),
    "grouped, causal": lambda: request(scope=Causal(), key_heads=1),
    "t5, local": lambda: request(T5(2, buckets=8, farthest=16), Local(3)),
    "alibi, padded": lambda: request(Alibi(), Padding(torch.arange(21)[None] < torch.tensor([[21], [5]])) & Causal()),
    "additive": lambda: request(Additive(5, 5, hidden=3, heads=2), Causal()),
    "concat, shared": lambda: request(Concat(5, 5, hidden=7), key_heads=1),
}


@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_chosen_queries_have_the_weights_that_the_three_stages_give_them(build):
    asked = build()
    found = weights.select_weights(asked, [17, 0, 4], [1])
    expected = true_weights(asked)[:, [1]][:, :, [17, 0, 4]]
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("keys", [range(21), range(2, 20), range(16, 17), range(5, 5)], ids=str)
@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_a_tile_has_the_weights_that_the_whole_matrix_has_there(build, keys):
    asked = build()
    found = weights.select_weights(asked, list(range(3, 9)), keys=keys)
    expected = true_weights(asked)[:, :, 3:9, keys.start : keys.stop]
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("keys", [range(0, 20, 2), range(-1, 4), range(5, 22), range(9, 3)], ids=str)
def test_keys_that_are_no_part_of_the_source_are_refused(keys):
    with pytest.raises(ValueError, match=re.escape(f"keys needs to be a range of the 21 there are, one by one, got {keys}")):
        weights.select_weights(request(), [0], keys=keys)


def test_a_query_that_sees_nothing_has_no_weights_and_the_tanh_of_large_numbers_is_one():
    asked = request(Additive(5, 5), Causal(), heads=1, key_heads=1, offset=-2)
    found = weights.select_weights(asked._replace(query=1e4 * asked.query), [0, 5])
    assert (found[:, :, 0] == 0).all()
    torch.testing.assert_close(found[:, :, 1].sum(-1), torch.ones(2, 1))


def test_all_weights_come_with_the_context_of_one_pass(monkeypatch):
    set_costs(monkeypatch, weights=1, reference=2)
    asked = request(scope=Causal(), key_heads=1, statistics=("entropy",))
    assert dispatch.select_kernel(asked, "auto") is weights
    found, expected = weights.run(asked), run_reference(asked)
    torch.testing.assert_close(found.weights, expected.weights, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found.context, expected.context, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(found.statistics["entropy"], expected.statistics["entropy"], rtol=1e-5, atol=1e-5)


def test_no_rows_are_no_trouble_and_nothing_is_drawn_for_dropout():
    before = torch.random.get_rng_state()
    asked = request(dropout=0.5)
    state = torch.random.get_rng_state()
    assert not torch.equal(before, state)
    assert weights.select_weights(asked, []).shape == (2, 2, 0, 21)
    weights.select_weights(asked, [1])
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_recorder_that_is_asked_for_rows_takes_them_from_here():
    asked = request(scope=Causal(), weights=False)
    listening = Listening("reference", Wanted(weights=False, rows=(4, 9, 40)), False, (), first=1)
    listening.run(asked)
    assert "rows:float32" in listening.source
    torch.testing.assert_close(
        listening.rows[0], true_weights(asked._replace(weights=True))[:, :, [3, 8]].float(), rtol=1e-5, atol=1e-6
    )


def test_it_says_why_it_does_not_cover_a_request(monkeypatch):
    asked = request()
    assert weights.covers(asked) is None
    assert weights.covers(asked._replace(weights=False)) == "gives weights, and none are asked for"
    learning = asked._replace(query=asked.query.requires_grad_())
    assert weights.covers(learning) == "gives weights that have no gradient, and one is wanted"
    assert weights.covers(request(T5(2, buckets=8, farthest=16))) == "gives weights that have no gradient, and one is wanted"
    assert weights.covers(request()._replace(normalise=Sparsemax())) == "needs Softmax, got Sparsemax"
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert weights.covers(request()) == "cannot be traced"


CENTRE = 21 * torch.rand(2, 18)
OTHERS = {
    "a score of its own": lambda: request(Distance()),
    "sparse": lambda: request(scope=Causal())._replace(normalise=Sparsemax()),
    "placed windows": lambda: request(scope=WindowScope(CENTRE, 4, 3))._replace(
        normalise=GaussianWindow(Softmax(), CENTRE, 4)
    ),
}


@pytest.mark.parametrize("build", OTHERS.values(), ids=OTHERS)
def test_what_no_program_covers_has_its_chosen_queries_one_by_one(build):
    asked = build()
    assert weights.covers_selected(asked) is not None
    found = weights.select_weights(asked, [17, 0, 4], [1], range(2, 9))
    torch.testing.assert_close(found, true_weights(asked)[:, [1]][:, :, [17, 0, 4], 2:9].float(), rtol=1e-5, atol=1e-6)
    assert weights.select_weights(asked, []).shape == (2, 2, 0, 21)
    assert weights.select_weights(asked, [3], keys=range(5, 5)).shape == (2, 2, 1, 0)


def test_it_says_why_rows_cannot_be_chosen(monkeypatch):
    additive = request(Additive(5, 5, heads=2))
    assert weights.covers_selected(additive) is None
    assert weights.covers_selected(additive._replace(normalise=Sparsemax())) == "needs Softmax, got Sparsemax"
    double = additive._replace(query=additive.query.double())
    assert weights.covers_selected(double) == "needs queries in float32, float16 or bfloat16, got float64"
    none = additive._replace(query=additive.query[:, :, :0])
    assert weights.covers_selected(none) == "needs a query and a key, and one of them is missing"
    assert weights.covers_selected(request(Concat(5, 5, tanh=False))).endswith("T5, Alibi, got Concat")
    many = additive._replace(query=additive.query[:1].expand(32768, 2, 18, 5))
    assert weights.covers_selected(many) == "needs at most 65535 heads in a batch, got 65536"
    with monkeypatch.context() as patch:
        patch.setattr(capability, "find_obstacle", lambda device, dtype: f"lacks {dtype}")
        assert weights.covers_selected(additive) == "lacks torch.float32"
    drawn = request()._replace(normalise=Gumbel())
    with pytest.raises(ValueError, match="the weights of chosen queries cannot be found again: Gumbel draws others"):
        weights.select_weights(drawn, [0])
    drawn.normalise.eval()
    assert (weights.select_weights(drawn, [0]).sum(-1) == 1).all()
    with pytest.raises(ValueError, match=re.escape("there are 18 queries, counted from 0, and no number 18; choose among")):
        weights.select_weights(request(), [3, 18])
    with pytest.raises(ValueError, match=re.escape("there are 2 heads, counted from 0, and no number -1; choose among")):
        weights.select_weights(request(), [3], [-1])
    monkeypatch.setattr(flash, "DEVICES", ("cuda",))
    assert weights.covers_selected(additive) == "needs a GPU, got cpu"
