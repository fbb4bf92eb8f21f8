import pytest
import torch

from regard.attention import attend
from regard.attention.attend import run_reference
from regard.attention.mechanisms.linear import Linear
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sum_to_one import SumToOne
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.dot import Dot
from regard.attention.score.feature_map import FeatureMap
from regard.attention.types import Request
from regard.kernels import linear

from ..costs import set_costs


def request(
    scope=Everywhere(),
    shape=(2, 2, 5, 7),
    groups=2,
    offset=2,
    dtype=torch.float64,
    score=FeatureMap(),
    **options,
) -> Request:
    batch, heads, queries, keys = shape
    query = torch.randn(batch, heads, queries, 4, dtype=dtype, requires_grad=True)
    key, value = (torch.randn(batch, groups, keys, size, dtype=dtype, requires_grad=True) for size in (4, 3))
    usual = {"normalise": SumToOne(), "dropout": 0.0, "weights": False, "statistics": ()}
    return Request(query, key, value, score, scope=scope, offset=offset, **usual | options)


def outcome(run, asked, direction=None):
    """The context and the gradient of query, key and value, which were not prepared yet."""
    inputs = asked.query, asked.keys, asked.values
    context = run(asked._replace(keys=asked.score.prepare(asked.keys))).context
    direction = torch.randn_like(context) if direction is None else direction
    return [context, *torch.autograd.grad(context, inputs, direction)], direction


def compare(asked, **tolerance):
    found, direction = outcome(linear.run, asked)
    expected, _ = outcome(run_reference, asked, direction)
    for ours, reference in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, reference, **tolerance)


def holes(keys):
    """A row with something everywhere, and one with holes: at its beginning too."""
    keep = torch.arange(keys).expand(2, keys) % 3 > 0
    keep[0] = True
    return Padding(keep)


SCOPES = {
    "everywhere": lambda keys: Everywhere(),
    "padding": holes,
    "causal": lambda keys: Causal(),
    "causal and padding": lambda keys: Causal() & holes(keys),
    "everywhere, padding twice and causal": lambda keys: holes(keys) & (Everywhere() & Padding.sample(2, keys)) & Causal(),
}
every_scope = pytest.mark.parametrize("scope", SCOPES.values(), ids=SCOPES)


def test_two_keys_can_be_worked_by_hand():
    query, key = torch.zeros(1, 1, 1, 1), torch.tensor([[[[0.0], [2.0]]]])
    value = torch.tensor([[[[1.0], [5.0]]]])
    # φ(q) = 1, φ(k) = [1, 3]:  (1·1 + 3·5) / (1 + 3) = 4
    found = attend(query, key, value, score=FeatureMap(), normalise=SumToOne(), impl="fused").context
    assert found.tolist() == [[[[4.0]]]]


@every_scope
@pytest.mark.parametrize("lengths", [(5, 7), (7, 5), (1, 1), (1, 9), (64, 64), (65, 65), (130, 200), (200, 130)], ids=str)
def test_it_equals_the_three_stages_in_output_and_gradients(scope, lengths):
    queries, keys = lengths
    compare(request(scope(keys), (2, 2, queries, keys), offset=max(keys - queries, 0)))


@pytest.mark.parametrize("offset", [-80, -2, 0, 1, 3, 6, 7, 20])
@pytest.mark.parametrize("queries", [1, 4, 70])
def test_causal_queries_may_stand_anywhere(offset, queries):
    compare(request(Causal() & holes(7), (2, 2, queries, 7), offset=offset))


@pytest.mark.parametrize("offset", [torch.tensor([0, 5]), torch.tensor([9, -1]), -1], ids=str)
def test_a_single_causal_query_may_stand_elsewhere_in_each_row(offset):
    asked = request(Causal() & holes(7), (2, 2, 1, 7), offset=offset)
    assert linear.covers(asked) is None
    compare(asked)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("scope", [Everywhere(), Causal()], ids=str)
def test_key_heads_may_be_shared(groups, scope):
    compare(request(scope, (2, 4, 5, 7), groups=groups))


@pytest.mark.parametrize(
    "scope", [Padding.from_lengths(torch.tensor([7, 0]), 7), Causal() & holes(7)], ids=["empty", "first"]
)
def test_a_query_that_sees_nothing_gets_zeros_and_passes_no_gradient(scope):
    asked = request(scope, offset=0)
    seen = (
        run_reference(asked._replace(keys=FeatureMap().prepare(asked.keys), weights=True)).weights.sum(-1, keepdim=True) > 0
    )
    assert not seen.all()
    (context, *_), _ = outcome(linear.run, asked)
    assert not context.masked_fill(seen, 0.0).any()
    blind = (~seen).double().expand_as(context)
    (_, *gradients), _ = outcome(linear.run, asked, blind)
    assert not any(each.any() for each in gradients)


