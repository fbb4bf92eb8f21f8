"""Sparsemax and entmax without the matrix, in Triton's interpreter: tiny shapes, tiles of 16."""

import os

import numpy as np
import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/simplex.py checks on a GPU", allow_module_level=True)

from regard.attention import attend, dispatch
from regard.attention.attend import run_reference
from regard.attention.normalise.entmax import Entmax
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.causal import Causal
from regard.attention.scope.dilated import Dilated
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.alibi import Alibi
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.rotary import Rotary
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Request
from regard.kernels import entmax, flash

from ..costs import set_costs

CHOSEN = entmax.select_tiles


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """The CPU, by Triton's interpreter, in tiles that make several of even the smallest shapes."""
    monkeypatch.setattr(flash, "DEVICES", ("cuda", "cpu"))
    monkeypatch.setattr(entmax, "select_tiles", lambda query, values: [16, 16, 4, 1])


def request(
    normalise=Sparsemax(), score=ScaledDot(), scope=Everywhere(), shape=(1, 2, 1, 18, 21), sizes=(5, 7), **options
) -> Request:
    batch, heads, key_heads, queries, keys = shape
    query = 2 * torch.randn(batch, heads, queries, sizes[0])
    memory, values = torch.randn(batch, key_heads, keys, sizes[0]), torch.randn(batch, key_heads, keys, sizes[1])
    usual = {"dropout": 0.0, "offset": max(keys - queries, 0), "weights": False, "statistics": ()}
    return Request(query, memory, values, score, normalise, scope, **{**usual, **options})


def outcome(run, asked: Request, dtype: torch.dtype):
    """Context, and the gradient of every input and of what the normaliser learns."""
    if isinstance(asked.normalise, Entmax):
        asked.normalise.to(dtype)
    score = asked.score.to(dtype) if isinstance(asked.score, torch.nn.Module) else asked.score
    leaves = [each.detach().to(dtype).requires_grad_() for each in asked[:3]]
    found = run(asked._replace(query=leaves[0], keys=leaves[1], values=leaves[2], score=score))
    flow = torch.arange(found.context.numel(), dtype=dtype).view(found.context.shape).cos()
    learned = list(asked.normalise.parameters()) if isinstance(asked.normalise, Entmax) else []
    return [found.context.detach(), *torch.autograd.grad(found.context, [*leaves, *learned], flow)]


CASES = {
    "sparsemax": lambda: request(shape=(1, 1, 1, 18, 21)),
    "sparsemax, grouped heads, causal": lambda: request(scope=Causal(), shape=(1, 2, 1, 18, 21)),
    "sparsemax, local, padded, rows at different places": lambda: request(
        scope=Local(3) & Padding(torch.arange(21)[None] < torch.tensor([[21], [9]])),
        shape=(2, 1, 1, 18, 21),
        offset=torch.tensor([2, 30]),
    ),
    "entmax 1.5, a mask": lambda: request(Entmax(), scope=Dilated(3) & Causal(), shape=(1, 1, 1, 18, 21)),
    "entmax 1.5, a learned product": lambda: request(Entmax(), Bilinear(5, 5), Causal(), shape=(1, 1, 1, 18, 21)),
    "entmax 1.2": lambda: request(Entmax(1.2), shape=(1, 1, 1, 9, 33)),
    "entmax 1.01, nearly softmax": lambda: request(Entmax(1.01), shape=(1, 1, 1, 3, 21)),
    "entmax beyond sparsemax": lambda: request(Entmax(2.5), shape=(1, 1, 1, 5, 21)),
    "entmax that learns, an alpha for each head": lambda: request(
        Entmax(1.3, learn=True, heads=2), scope=Causal(), shape=(1, 2, 1, 9, 18)
    ),
    "entmax that learns one alpha": lambda: request(Entmax(1.7, learn=True), shape=(2, 2, 2, 5, 18)),
    "one query, one key": lambda: request(shape=(1, 1, 1, 1, 1), sizes=(1, 1)),
}


