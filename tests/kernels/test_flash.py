"""Attention in one pass, in Triton's interpreter: tiny shapes, tiles of 16."""

import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.attention import attend, dispatch
from regard.attention.attend import run_reference
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.causal import Causal
from regard.attention.scope.dilated import Dilated
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.scope.prefix import Prefix
from regard.attention.score.alibi import Alibi
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.distance import Distance
from regard.attention.score.rotary import Rotary
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.t5 import T5
from regard.attention.score.transformer_xl import TransformerXl
from regard.attention.statistics import measure
from regard.attention.types import Request
from regard.kernels import flash, flex, sdpa
from regard.viewer.record.external.product import Product

from ..costs import set_costs

STATISTICS = ("entropy", "max", "argmax", "mean_position", "spread", "received", "uniform", "top_1", "top_3")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    """The CPU, by Triton's interpreter, in tiles that make several of even the smallest shapes."""
    monkeypatch.setattr(flash, "DEVICES", ("cuda", "cpu"))
    monkeypatch.setattr(flash, "select_tiles", lambda query, values: [16, 16, 4, 1])


def request(score=ScaledDot(), scope=Everywhere(), shape=(1, 2, 1, 18, 21), sizes=(5, 7), **options) -> Request:
    batch, heads, key_heads, queries, keys = shape
    query = torch.randn(batch, heads, queries, sizes[0])
    memory = torch.randn(batch, key_heads, keys, sizes[0] + getattr(score, "waves", 0))
    values = torch.randn(batch, key_heads, keys, sizes[1])
    usual = {"dropout": 0.0, "offset": max(keys - queries, 0), "weights": False, "statistics": ()}
    return Request(query, memory, values, score, Softmax(), scope, **{**usual, **options})


def outcome(run, asked: Request, dtype: torch.dtype):
    """Context, the gradient of every input and parameter, and statistics."""
    learns = isinstance(asked.score, torch.nn.Module)
    score = asked.score.to(dtype) if learns else asked.score
    leaves = [each.detach().to(dtype).requires_grad_() for each in asked[:3]]
    found = run(asked._replace(query=leaves[0], keys=leaves[1], values=leaves[2], score=score))
    weight = torch.arange(found.context.numel(), dtype=dtype).view(found.context.shape).cos()
    wanted = [*leaves, *([score.b] if isinstance(score, T5) else [])]  # what other scores learn is in the keys already
    gradients = torch.autograd.grad(found.context, wanted, weight)
    return found.context.detach(), gradients, found.statistics


def same_statistics(found, expected, tolerance=2e-5):
    assert set(found) == set(expected)
    for name, each in expected.items():
        if name.endswith("_keys"):  # which keys a query sees that has fewer of them than asked for means nothing
            counts = expected[name.removesuffix("_keys")] > 0
            assert torch.equal(found[name][counts], each[counts]), name
        else:
            torch.testing.assert_close(found[name].double(), each.double(), rtol=tolerance, atol=tolerance, msg=name)


KEEP = torch.arange(21)[None] < torch.tensor([[15]])
CASES = {
    "everywhere": lambda: request(),
    "grouped heads, causal": lambda: request(scope=Causal(), shape=(1, 2, 1, 18, 21)),
    "local, padded, rows at different places": lambda: request(
        scope=Local(3) & Padding(torch.arange(21)[None] < torch.tensor([[21], [9]])),
        shape=(2, 1, 1, 18, 21),
        offset=torch.tensor([2, 30]),
    ),
    "t5 with a gradient, causal, padded": lambda: request(T5(2, buckets=8, farthest=16), Causal() & Padding(KEEP)),
    "t5 shared by heads, queries before the keys": lambda: request(T5(1, buckets=8, farthest=16, scale=0.4), offset=-4),
    "alibi, another scope, which is a mask": lambda: request(Alibi(), Dilated(3) & Causal()),
    "a mask alone, fewer keys than queries": lambda: request(scope=Prefix(2) | Causal(), shape=(1, 1, 1, 19, 3), offset=-5),
    "bilinear": lambda: request(Bilinear(5, 5), Causal() & Local(4), shape=(1, 1, 1, 18, 21)),
    "one query, one key": lambda: request(shape=(1, 1, 1, 1, 1), sizes=(1, 1)),
    "heads of 17 and 33": lambda: request(shape=(1, 1, 1, 3, 5), sizes=(17, 33)),
}