@every_scope
def test_all_steps_of_a_growing_cache_equal_all_at_once(scope):
    asked = request(scope(70), (2, 2, 70, 70), offset=0)._replace(scope=SCOPES["causal"](70))
    whole = linear.run(asked).context
    for last in (0, 1, 63, 64, 69):
        step = asked._replace(query=asked.query[:, :, last : last + 1], offset=last)
        kept = step._replace(keys=asked.keys[:, :, : last + 1], values=asked.values[:, :, : last + 1])
        torch.testing.assert_close(linear.run(step).context[:, :, 0], whole[:, :, last])
        torch.testing.assert_close(linear.run(kept).context[:, :, 0], whole[:, :, last])


@pytest.mark.parametrize("chunk", [1, 2, 7, 100])
def test_the_size_of_a_chunk_changes_nothing(monkeypatch, chunk):
    monkeypatch.setattr(linear, "CHUNK", chunk)
    compare(request(Causal() & holes(30), (2, 2, 20, 30), offset=5))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("scope", [Everywhere(), Causal()], ids=str)
def test_it_is_no_further_from_the_truth_than_the_stages_in_the_same_precision(dtype, scope):
    length = 300 if dtype == torch.float32 else 12  # some machines claim instructions for half precision, and lack them
    asked = request(scope, (2, 2, length, length), offset=0, dtype=dtype)
    names = ("query", "keys", "values")
    exact = asked._replace(**{name: getattr(asked, name).detach().double().requires_grad_() for name in names})
    truth, direction = outcome(run_reference, exact)
    found, _ = outcome(linear.run, asked, direction.to(dtype))
    plain, _ = outcome(run_reference, asked, direction.to(dtype))
    for ours, reference, right in zip(found, plain, truth, strict=True):
        assert ours.dtype == dtype
        assert (ours - right).abs().mean() <= 2 * (reference - right).abs().mean()
        assert (ours - right).abs().max() <= 2 * (reference - right).abs().max()


def test_sums_that_would_overflow_in_half_precision_stay_finite():
    query, value = torch.full((1, 1, 3, 4), 200.0), torch.ones(1, 1, 3, 4)
    inputs = [each.half().requires_grad_() for each in (query, query, value)]
    for scope in (Everywhere(), Causal()):
        context = attend(*inputs, score=FeatureMap(), normalise=SumToOne(), scope=scope, impl="fused").context
        gradients = torch.autograd.grad(context.float().sum(), inputs)
        assert context.tolist() == [[[[1.0] * 4] * 3]]
        assert all(each.isfinite().all() for each in gradients)