@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_it_equals_the_three_stages_in_output_and_gradients(build):
    asked = build()
    found, plain = (outcome(run, asked, torch.float32) for run in (entmax.run, run_reference))
    truth = outcome(run_reference, asked, torch.float64)
    for place, (ours, theirs, exact) in enumerate(zip(found, plain, truth, strict=True)):
        assert ours.isfinite().all()
        error, usual = ((each.double() - exact).abs().max() for each in (ours, theirs))
        assert error <= (3 if place else 2) * usual + 4e-6 * exact.abs().max() + 1e-7, place


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_as_near_to_the_truth_as_plain_pytorch(dtype):
    asked = request(Entmax(), shape=(1, 1, 1, 17, 20))
    asked = asked._replace(**{name: getattr(asked, name).to(dtype) for name in ("query", "keys", "values")})
    found, plain = (outcome(run, asked, dtype) for run in (entmax.run, run_reference))
    for place, (ours, theirs, exact) in enumerate(
        zip(found, plain, outcome(run_reference, asked, torch.float64), strict=True)
    ):
        assert ours.dtype == dtype
        error, usual = ((each.double() - exact).abs().max() for each in (ours, theirs))
        assert error <= (3 if place else 2) * usual + torch.finfo(dtype).eps * exact.abs().max(), place


def test_queries_that_may_see_nothing_read_zeros_and_pass_no_gradient():
    scope = Causal() & Padding(torch.arange(21)[None] > 4)
    asked = request(Entmax(1.3, learn=True), scope=scope, shape=(1, 1, 1, 18, 21), offset=-2)
    context, d_query, *rest = outcome(entmax.run, asked, torch.float32)
    assert (context[:, :, :7] == 0).all()
    assert (d_query[:, :, :7] == 0).all()
    assert all(each.isfinite().all() for each in (context, d_query, *rest))


def test_what_padding_hides_is_never_read_and_a_nan_that_is_seen_comes_out():
    asked = request(scope=Padding(torch.arange(21)[None] < 15), shape=(1, 1, 1, 4, 21))
    expected = outcome(entmax.run, asked, torch.float32)
    asked.keys[:, :, 15:], asked.values[:, :, 15:] = float("nan"), float("nan")
    torch.testing.assert_close(outcome(entmax.run, asked, torch.float32), expected, rtol=0, atol=0)
    asked.keys[:, :, 14] = float("nan")
    assert entmax.run(asked).context.isnan().all()
    asked.keys[:, :, 14], asked.query[:, :, :] = float("inf"), 1.0
    with np.errstate(invalid="ignore"):  # the interpreter multiplies with the zeros that fill a tile, too
        assert entmax.run(asked).context.isnan().all()


def test_dropout_falls_on_the_weights_alike_there_and_back():
    asked = request(Entmax(), scope=Causal(), shape=(1, 1, 1, 9, 12), sizes=(5, 12))
    shown = asked._replace(values=torch.eye(12)[None, None], dropout=0.4)
    torch.manual_seed(3)
    kept = entmax.run(shown).context.detach()  # values that are a unit matrix read the weights themselves
    weights = run_reference(shown._replace(dropout=0.0)).context.detach()
    falls = torch.where(kept > 0, 1 / 0.6, 0.0)
    torch.testing.assert_close(kept, weights * falls, rtol=1e-5, atol=1e-6)
    assert 0.3 < (kept > 0).sum() / (weights > 0).sum() < 0.9
    torch.manual_seed(3)
    found = outcome(entmax.run, asked._replace(dropout=0.4), torch.float32)

    def dropped(part):
        return entmax.Attended(part.normalise(part.scores(), part.allowed).mul(falls) @ part.values)

    torch.testing.assert_close(found, outcome(dropped, asked, torch.float32), rtol=1e-4, atol=1e-5)


def test_equal_inputs_give_equal_bits():
    asked = request(Entmax(1.3, learn=True, heads=2), shape=(1, 2, 1, 5, 18))
    runs = [outcome(entmax.run, asked, torch.float32) for _ in range(2)]
    torch.testing.assert_close(*runs, rtol=0, atol=0)