@pytest.mark.parametrize("build", CASES.values(), ids=CASES)
def test_it_equals_the_three_stages_in_output_gradients_and_statistics(build):
    asked = build()._replace(statistics=STATISTICS)
    context, gradients, statistics = outcome(flash.run, asked, torch.float32)
    truth, true_gradients, true_statistics = outcome(run_reference, asked, torch.float64)
    plain, plain_gradients, _ = outcome(run_reference, asked, torch.float32)
    pairs = zip((context, *gradients), (truth, *true_gradients), (plain, *plain_gradients), strict=True)
    for place, (found, expected, beside) in enumerate(pairs):
        assert found.isfinite().all()
        error, usual = ((each.double() - expected).abs().max() for each in (found, beside))
        assert error <= (3 if place else 2) * usual + 2e-6 * expected.abs().max(), place
    same_statistics(statistics, true_statistics)


@pytest.mark.parametrize("score", [Rotary(), TransformerXl(6, heads=2)], ids=["rotary", "transformer_xl"])
def test_products_that_turn_with_the_position_are_products(score):
    asked = request(score, Causal(), shape=(1, 2, 2, 3, 6), sizes=(6, 4))
    torch.testing.assert_close(flash.run(asked).context, run_reference(asked).context, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_as_near_to_the_truth_as_plain_pytorch(dtype):
    asked = request(shape=(1, 1, 1, 17, 20))
    asked = asked._replace(**{name: getattr(asked, name).to(dtype) for name in ("query", "keys", "values")})
    found, plain = (outcome(run, asked, dtype) for run in (flash.run, run_reference))
    truth = outcome(run_reference, asked, torch.float64)
    for place in range(4):
        ours, theirs, exact = ((each[0], *each[1])[place] for each in (found, plain, truth))
        assert ours.dtype == dtype
        error, usual = ((each.double() - exact).abs().max() for each in (ours, theirs))
        assert error <= (3 if place else 2) * usual + torch.finfo(dtype).eps * exact.abs().max(), place


def test_queries_that_may_see_nothing_read_zeros_and_pass_no_gradient():
    asked = request(scope=Causal() & Padding(torch.arange(21)[None] > 4), shape=(1, 1, 1, 18, 21), offset=-2)
    asked = asked._replace(statistics=STATISTICS)
    context, gradients, statistics = outcome(flash.run, asked, torch.float32)
    assert (context[:, :, :7] == 0).all()
    assert (gradients[0][:, :, :7] == 0).all()
    assert all(each.isfinite().all() for each in (context, *gradients, *statistics.values()))
    assert (statistics["top_3"][:, :, :7] == 0).all()
    assert (statistics["max"][:, :, :7] == 0).all()


def test_what_padding_hides_is_never_read_whatever_stands_there():
    asked = request(scope=Padding(KEEP), shape=(1, 1, 1, 4, 21))
    expected = outcome(flash.run, asked, torch.float32)
    asked.keys[:, :, 15:], asked.values[:, :, 15:] = float("nan"), float("nan")
    found = outcome(flash.run, asked, torch.float32)
    torch.testing.assert_close(found[:2], expected[:2], rtol=0, atol=0)


def test_every_number_of_the_outputs_is_written(monkeypatch):
    real = torch.Tensor.new_empty

    def poisoned(self, *size, **options):
        made = real(self, *size, **options)
        return made.fill_(float("nan")) if made.is_floating_point() else made.fill_(-1)

    monkeypatch.setattr(torch.Tensor, "new_empty", poisoned)
    found = flash.run(request(statistics=STATISTICS, scope=Local(2), shape=(1, 1, 1, 17, 19)))
    for each in (found.context, *found.statistics.values()):
        assert each.isfinite().all()
        assert (each >= 0).all() or each is found.context


def test_rows_that_lie_apart_in_memory_are_read_where_they_lie():
    asked = request(shape=(1, 2, 2, 3, 5))
    apart = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in asked[:3]]
    turned = [each.mT.contiguous().mT for each in asked[:3]]
    expected = flash.run(asked).context
    for query, keys, values in (apart, turned):
        found = flash.run(asked._replace(query=query, keys=keys, values=values)).context
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_masks_and_offsets_that_lie_apart_in_memory_are_read_where_they_lie():
    keep = (torch.arange(21)[:, None] < torch.tensor([21, 4, 9])).t()  # as of tokens whose time comes first
    places = torch.tensor([7, 0, 3, 0, 5, 0])[::2]
    for offset in (places, torch.tensor(3).expand(3)):
        asked = request(scope=Padding(keep) & Causal(), shape=(3, 1, 1, 18, 21), offset=offset)
        assert keep.stride() == (1, 3)
        torch.testing.assert_close(flash.run(asked).context, run_reference(asked).context, rtol=1e-5, atol=1e-5)


