"""A decoder's step with its keys divided among programs, in Triton's interpreter: tiny shapes, tiles of 16 keys."""

import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/decode.py checks on a GPU", allow_module_level=True)

from regard.attention import attend, dispatch
from regard.attention.attend import run_reference
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
from regard.attention.score.t5 import T5
from regard.attention.types import Request
from regard.kernels import decode, flash

from ..costs import set_costs

CHOSEN = decode.select_tiles
STATISTICS = ("entropy", "max", "argmax", "mean_position", "spread", "received", "uniform", "top_2")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """The CPU, by Triton's interpreter, without gradients, in tiles that make several of even the smallest memory."""
    monkeypatch.setattr(flash, "DEVICES", ("cuda", "cpu"))
    monkeypatch.setattr(decode, "select_tiles", lambda request: [16, 16, 4, 1])
    with torch.no_grad():
        yield


def request(score=ScaledDot(), scope=Everywhere(), shape=(2, 4, 2, 1, 70), sizes=(5, 7), **options) -> Request:
    batch, heads, key_heads, queries, keys = shape
    query, memory = torch.randn(batch, heads, queries, sizes[0]), torch.randn(batch, key_heads, keys, sizes[0])
    usual = {"dropout": 0.0, "offset": keys - queries, "weights": False, "statistics": ()}
    return Request(
        query, memory, torch.randn(batch, key_heads, keys, sizes[1]), score, Softmax(), scope, **{**usual, **options}
    )


KEEP = torch.arange(70)[None] < torch.tensor([[70], [33]])
CASES = {
    "grouped heads": lambda: request(),
    "a head for each": lambda: request(shape=(1, 3, 3, 1, 50)),
    "one key head, few queries, causal": lambda: request(scope=Causal(), shape=(1, 6, 1, 3, 40)),
    "padded": lambda: request(scope=Padding(KEEP)),
    "a cache filled to a different place in each row": lambda: request(scope=Causal(), offset=torch.tensor([4, 61])),
    "local": lambda: request(scope=Causal() & Local(9), offset=torch.tensor([12, 69])),
    "a mask for each head": lambda: request(scope=Dilated(3), shape=(1, 4, 2, 2, 40)),
    "t5": lambda: request(T5(4, buckets=8, farthest=16), Causal(), shape=(1, 4, 2, 2, 40)),
    "alibi": lambda: request(Alibi()),
    "bilinear": lambda: request(Bilinear(5, 5)),
    "one key": lambda: request(shape=(1, 1, 1, 1, 1), sizes=(1, 1)),
    "heads of 17 and 33": lambda: request(shape=(1, 2, 1, 1, 35), sizes=(17, 33)),
}


@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_it_equals_the_three_stages_in_output_weights_and_statistics(build):
    asked = build()
    expected = run_reference(asked._replace(weights=True, statistics=STATISTICS))
    plain = decode.run(asked)
    torch.testing.assert_close(plain.context, expected.context, rtol=1e-5, atol=2e-6)
    assert plain.weights is None
    assert not plain.statistics
    found = decode.run(asked._replace(weights=True, statistics=STATISTICS))
    assert torch.equal(found.context, plain.context)
    torch.testing.assert_close(found.weights, expected.weights, rtol=1e-4, atol=2e-6)
    assert set(found.statistics) == set(expected.statistics)
    for name, each in expected.statistics.items():
        if not name.endswith("_keys"):
            torch.testing.assert_close(found.statistics[name], each, rtol=1e-4, atol=2e-5, msg=name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_as_near_to_the_truth_as_plain_pytorch(dtype):
    asked = request(weights=True)
    half = asked._replace(**{name: getattr(asked, name).to(dtype) for name in ("query", "keys", "values")})
    truth = run_reference(half._replace(**{name: getattr(half, name).double() for name in ("query", "keys", "values")}))
    found, plain = decode.run(half), run_reference(half)
    assert found.context.dtype == found.weights.dtype == dtype
    error, usual = ((each.context.double() - truth.context).abs().max() for each in (found, plain))
    assert error <= 2 * usual + torch.finfo(dtype).eps * truth.context.abs().max()


def test_rows_that_may_see_nothing_read_zeros():
    asked = request(scope=Causal() & Padding(KEEP & (torch.arange(70) > 4)), offset=torch.tensor([3, -5]), weights=True)
    found = decode.run(asked)
    assert (found.context == 0).all()
    assert (found.weights == 0).all()


def test_what_is_hidden_is_never_read_whatever_stands_there():
    asked = request(scope=Padding(KEEP))
    expected = decode.run(asked).context
    asked.keys[1, :, 33:], asked.values[1, :, 33:] = float("nan"), float("nan")
    assert torch.equal(decode.run(asked).context, expected)
    asked.keys[1, 0, 32] = float("nan")
    assert decode.run(asked).context[1, :2].isnan().all()


def test_every_number_of_the_outputs_is_written(monkeypatch):
    real, like = torch.Tensor.new_empty, torch.empty_like

    def poisoned(self, *size, **kind):
        made = real(self, *size, **kind)
        return made.fill_(float("nan")) if made.is_floating_point() else made

    monkeypatch.setattr(torch.Tensor, "new_empty", poisoned)
    monkeypatch.setattr(torch, "empty_like", lambda data: like(data).fill_(float("nan")))
    found = decode.run(request(scope=Causal(), offset=torch.tensor([4, 61]), weights=True))
    assert found.context.isfinite().all()
    assert found.weights.isfinite().all()


def test_a_cache_that_lies_apart_in_memory_is_read_where_it_lies():
    asked = request()
    apart = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in asked[:3]]
    found = decode.run(asked._replace(query=apart[0], keys=apart[1], values=apart[2])).context
    assert torch.equal(found, decode.run(asked).context)


