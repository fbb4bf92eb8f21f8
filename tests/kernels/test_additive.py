import math

import pytest
import torch

from regard.attention import attend
from regard.attention.attend import run_reference
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.additive import Additive
from regard.attention.score.concat import Concat
from regard.attention.score.dot import Dot
from regard.attention.types import Request
from regard.kernels import additive


def plain(query, key, v):
    """vᵀ tanh(q + k) by the formula."""
    return (torch.tanh(query[:, :, :, None] + key[:, :, None]) @ v[:, None, :, None])[..., 0]


def inputs(batch, heads, queries, keys, hidden, dtype=torch.float64, key_heads=None, v_heads=None, spread=1.0):
    return (
        spread * torch.randn(batch, heads, queries, hidden, dtype=dtype),
        spread * torch.randn(batch, key_heads or heads, keys, hidden, dtype=dtype),
        torch.randn(v_heads or heads, hidden, dtype=dtype),
    )


def outcome(function, tensors, gradient):
    """The scores and the gradient of every input."""
    leaves = [each.detach().clone().requires_grad_() for each in tensors]
    found = function(*leaves)
    return [found.detach(), *torch.autograd.grad(found, leaves, gradient)]


def request(score, normalise=Softmax(), scope=Everywhere(), heads=1, weights=False) -> Request:
    query, key = torch.randn(2, heads, 3, score.query), torch.randn(2, heads, 5, score.key)
    return Request(query, score.prepare(key), key, score, normalise, scope, 0.0, 2, weights, ())


def test_one_hidden_unit_can_be_worked_by_hand():
    query, key = torch.tensor([[[[0.0], [1.0]]]]), torch.tensor([[[[0.0], [1.0]]]])
    found = additive.compute_scores(query, key, torch.tensor([[2.0]]))
    expected = [[0.0, 2 * math.tanh(1)], [2 * math.tanh(1), 2 * math.tanh(2)]]
    torch.testing.assert_close(found[0, 0], torch.tensor(expected))