def test_dropout_falls_on_the_weights_alike_there_and_back():
    asked = request(T5(1, buckets=8, farthest=16), Causal(), shape=(1, 1, 1, 9, 12), sizes=(5, 12))
    shown = asked._replace(values=torch.eye(12)[None, None], dropout=0.4)
    torch.manual_seed(3)
    kept = flash.run(shown).context.detach()  # values that are a unit matrix read the weights themselves
    weights = run_reference(shown._replace(dropout=0.0)).context.detach()
    falls = torch.where(kept > 0, 1 / 0.6, 0.0)
    torch.testing.assert_close(kept, weights * falls)
    assert 0.3 < (kept > 0).sum() / (weights > 0).sum() < 0.9

    def dropped(part):
        scores = part.scores().masked_fill(~part.allowed, float("-inf"))
        return torch.softmax(scores, -1).mul(falls) @ part.values

    torch.manual_seed(3)
    found = outcome(flash.run, asked._replace(dropout=0.4), torch.float32)
    expected = outcome(lambda part: flash.Attended(dropped(part)), asked, torch.float32)
    torch.testing.assert_close(found[:2], expected[:2], rtol=1e-4, atol=1e-5)


def test_equal_seeds_drop_the_same_and_equal_inputs_give_equal_bits():
    asked = request(T5(2, buckets=8, farthest=16), dropout=0.5, shape=(1, 2, 1, 5, 6))
    runs = []
    for _ in range(2):
        torch.manual_seed(1)
        runs.append(outcome(flash.run, asked, torch.float32)[:2])
    torch.testing.assert_close(*runs, rtol=0, atol=0)


def test_the_spread_of_far_positions_is_exact():
    """Two keys, 3000 positions apart from the first and two from each other, with equal weights: mean 3001, spread 1."""
    asked = request(shape=(1, 1, 1, 1, 3003), sizes=(1, 1), statistics=("mean_position", "spread"))
    asked.keys.fill_(-100.0)
    asked.keys[0, 0, [3000, 3002]] = 0.0
    found = flash.run(asked._replace(query=torch.ones_like(asked.query), score=ScaledDot(), scope=Local(3), offset=3001))
    torch.testing.assert_close(found.statistics["mean_position"].flatten(), torch.tensor([3001.0]), rtol=0, atol=1e-3)
    torch.testing.assert_close(found.statistics["spread"].flatten(), torch.tensor([1.0]), rtol=0, atol=1e-4)


def test_keys_and_values_may_have_heads_of_their_own():
    asked = request(shape=(1, 4, 2, 3, 5))
    asked = asked._replace(values=torch.randn(1, 1, 5, 7))
    torch.testing.assert_close(flash.run(asked).context, run_reference(asked).context, rtol=1e-5, atol=1e-5)


def test_statistics_have_no_gradient_and_only_what_is_asked_for_comes():
    asked = request(shape=(1, 1, 1, 2, 3), statistics=("entropy",))
    found = flash.run(asked._replace(query=asked.query.requires_grad_()))
    assert list(found.statistics) == ["entropy"]
    assert found.context.requires_grad
    assert not found.statistics["entropy"].requires_grad


