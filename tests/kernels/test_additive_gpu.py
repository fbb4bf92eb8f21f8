import math

import pytest
import torch

from regard.attention import attend, dispatch, reference
from regard.attention.attend import run_reference
from regard.attention.mechanisms.location_sensitive import LocationSensitive
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.causal import Causal
from regard.attention.scope.dilated import Dilated
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.additive import Additive
from regard.attention.score.concat import Concat
from regard.attention.score.dot import Dot
from regard.attention.types import Encoded, Request
from regard.kernels import additive_gpu

pytest.importorskip("triton", reason="the kernels are written in it")
if torch.cuda.is_available():
    pytest.skip("these run in the interpreter; benchmarks/additive.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.additive import operator
from regard.kernels.triton.additive.arguments import ReadTile, Tiles

from ..costs import set_costs

SMALL = {
    "rows": 16,
    "columns": 16,
    "pairs": 2,
    "four_rows": 16,
    "four_columns": 32,
    "four_least": 3,
    "both": 8,
    "both_rows": 16,
    "read": ReadTile(16, 16, 128, 4),
    "read_single": ReadTile(16, 16, 64, 4),
    "slope_columns": 16,
}
KEEP = torch.tensor([[True] * 9, [True, False, True, True, True, False, False, False, False]])
NOTHING = torch.tensor([[False] * 9, [True] * 3 + [False] * 6])


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(operator, "TILES", Tiles(**SMALL))
    monkeypatch.setattr(additive_gpu, "DEVICES", ("cpu",))


def request(score, queries=3, keys=9, batch=2, heads=1, key_heads=1, dtype=torch.float64, **options) -> Request:
    """A small request, the same numbers in whatever precision."""
    drawn = torch.Generator().manual_seed(1)
    query, key, value = (
        torch.randn(batch, count, time, size, generator=drawn).to(dtype).requires_grad_()
        for count, time, size in ((heads, queries, 3), (key_heads, keys, 4), (key_heads, keys, 6))
    )
    plain = {"normalise": Softmax(), "scope": Everywhere(), "dropout": 0.0, "offset": keys - queries}
    plain |= {"weights": True, "statistics": ()}
    return Request(query, score.to(dtype).prepare(key), value, score, **plain | options)


def outcome(run, build, dtype, **options):
    """Context, weights, and every gradient, where both count."""
    torch.manual_seed(3)
    score = build()
    asked = request(score, dtype=dtype, **options)
    found = run(asked)
    whole = found.context.float().square().sum() + (found.weights.float() ** 3).sum()
    leaves = [asked.query, asked.values, asked.keys, *score.parameters()]
    return [found.context, found.weights, *torch.autograd.grad(whole, leaves)]


def agree(build, dtype=torch.float32, **options):
    """No further from double precision than twice the three stages in the same precision; backward three times."""
    exact = outcome(run_reference, build, torch.float64, **options)
    plain, ours = (outcome(run, build, dtype, **options) for run in (run_reference, additive_gpu.run))
    for number, (found, beside, expected) in enumerate(zip(ours, plain, exact, strict=True)):
        assert found.shape == expected.shape
        assert found.dtype == beside.dtype
        unit = 4 * torch.finfo(dtype).eps * max(1.0, expected.abs().max().item())
        error, theirs = ((each - expected).abs().max().item() for each in (found, beside))
        assert error <= (2 if number < 2 else 3) * theirs + unit, (number, error, theirs)


def additive():
    return Additive(3, 4, hidden=3)


def apart():
    return Additive(3, 4, hidden=4, heads=2)


def concat():
    return Concat(3, 4, hidden=5)


@pytest.mark.parametrize("queries", [1, 2])
@pytest.mark.parametrize(
    ("build", "heads", "key_heads"), [(additive, 1, 1), (additive, 4, 2), (apart, 2, 1), (concat, 2, 2)]
)
def test_it_equals_the_three_stages_in_every_output_and_gradient(build, heads, key_heads, queries):
    agree(build, batch=1, heads=heads, key_heads=key_heads, queries=queries)


@pytest.mark.parametrize(("queries", "keys"), [(17, 18), (1, 37)])
def test_it_does_over_several_tiles(queries, keys):
    agree(additive, batch=1, queries=queries, keys=keys, scope=Causal())


@pytest.mark.parametrize("queries", [1, 3])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_it_does_in_half_precision(dtype, queries):
    agree(additive, dtype, queries=queries)


SCOPES = {
    "padding": (Padding(KEEP), 0),
    "a row of nothing": (Padding(NOTHING), 0),
    "causal": (Causal(), 2),
    "before the first key": (Causal(), -2),
    "local": (Local(2), 1),
    "all in one": (Causal() & Local(3) & Padding(KEEP) & Everywhere() & Padding(KEEP), torch.tensor([0, 5])),
    "a mask and more": (Dilated(3) & Causal() & Dilated(2), 4),
    "a mask of its own": (~Padding(KEEP) | Local(1), torch.tensor([2, 12])),
}


@pytest.mark.parametrize("queries", [1, 4])
@pytest.mark.parametrize(("scope", "offset"), SCOPES.values(), ids=SCOPES)
def test_it_does_under_every_scope(scope, offset, queries):
    agree(additive, scope=scope, offset=offset, queries=queries)


WAYS = {"in the kernel": Padding, "by bits": lambda keep: ~Padding(~keep)}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("queries", [1, 3])
def test_a_query_that_may_see_nothing_reads_zero_and_passes_no_gradient(queries, way):
    context, weights, *gradients = outcome(additive_gpu.run, additive, torch.float32, scope=way(NOTHING), queries=queries)
    assert context[0].eq(0).all()
    assert weights[0].eq(0).all()
    assert weights[1].sum(-1).sub(1).abs().max() < 1e-6
    assert all(each[0].eq(0).all() for each in gradients[:3])


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("queries", [1, 3])
def test_whatever_stands_where_nobody_looks_reaches_nobody(queries, way):
    def run(filler):
        torch.manual_seed(3)
        score = additive()
        asked = request(score, dtype=torch.float32, scope=way(KEEP), queries=queries)
        hidden = ~KEEP[:, None, :, None]
        keys, values = (each.detach().masked_fill(hidden, filler).requires_grad_() for each in (asked.keys, asked.values))
        found = additive_gpu.run(asked._replace(keys=keys, values=values))
        return [found.context, *torch.autograd.grad(found.context.sum(), [asked.query, keys, values, *score.W.parameters()])]

    for found, expected in zip(run(math.nan), run(0.0), strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("queries", [1, 3])
def test_a_key_that_is_seen_and_not_a_number_is_not_hidden(queries):
    asked = request(additive(), dtype=torch.float32, queries=queries)
    keys = asked.keys.detach().clone()
    keys[0, 0, 7, 1] = math.nan
    found = additive_gpu.run(asked._replace(keys=keys))
    assert found.context[0].isnan().all()
    assert found.context[1].isfinite().all()


@pytest.mark.parametrize("queries", [1, 3])
def test_every_number_that_comes_out_was_written(monkeypatch, queries):
    def poisoned(name):
        plain = getattr(torch.Tensor, name)

        def empty(self, *size, **options):
            made = plain(self, *size, **options)
            return made.fill_(math.nan) if made.is_floating_point() else made

        monkeypatch.setattr(torch.Tensor, name, empty)

    expected = outcome(additive_gpu.run, additive, torch.float32, queries=queries, scope=Padding(KEEP))
    poisoned("new_empty")
    monkeypatch.setattr(torch, "empty_like", lambda data, **options: torch.full_like(data, math.nan, **options))
    for found, plain in zip(
        outcome(additive_gpu.run, additive, torch.float32, queries=queries, scope=Padding(KEEP)), expected, strict=True
    ):
        assert torch.equal(found, plain)


def test_dropout_follows_the_seed_and_leaves_the_weights_that_are_returned():
    asked = request(additive(), dtype=torch.float32, dropout=0.5)
    first, again, other = (additive_gpu.run(asked) for seed in (1, 1, 2) if torch.manual_seed(seed))
    assert torch.equal(first.context, again.context)
    assert not torch.equal(first.context, other.context)
    torch.testing.assert_close(first.weights, run_reference(asked).weights)
    assert additive_gpu.run(asked._replace(dropout=1.0)).context.eq(0).all()


@pytest.mark.parametrize("room", [2560, 2 * 5120])
def test_it_is_the_same_in_chunks(monkeypatch, room):
    options = {"batch": 1, "heads": 3, "queries": 20, "keys": 4, "scope": Causal(), "dtype": torch.float32, "offset": 0}
    expected = outcome(additive_gpu.run, additive, **options)
    monkeypatch.setattr(operator, "TILES", Tiles(**SMALL, room=room))
    for found, whole in zip(outcome(additive_gpu.run, additive, **options), expected, strict=True):
        torch.testing.assert_close(found, whole)


def test_repeats_are_equal_to_the_last_bit():
    options = {"batch": 1, "heads": 2, "scope": Causal(), "dtype": torch.float32}
    first, again = (outcome(additive_gpu.run, additive, **options) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))


def test_with_another_normaliser_the_scores_alone_come_from_the_kernel():
    agree(additive, normalise=Sparsemax(), heads=2, scope=Causal(), batch=1)


def test_statistics_are_those_of_the_three_stages():
    asked = request(additive(), dtype=torch.float32, statistics=("entropy", "received"), weights=False, scope=Causal())
    found, expected = additive_gpu.run(asked), run_reference(asked)
    assert found.weights is None
    for name in asked.statistics:
        torch.testing.assert_close(found.statistics[name], expected.statistics[name])


def test_autocast_leaves_the_weights_in_single_precision_as_it_does_on_a_gpu():
    asked = request(additive(), dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found, expected = additive_gpu.run(asked), run_reference(asked)
    assert (found.context.dtype, found.weights.dtype) == (expected.context.dtype, torch.float32)
    torch.testing.assert_close(found.context, expected.context, rtol=0.05, atol=0.05)


def test_location_sensitive_attention_takes_it(monkeypatch):
    monkeypatch.setattr(dispatch, "KERNELS", {"additive_gpu": additive_gpu})
    attention = LocationSensitive(3, 4, filters=2, kernel=3)
    source, query = torch.randn(2, 9, 4), torch.randn(2, 2, 3)

    def run(impl):
        attention.impl = impl
        found = attention(query, attention.remember(Encoded(source, KEEP)), weights=True)
        parameters = list(attention.parameters())
        return [found.context, found.weights, *torch.autograd.grad(found.context.square().sum(), parameters)]

    for found, expected in zip(run("fused"), run("reference"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_it_prepares_keys_as_ever():
    score, key = additive(), torch.randn(1, 1, 5, 4)
    torch.testing.assert_close(additive_gpu.TiledScore(score).prepare(key), score.prepare(key))


def test_it_covers_both_scores_under_any_normaliser_and_scope():
    assert additive_gpu.covers(request(additive(), dtype=torch.float32)) is None
    assert additive_gpu.covers(request(concat(), dtype=torch.bfloat16, normalise=Sparsemax(), scope=Dilated(2))) is None


def test_its_cost_grows_with_its_hidden_units_and_less_memory_is_counted_than_the_reference_takes():
    few, many = (request(Additive(3, 4, hidden=5), queries=queries, dtype=torch.float32) for queries in (3, 300))
    assert additive_gpu.cost(few) <= additive_gpu.cost(many)
    assert additive_gpu.count_work(many).memory < reference.count_work(many).memory
    assert additive_gpu.count_work(few._replace(normalise=Sparsemax())).variant.startswith("tiles/scores/")


def test_it_says_why_it_does_not_cover_a_request(monkeypatch):
    asked = request(additive(), dtype=torch.float32)
    assert additive_gpu.covers(asked._replace(score=Dot())) == "needs Additive or Concat, got Dot"
    without = asked._replace(score=Concat(3, 4, tanh=False))
    assert additive_gpu.covers(without) == "needs Concat with its tanh, got it without"
    assert additive_gpu.covers(request(additive())) == "needs half or single precision, got float64"
    reason = "needs a hidden unit and a dimension of the values at least, got {} and {}"
    assert additive_gpu.covers(asked._replace(values=asked.values[..., :0])) == reason.format(asked.keys.shape[3], 0)
    assert additive_gpu.covers(asked._replace(keys=asked.keys[..., :0])) == reason.format(0, asked.values.shape[3])
    long = asked._replace(keys=asked.keys[:, :, :1, :1].expand(-1, -1, 1 << 20, 2048))
    assert additive_gpu.covers(long) == (
        "needs fewer than 2130706432 numbers in a head, of 64 units at least, got 1048576 rows of 2048"
    )
    monkeypatch.setattr(additive_gpu, "INSTALLED", False)
    assert additive_gpu.covers(asked) == "needs triton, which is not installed; pip install triton"
    monkeypatch.undo()
    assert additive_gpu.covers(asked) == "needs a GPU, got cpu"


def test_what_cannot_be_traced_is_refused(monkeypatch):
    asked = request(additive(), dtype=torch.float32, statistics=("entropy",))
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    text = "takes statistics a block of queries at a time, which cannot be traced"
    assert additive_gpu.covers(asked) == text
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    assert additive_gpu.covers(asked) == "cannot be exported"


def test_on_a_cpu_it_is_left_out(monkeypatch):
    monkeypatch.setattr(additive_gpu, "DEVICES", ("cuda",))
    set_costs(monkeypatch, additive_gpu=1, additive=2, reference=3)
    query, key = torch.randn(1, 1, 2, 3), torch.randn(1, 1, 5, 4)
    assert dispatch.select_kernel(request(additive(), dtype=torch.float32), "auto") is dispatch.KERNELS["additive"]
    assert attend(query, key, key, score=additive()).context.shape == (1, 1, 2, 4)


def test_a_gpu_that_lacks_something_is_named(monkeypatch):
    monkeypatch.setattr(additive_gpu.capability, "find_obstacle", lambda device, dtype: f"lacks {dtype}")
    asked = request(Additive(3, 4), dtype=torch.float32)
    assert additive_gpu.covers(asked) == "lacks torch.float32"
    assert additive_gpu.covers(asked._replace(values=asked.values.bfloat16())) == "lacks torch.bfloat16"
    with torch.autocast("cpu", torch.bfloat16):
        assert additive_gpu.covers(asked) == "lacks torch.bfloat16"


@pytest.mark.unhooked
@pytest.mark.parametrize("queries", [1, 4])
def test_it_compiles_whole_and_equals_itself(monkeypatch, queries):
    torch._dynamo.reset()
    monkeypatch.setattr(dispatch, "KERNELS", {"additive_gpu": additive_gpu})
    score = additive()
    query, key, value = torch.randn(2, 1, queries, 3), torch.randn(2, 1, 9, 4), torch.randn(2, 1, 9, 6)

    def run(query):
        scope = Causal() & Padding(KEEP)
        found = attend(query, key, value, score=score, scope=scope, impl="fused", weights=True, dropout=1e-9)
        return found.context, found.weights

    def outcome(function):
        leaf = query.clone().requires_grad_()
        context, weights = function(leaf)
        gradients = torch.autograd.grad(context.square().sum() + weights.square().sum(), [leaf, *score.parameters()])
        return [context, weights, *gradients]

    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    for found, expected in zip(outcome(compiled), outcome(run), strict=True):
        torch.testing.assert_close(found, expected)