def largest_allocation(function) -> int:
    """The bytes of the largest tensor that is made while the function runs."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        function()
    events = profile.profiler.kineto_results.events()
    return max(event.nbytes() for event in events if event.name() == "[memory]")


@pytest.mark.parametrize("scope", [Everywhere(), Causal()], ids=str)
def test_no_matrix_of_queries_by_keys_ever_exists(scope):
    length = 2048
    asked = request(scope, (1, 1, length, length), 1, offset=0, dtype=torch.float32)
    square = 4 * length * length  # bytes
    assert largest_allocation(lambda: outcome(run_reference, asked)) >= square
    assert largest_allocation(lambda: outcome(linear.run, asked)) <= square / 16


@every_scope
def test_statistics_come_by_a_sweep_and_equal_those_of_the_weights(scope):
    asked = request(scope(7), statistics=("entropy", "max", "received", "uniform", "top_2"))
    found, expected = linear.run(asked).statistics, run_reference(asked).statistics
    assert found.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], msg=name)


@every_scope
def test_attend_takes_it_unless_told_otherwise(monkeypatch, scope):
    taken = []
    set_costs(monkeypatch, linear=1, reference=2)
    monkeypatch.setattr(linear, "run", lambda request: taken.append(request) or run_reference(request))
    query, data = torch.randn(2, 1, 5, 4), torch.randn(2, 1, 7, 4)
    options = {"score": FeatureMap(), "normalise": SumToOne(), "scope": scope(7)}
    attend(query, data, data, **options)
    assert len(taken) == 1
    attend(query, data, data, **options, impl="reference")
    attend(query, data, data, **options, weights=True)
    attend(query, data, data, **options, dropout=0.5)
    assert len(taken) == 1


def test_it_says_why_it_does_not_cover_a_request(monkeypatch):
    asked = request()
    reasons = {
        "needs FeatureMap, got Dot": {"score": Dot()},
        "needs SumToOne, got Softmax": {"normalise": Softmax()},
        "needs queries and keys of one size, got 6 and 4": {"query": torch.zeros(2, 2, 5, 6)},
        "never forms the weights, and they are asked for": {"weights": True},
        "never forms the weights, and some are to be dropped": {"dropout": 0.1},
        "needs Everywhere, Padding, Causal or several of them joined by &, got Local": {"scope": Causal() & Local(2)},
        "needs Everywhere, Padding, Causal or several of them joined by &, got Not": {"scope": ~Causal()},
        "needs one offset for all rows where several queries are causal, got one for each row": {
            "scope": Causal(),
            "offset": torch.tensor([0, 1]),
        },
    }
    assert linear.covers(asked) is None
    for reason, change in reasons.items():
        assert linear.covers(asked._replace(**change)) == reason
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    assert linear.covers(asked) is None
    assert linear.covers(request(Causal())) == "cannot be exported with a causal scope and open lengths"
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    text = "takes statistics a block of queries at a time, which cannot be traced"
    assert linear.covers(request(statistics=("entropy",))) == text


def test_what_extends_a_covered_stage_is_not_taken_for_it():
    class Doubled(FeatureMap):
        pass

    class Backwards(Causal):
        def __call__(self, b, h, q, k):
            return k >= q

    class Squared(SumToOne):
        pass

    assert linear.covers(request(score=Doubled())) == "needs FeatureMap, got Doubled"
    assert linear.covers(request(normalise=Squared())) == "needs SumToOne, got Squared"
    assert linear.covers(request(Backwards())).endswith("got Backwards")


def test_padding_made_for_other_sizes_is_refused():
    data = torch.randn(2, 1, 5, 4)
    with pytest.raises(ValueError, match=r"Padding was made for \(2, 7\) .* with 5 keys"):
        attend(data, data, data, score=FeatureMap(), normalise=SumToOne(), scope=holes(7))


def test_the_operator_for_the_compiler_has_the_same_gradients():
    for queries, keys, offset in ((5, 7, 2), (7, 5, 0), (3, 9, 1), (70, 70, 0), (4, 6, -2)):
        asked = request(Causal(), (2, 2, queries, keys), offset=offset)
        inputs = asked.query, asked.keys, asked.values
        found, expected = linear.causal_sums_operator(*inputs, offset), linear.compute_causal_sums(*inputs, offset)
        torch.testing.assert_close(found, expected)
        direction = torch.randn_like(expected)
        gradients = [torch.autograd.grad(each, inputs, direction) for each in (found, expected)]
        torch.testing.assert_close(*gradients)


@pytest.mark.unhooked
def test_it_compiles_without_a_break_and_for_lengths_that_are_open():
    def context(query, data):
        return attend(query, data, data, score=FeatureMap(), normalise=SumToOne(), scope=Causal(), impl="fused").context

    compiled = torch.compile(context, fullgraph=True, backend="aot_eager")
    for number, (queries, keys) in enumerate(((70, 90), (50, 130))):
        query, data = (torch.randn(2, 2, length, 4, requires_grad=True) for length in (queries, keys))
        for each in (query, data) if number == 0 else ():
            torch._dynamo.mark_dynamic(each, 2)
        with torch.compiler.set_stance("fail_on_recompile" if number else "default"):
            found, expected = compiled(query, data), context(query, data)
        torch.testing.assert_close(found, expected)
        gradients = [torch.autograd.grad(each.square().sum(), (query, data)) for each in (found, expected)]
        torch.testing.assert_close(*gradients)


def test_autocast_does_not_take_the_sums_back_to_half_precision():
    torch.manual_seed(0)
    made = Linear(64, 64, heads=1).eval()
    source, query = torch.randn(1, 2048, 64), torch.randn(1, 4, 64)
    with torch.no_grad():
        exact = made(query, made.remember(source)).context
        with torch.autocast("cpu", torch.float16):
            found = made(query, made.remember(source)).context
    torch.testing.assert_close(found.float(), exact, rtol=2e-2, atol=2e-2)