def test_more_best_keys_than_there_are_keys_are_all_keys():
    found = flash.run(request(shape=(1, 1, 1, 2, 3), statistics=("top_5",))).statistics
    assert found["top_5"].shape == found["top_5_keys"].shape == (1, 1, 2, 3)
    torch.testing.assert_close(found["top_5"].sum(-1), torch.ones(1, 1, 2))
    assert found["top_5_keys"].sort(-1).values.tolist() == [[[[0, 1, 2]] * 2]]


def test_auto_takes_it_where_it_is_cheapest(monkeypatch):
    set_costs(monkeypatch, flash=1, sdpa=2, reference=3)
    plain = request(shape=(1, 1, 1, 2, 3))
    assert dispatch.select_kernel(plain, "auto") is flash
    set_costs(monkeypatch, flash=3, sdpa=2, reference=4)
    plain = request(shape=(1, 1, 1, 2, 3))
    assert dispatch.select_kernel(plain, "auto") is sdpa
    assert dispatch.select_kernel(plain._replace(score=Alibi()), "fused") is flash
    found = attend(plain.query, plain.keys, plain.values, score=Alibi(), impl="fused")
    torch.testing.assert_close(found.context, run_reference(plain._replace(score=Alibi())).context, rtol=1e-5, atol=1e-5)


def test_it_says_why_it_does_not_cover_a_request(monkeypatch):
    asked = request(shape=(1, 1, 1, 2, 3))
    double = asked._replace(query=asked.query.double())
    reasons = {
        "needs one of Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl, T5, Alibi, got Distance": asked._replace(
            score=Distance()
        ),
        "needs Softmax, got Sparsemax": asked._replace(normalise=Sparsemax()),
        "never forms the weights, and they are asked for": asked._replace(weights=True),
        "needs queries and keys of one size, got 5 and 4": asked._replace(keys=asked.keys[..., :4]),
        "needs queries, keys and values in one of float32, float16 and bfloat16, got float64, float32, float32": double,
        "needs heads of at most 256, got 300": asked._replace(values=torch.randn(1, 1, 3, 300)),
        "needs a query and a key, and one of them is missing": asked._replace(query=asked.query[:, :, :0]),
        "needs at most 65535 heads in a batch, got 65536": asked._replace(query=asked.query.expand(65536, 1, 2, 5)),
        "keeps the 16 largest weights at most, and top_17 is asked for": asked._replace(statistics=("top_17",)),
    }
    for reason, each in reasons.items():
        assert flash.covers(each) == reason
    assert flash.covers(asked) is None
    monkeypatch.setattr(flash, "INSTALLED", False)
    assert flash.covers(asked) == "needs Triton, which is not installed; pip install triton"
    monkeypatch.undo()
    assert flash.covers(asked) == "needs a GPU, got cpu"