def test_keys_and_values_may_have_heads_of_their_own_and_products_turn_with_the_position():
    asked = request(Rotary(), Causal(), shape=(1, 4, 2, 1, 20), sizes=(6, 7))
    asked = asked._replace(values=torch.randn(1, 1, 20, 7))
    torch.testing.assert_close(decode.run(asked).context, run_reference(asked).context, rtol=1e-5, atol=1e-5)


def test_auto_takes_it_where_it_is_cheapest(monkeypatch):
    made = request(scope=Causal(), shape=(1, 2, 1, 1, 20), offset=9)
    set_costs(monkeypatch, decode=1, flash=2, sdpa=3, reference=4)
    assert dispatch.select_kernel(made, "auto") is decode
    set_costs(monkeypatch, decode=4, flash=2, sdpa=3, reference=4)
    assert dispatch.select_kernel(made, "auto") is flash


def test_its_cost_grows_with_the_keys_that_are_read():
    half, whole = (request(scope=Causal(), shape=(1, 2, 1, 1, 200), offset=offset) for offset in (99, 199))
    counts = [decode.count_work(each).counts["read"] for each in (half, whole)]
    assert counts[0] == pytest.approx(counts[1] / 2)
    assert decode.cost(half) <= decode.cost(whole)


def test_fused_takes_it_where_it_is_the_cheapest_kernel(monkeypatch):
    asked = request(shape=(1, 2, 1, 1, 20))
    set_costs(monkeypatch, decode=3, flash=4, sdpa=4, reference=1)
    assert dispatch.select_kernel(asked, "auto") is None
    assert dispatch.select_kernel(asked, "fused") is decode
    found = attend(asked.query, asked.keys, asked.values, impl="fused")
    torch.testing.assert_close(found.context, run_reference(asked).context, rtol=1e-5, atol=1e-5)


def test_it_says_why_it_does_not_cover_a_request(monkeypatch):
    asked = request(shape=(1, 16, 1, 1, 20))
    few = torch.randn(1, 16, 5, 5)
    reasons = {
        "needs Softmax, got Sparsemax": asked._replace(normalise=Sparsemax()),
        "never drops weights, and some are to be dropped": asked._replace(dropout=0.1),
        "needs at most 8 queries, got 9": asked._replace(query=torch.randn(1, 16, 9, 5)),
        "needs at most 64 queries for a key head, got 80": asked._replace(query=few),
    }
    for reason, each in reasons.items():
        assert decode.covers(each) == reason
    assert decode.covers(asked._replace(weights=True, statistics=("top_20",))) is None
    assert decode.covers(asked._replace(query=few, values=torch.randn(1, 2, 20, 7))) is None
    with torch.enable_grad():
        assert decode.covers(asked) is None
        wanted = "has no gradient, and one is wanted"
        assert decode.covers(asked._replace(keys=asked.keys.clone().requires_grad_())) == wanted
        assert decode.covers(asked._replace(score=T5(16))) == wanted
    with monkeypatch.context() as tracing:
        tracing.setattr(torch.compiler, "is_compiling", lambda: True)
        assert decode.covers(asked) == "cannot be traced"
    monkeypatch.undo()
    assert decode.covers(asked) == "needs a GPU, got cpu"


def test_tiles_hold_fewer_keys_where_these_are_long_or_in_single_precision():
    half = [request(sizes=(size, size)) for size in (64, 128, 256)]
    half = [each._replace(keys=each.keys.half(), values=each.values.half()) for each in half]
    assert [CHOSEN(each)[1] for each in half] == [64, 64, 32]
    assert [CHOSEN(request(sizes=(size, size)))[1:] for size in (64, 256)] == [[16, 4, 2], [16, 8, 1]]