@pytest.mark.parametrize(
    ("batch", "heads", "queries", "keys", "hidden"),
    [(2, 3, 37, 53, 16), (1, 1, 1, 1, 1), (3, 2, 1, 7, 5), (3, 2, 7, 1, 5), (2, 1, 5, 130, 1), (1, 4, 65, 64, 3)],
)
def test_it_equals_the_formula_in_every_output_and_gradient(batch, heads, queries, keys, hidden):
    tensors = inputs(batch, heads, queries, keys, hidden)
    gradient = torch.randn(batch, heads, queries, keys, dtype=torch.float64)
    for found, expected in zip(
        outcome(additive.compute_scores, tensors, gradient), outcome(plain, tensors, gradient), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("block", [1, 3, 16, 50, 100, 400])
def test_the_size_of_a_block_changes_nothing(monkeypatch, block):
    monkeypatch.setattr(additive, "BLOCK", block)
    tensors = inputs(3, 2, 5, 7, 3)
    gradient = torch.randn(3, 2, 5, 7, dtype=torch.float64)
    for found, expected in zip(
        outcome(additive.compute_scores, tensors, gradient), outcome(plain, tensors, gradient), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


def test_keys_and_v_may_be_shared_by_all_heads():
    tensors = inputs(2, 3, 4, 5, 6, key_heads=1, v_heads=1)
    gradient = torch.randn(2, 3, 4, 5, dtype=torch.float64)
    for found, expected in zip(
        outcome(additive.compute_scores, tensors, gradient), outcome(plain, tensors, gradient), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


def test_no_keys_and_no_queries_are_no_trouble():
    assert additive.compute_scores(*inputs(2, 1, 3, 0, 4)).shape == (2, 1, 3, 0)
    assert additive.compute_scores(*inputs(2, 1, 0, 3, 4)).shape == (2, 1, 0, 3)


def test_gradients_pass_the_check():
    tensors = [each.requires_grad_() for each in inputs(2, 2, 3, 4, 3)]
    assert torch.autograd.gradcheck(additive.compute_scores, tensors)


def test_in_single_precision_it_is_as_near_to_the_truth_as_the_formula():
    tensors = inputs(2, 3, 37, 53, 64, dtype=torch.float32)
    gradient = torch.randn(2, 3, 37, 53)
    truth = outcome(plain, [each.double() for each in tensors], gradient.double())
    found, formula = outcome(additive.compute_scores, tensors, gradient), outcome(plain, tensors, gradient)
    for place, (name, factor) in enumerate({"scores": 2, "d query": 3, "d key": 3, "d v": 3}.items()):
        error, allowed = (found[place] - truth[place]).abs(), (formula[place] - truth[place]).abs()
        assert error.max() <= factor * allowed.max(), name
        assert error.mean() <= factor * allowed.mean(), name


EXTREMES = {
    "one large query, one large key": (60.0, -59.5),
    "beyond the limit": (500.0, -499.5),
    "far beyond": (1e30, -1e30),
    "both large": (300.0, 300.0),
    "both far below": (-300.0, -300.0),
    "at the limit": (39.9, -39.9),
    "just beyond the limit": (40.1, -40.1),
}


@pytest.mark.parametrize("block", [4, 1 << 18])
@pytest.mark.parametrize(("q", "k"), EXTREMES.values(), ids=EXTREMES)
def test_huge_queries_and_keys_beside_small_ones_are_no_trouble(monkeypatch, block, q, k):
    monkeypatch.setattr(additive, "BLOCK", block)  # small blocks are of both kinds, one large block is of one
    query, key, v = inputs(2, 2, 6, 5, 4, dtype=torch.float32)
    query[0, 0, 1, :2], key[0, 0, 2, :2] = q, k
    query[1, 1, 3], key[1, 1, 4] = k, q
    gradient = torch.randn(2, 2, 6, 5)
    found = outcome(additive.compute_scores, (query, key, v), gradient)
    truth = outcome(plain, [each.double() for each in (query, key, v)], gradient.double())
    for ours, expected in zip(found, truth, strict=True):
        assert ours.isfinite().all()
        torch.testing.assert_close(ours, expected.float(), rtol=2e-5, atol=2e-5)


def test_the_difference_of_two_large_numbers_is_what_counts():
    query, key = torch.full((1, 1, 1, 1), 60.0), torch.full((1, 1, 1, 1), -59.5)
    found = additive.compute_scores(query, key, torch.ones(1, 1)).item()
    assert found == pytest.approx(math.tanh(0.5), rel=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_rounded_once(dtype):
    query, key, v = inputs(2, 2, 9, 11, 16, dtype=dtype, spread=3.0)
    gradient = torch.randn(2, 2, 9, 11, dtype=dtype)
    found = outcome(additive.compute_scores, (query, key, v), gradient)
    truth = outcome(plain, [each.double() for each in (query, key, v)], gradient.double())
    for ours, expected in zip(found, truth, strict=True):
        assert ours.dtype == dtype
        torch.testing.assert_close(ours, expected.to(dtype), rtol=2 * torch.finfo(dtype).eps, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_stays_finite_at_the_ends_of_its_range(dtype):
    query, key, v = inputs(1, 1, 3, 3, 4, dtype=dtype, spread=1e4)
    for each in outcome(additive.compute_scores, (query, key, v), torch.ones(1, 1, 3, 3, dtype=dtype)):
        assert each.isfinite().all()


def largest_allocation(function) -> int:
    """The bytes of the largest tensor that is made while the function runs."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        function()
    events = profile.profiler.kineto_results.events()
    return max(event.nbytes() for event in events if event.name() == "[memory]")


def test_a_tensor_of_batch_by_queries_by_keys_by_hidden_never_exists():
    tensors = inputs(4, 1, 64, 128, 128, dtype=torch.float32)
    gradient = torch.randn(4, 1, 64, 128)
    whole = 4 * 64 * 128 * 128 * 4  # bytes
    assert largest_allocation(lambda: outcome(plain, tensors, gradient)) >= whole
    assert largest_allocation(lambda: outcome(additive.compute_scores, tensors, gradient)) <= whole / 8


def test_nothing_of_that_size_is_kept_for_the_way_back():
    kept = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    tensors = [each.requires_grad_() for each in inputs(2, 1, 16, 16, 32)]
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        additive.compute_scores(*tensors)
    assert max(kept) == 2 * 16 * 32


SCORES = {
    "additive": lambda: Additive(3, 4, hidden=5, heads=2),
    "additive, shared": lambda: Additive(3, 4, hidden=5),
    "concat": lambda: Concat(3, 4, hidden=5, heads=2),
    "concat, shared": lambda: Concat(3, 4, hidden=5),
}


@pytest.mark.parametrize("build", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize("normalise", [Softmax(), Sparsemax()], ids=str)
@pytest.mark.parametrize("key_heads", [1, 2])
def test_attend_gives_the_same_with_it_and_without(build, normalise, key_heads):
    score = build().double()
    data = [
        torch.randn(2, heads, time, size, dtype=torch.float64)
        for heads, time, size in ((2, 5, 3), (key_heads, 7, 4), (key_heads, 7, 6))
    ]

    def run(impl):
        leaves = [each.clone().requires_grad_() for each in data]
        found = attend(
            *leaves, score=score, normalise=normalise, scope=Causal(), impl=impl, weights=True, statistics=("entropy",)
        )
        gradients = torch.autograd.grad(found.context.square().sum(), [*leaves, *score.parameters()])
        return [found.context, found.weights, found.statistics["entropy"], *gradients]

    for found, expected in zip(run("fused"), run("reference"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)


def test_it_runs_the_three_stages_with_scores_in_blocks():
    asked = request(Additive(3, 4, heads=2), heads=2, weights=True, scope=Causal())
    found, expected = additive.run(asked), run_reference(asked)
    torch.testing.assert_close(found.context, expected.context)
    torch.testing.assert_close(found.weights, expected.weights)


def test_it_covers_both_scores_under_any_normaliser_and_scope():
    assert additive.covers(request(Additive(3, 4))) is None
    assert additive.covers(request(Concat(3, 4), Sparsemax(), Causal(), weights=True)) is None


def test_it_says_why_it_does_not_cover_a_request(monkeypatch):
    asked = request(Additive(3, 4))
    assert additive.covers(asked._replace(score=Dot())) == "needs Additive or Concat, got Dot"
    without = request(Concat(3, 4, tanh=False))
    assert additive.covers(without) == "needs Concat with its tanh, got it without"
    elsewhere = asked._replace(query=asked.query.to("meta"))
    assert additive.covers(elsewhere) == "needs the CPU, got meta"
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    assert additive.covers(asked) == "cannot be exported"


def test_concat_without_tanh_takes_the_reference(monkeypatch):
    monkeypatch.setattr(additive, "run", lambda request: pytest.fail("the kernel was taken"))
    score, data = Concat(3, 3, tanh=False), torch.randn(1, 1, 2, 3)
    assert attend(data, data, data, score=score).context.shape == (1, 1, 2, 3)


def test_a_score_that_extends_additive_is_not_taken_for_it():
    class Doubled(Additive):
        def forward(self, query, prepared):
            return 2 * super().forward(query, prepared)

    assert additive.covers(request(Doubled(3, 4))) == "needs Additive or Concat, got Doubled"