def test_keys_that_score_alike_share_alike():
    asked = request(shape=(1, 1, 1, 1, 40), sizes=(1, 40))
    asked = asked._replace(keys=torch.ones(1, 1, 40, 1), values=torch.eye(40)[None, None])
    for normalise in (Sparsemax(), Entmax(1.1), Entmax(3.0)):
        found = entmax.run(asked._replace(normalise=normalise)).context
        torch.testing.assert_close(found, torch.full((1, 1, 1, 40), 1 / 40), rtol=1e-4, atol=0)


def test_keys_and_values_may_have_heads_of_their_own_and_products_turn_with_the_position():
    asked = request(score=Rotary(), scope=Causal(), shape=(1, 4, 2, 3, 5), sizes=(6, 7))
    asked = asked._replace(values=torch.randn(1, 1, 5, 7))
    torch.testing.assert_close(entmax.run(asked).context, run_reference(asked).context, rtol=1e-5, atol=1e-5)


def test_statistics_are_those_of_the_three_stages():
    asked = request(Entmax(), shape=(1, 1, 1, 4, 9), statistics=("entropy", "top_2", "received"))
    found, expected = entmax.run(asked).statistics, run_reference(asked).statistics
    assert set(found) == {"entropy", "top_2", "top_2_keys", "received"}
    torch.testing.assert_close(found, dict(expected))


def test_auto_takes_it_where_it_is_cheapest_and_fused_everywhere(monkeypatch):
    asked = request(shape=(1, 1, 1, 2, 3))
    set_costs(monkeypatch, entmax=1, reference=2)
    assert dispatch.select_kernel(asked, "auto") is entmax
    set_costs(monkeypatch, entmax=3, reference=2)
    assert dispatch.select_kernel(asked, "auto") is None
    assert dispatch.select_kernel(asked, "fused") is entmax
    found = attend(asked.query, asked.keys, asked.values, normalise=Sparsemax(), impl="fused")
    torch.testing.assert_close(found.context, run_reference(asked).context, rtol=1e-5, atol=1e-5)


def test_it_says_why_it_does_not_cover_a_request(monkeypatch):
    asked = request(shape=(1, 2, 2, 2, 3))
    reasons = {
        "needs one of Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl, got Alibi": asked._replace(score=Alibi()),
        "needs Sparsemax or Entmax, got Softmax": asked._replace(normalise=Softmax()),
        "needs alpha up to 3.0, beyond which no threshold in float32 is exact, got 3.5": asked._replace(
            normalise=Entmax(3.5)
        ),
        "needs one alpha or one for each of 2 heads, got 3": asked._replace(normalise=Entmax(learn=True, heads=3)),
        "never forms the weights, and they are asked for": asked._replace(weights=True),
        "needs queries and keys of one size, got 5 and 4": asked._replace(keys=asked.keys[..., :4]),
    }
    for reason, each in reasons.items():
        assert entmax.covers(each) == reason
    assert entmax.covers(asked) is None
    with monkeypatch.context() as tracing:
        tracing.setattr(torch.compiler, "is_compiling", lambda: True)
        assert entmax.covers(asked) is None
        reason = "takes statistics a block of queries at a time, which cannot be traced"
        assert entmax.covers(asked._replace(statistics=("max",))) == reason
    monkeypatch.undo()
    assert entmax.covers(asked) == "needs a GPU, got cpu"


def test_tiles_are_smaller_where_registers_hold_fewer_rows():
    sizes = {}
    for dtype in (torch.float32, torch.bfloat16):
        rows = [torch.empty(1, 1, 1, size, dtype=dtype) for size in (24, 64, 128, 256)]
        sizes[dtype] = [CHOSEN(each, each)[0] * CHOSEN(each, each)[1] for each in rows]
        assert sizes[dtype] == sorted(sizes[dtype], reverse=True)
    assert all(single < half for single, half in zip(*sizes.values(), strict=True))