def test_it_cannot_be_exported(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    assert flash.covers(request(shape=(1, 1, 1, 2, 3))) == "cannot be exported"


def test_a_program_has_room_for_every_size_of_head():
    for size in (8, 64, 65, 128, 256):
        for dtype in flash.DTYPES:
            data = torch.empty(1, 1, 1, size, dtype=dtype)
            rows, columns, warps, stages = FOR_GPUS(data, data)
            held = (rows + 2 * stages * columns) * max(16, 1 << (size - 1).bit_length()) * data.element_size()
            assert held <= 200_000
            assert warps in (4, 8)


FOR_GPUS = flash.select_tiles


def test_a_gpu_that_has_no_room_for_the_smallest_tiles_is_named(monkeypatch):
    monkeypatch.setattr(flash.capability, "find_shared_memory", lambda device: 64 << 10)
    wide = request(shape=(1, 1, 1, 2, 3), sizes=(160, 256))
    assert flash.covers(wide) == "needs 66 KiB of shared memory for heads of this size, got a GPU with 64"
    biased = wide._replace(score=T5(1))
    assert flash.covers(biased) == "needs 96 KiB of shared memory for heads of this size, got a GPU with 64"
    with torch.no_grad():
        assert flash.covers(wide) is None
        assert flash.covers(biased) is None
    assert flash.covers(request(T5(2), sizes=(128, 128))) is None


def test_a_gpu_that_lacks_something_is_named(monkeypatch):
    monkeypatch.setattr(flash.capability, "find_obstacle", lambda device, dtype: f"lacks {dtype}")
    assert flash.covers(request()) == "lacks torch.float32"


def test_tiles_that_do_not_fit_give_way_to_smaller_ones_there_and_back(monkeypatch):
    tried = []

    def refuse(start, sets, need, device, kind):
        tried.append(kind[0])
        return start(sets[-1])

    monkeypatch.setattr(flash, "select_tiles", lambda query, values: [64, 64, 4, 2])
    monkeypatch.setattr("regard.kernels.triton.flash.arguments.launch_largest", refuse)
    asked = request(T5(2, buckets=8, farthest=16), Causal())._replace(statistics=("received",))
    found, exact = (outcome(run, asked, torch.float32) for run in (flash.run, run_reference))
    assert tried == ["forward", "sum_columns", "write_dq", "write_dkv", "write_dbias"]
    for one, other in zip((found[0], *found[1]), (exact[0], *exact[1]), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.unhooked
def test_compiling_keeps_it_as_one_operator():
    asked = request(T5(1, buckets=8, farthest=16), Causal(), shape=(1, 1, 1, 3, 5), statistics=("entropy", "received"))

    def run(query, keys, values):
        found = attend(query, keys, values, score=asked.score, scope=Causal(), impl="fused", statistics=asked.statistics)
        return found.context, found.statistics["entropy"], found.statistics["received"]

    leaves = [each.requires_grad_() for each in asked[:3]]
    found = torch.compile(run, backend="aot_eager", fullgraph=True)(*leaves)
    expected = run(*leaves)
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(each[0].square().sum(), [*leaves, asked.score.b]) for each in (found, expected)]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("scope", [Local(3), Causal() & Local(2)], ids=str)
def test_a_window_is_not_compiled_for_flex(scope):
    """Which skips the same tiles, and takes seconds to compile."""
    assert flex.cost(request(scope=scope)) == float("inf")


def test_padding_is_skipped_and_may_hold_anything(monkeypatch):
    """Rows of any length, the last one without a key, and a hole in one of them."""
    keep = torch.arange(40)[None] < torch.tensor([40, 17, 33, 0])[:, None]
    keep[2, 5] = False
    asked = request(scope=Padding(keep) & Causal(), shape=(4, 2, 2, 35, 40))
    hidden = ~keep[:, None, :, None]
    poisoned = asked._replace(
        keys=asked.keys.masked_fill(hidden, torch.nan), values=asked.values.masked_fill(hidden, torch.nan)
    )
    clean = asked._replace(keys=asked.keys.masked_fill(hidden, 0.0), values=asked.values.masked_fill(hidden, 0.0))
    sides = [[tensor.clone().requires_grad_() for tensor in each[:3]] for each in (poisoned, clean)]
    contexts = [
        flash.run(poisoned._replace(**dict(zip(("query", "keys", "values"), sides[0], strict=True)))).context,
        run_reference(clean._replace(**dict(zip(("query", "keys", "values"), sides[1], strict=True)))).context,
    ]
    torch.testing.assert_close(*contexts, rtol=1e-5, atol=1e-5)
    gradients = [torch.autograd.grad(context.square().sum(), side) for context, side in zip(contexts, sides, strict=True)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-4)
    assert not gradients[0][1].masked_select(hidden).any()


def test_where_no_statistics_are_asked_for_nothing_is_worked_out():
    assert flash.run(request()).statistics == {}
    assert flash.list_statistics(request()) is flash.NO_STATISTICS


@pytest.mark.parametrize("causal", [False, True])
def test_a_recorder_of_other_models_takes_statistics_from_it(causal, monkeypatch):
    query, key, value = (torch.randn(2, heads, 18, 8) for heads in (4, 2, 2))
    call = Product(query, key, value, 0.3, causal=causal)
    whole = measure(call.all_weights(), call.allowed(0, 18), STATISTICS)
    monkeypatch.setattr(Product, "blocks", None)  # no block of weights is formed
    values_by_name = call.statistics(STATISTICS)
    del values_by_name["top_3_keys"]  # of weights that are zero, where fewer than three keys are seen
    for name, values in values_by_name.items():
        torch.testing.assert_close(values, whole[name], rtol=1e-4, atol=1e-5, check_dtype=False)
