"""What must hold for every score with every normaliser in every scope."""

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.testing import assert_close

from regard import registry
from regard.attention import Padding, attend
from regard.attention.attend import build_request, run_request
from regard.attention.scope import Scope
from regard.attention.score import compare, prepare
from regard.attention.types import Memory

from . import definition
from .stages import (
    BATCH,
    HEADS,
    KEY,
    KEYS,
    NORMALISERS,
    QUERIES,
    REFUSED,
    SCOPES,
    SCORES,
    VALUE,
    Attend,
    Case,
    every_case,
    every_stage,
    every_two,
    moved,
)

OFFSET = KEYS - QUERIES
close = partial(assert_close, rtol=1e-12, atol=1e-12)


@dataclass(frozen=True)
class Unless(Scope):
    """Every key, but none for the query at one position of one row."""

    row: int
    position: int

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (b != self.row) | (q != self.position) | (k < 0)


@every_two
def test_attend_equals_its_definition_one_number_at_a_time(case):
    inputs, stages = case.inputs(), case.build()
    expected = definition.attend(*inputs, **stages, offset=OFFSET)
    reference = attend(*inputs, **stages, impl="reference", weights=True)
    close(reference.weights, expected.weights)
    close(reference.context, expected.context)
    close(attend(*inputs, **stages).context, expected.context)


@every_stage
def test_gradients_equal_small_differences(case):
    """In a random direction of the space that holds query, key, value and all parameters at once."""
    run, parts = _differentiable(case)
    sizes = [part.numel() for part in parts]

    def run_all(together):
        return run(*(piece.view_as(part) for piece, part in zip(together.split(sizes), parts, strict=True)))

    together = torch.cat([part.detach().flatten() for part in parts]).requires_grad_()
    assert gradcheck(run_all, together, fast_mode=True, rtol=1e-5, atol=1e-7, check_undefined_grad=False)


@every_case
def test_gradients_equal_small_differences_in_each_number(case):
    assert gradcheck(*_differentiable(case))


def _differentiable(case):
    """The context as it comes and the weights of the reference, as a function of inputs and parameters, and those."""
    module = Attend(**case.build())
    learned = dict(module.named_parameters())

    def run(query, key, value, *rest):
        given = dict(zip(learned, rest, strict=True))
        context, _ = functional_call(module, given, (query, key, value))
        _, weights = functional_call(module, given, (query, key, value), {"impl": "reference", "weights": True})
        return context, weights

    return run, [*(tensor.requires_grad_() for tensor in case.inputs()), *learned.values()]


@every_two
def test_a_query_that_may_see_nothing_reads_zeros_and_teaches_nothing(case):
    seeing = Attend(**case.build())
    blind = Attend(seeing.score, seeing.normalise, seeing.scope & Unless(row=1, position=OFFSET + 1))
    inputs = [tensor.requires_grad_() for tensor in case.inputs()]
    differentiate = partial(torch.autograd.grad, inputs=[*inputs, *blind.parameters()], retain_graph=True, allow_unused=True)
    whole, _ = seeing(*inputs)
    for options in ({}, {"impl": "reference", "weights": True}):
        results = [result for result in blind(*inputs, **options) if result is not None]
        gradients = differentiate(sum(result.sum() for result in results))
        assert all(result.isfinite().all() for result in (*results, *gradients) if result is not None)
        lost = [result[1, :, 1] for result in results]
        gradients = differentiate(sum(result.sum() for result in lost))
        assert not any(result.any() for result in (*lost, *gradients) if result is not None)
        close(results[0][0], whole[0])
        close(results[0][1, :, ::2], whole[1, :, ::2])


@every_two
def test_a_masked_key_might_as_well_not_exist(case):
    (query, key, value), stages = case.inputs(), case.build()
    scope = stages.pop("scope")
    keep = torch.arange(KEYS).expand(BATCH, KEYS) < KEYS - 1
    masked = attend(query, key, value, scope=scope & Padding(keep), offset=OFFSET, weights=True, **stages)
    absent = attend(
        query, key[:, :, :-1], value[:, :, :-1], scope=moved(scope, keys=KEYS - 1), offset=OFFSET, weights=True, **stages
    )
    close(masked.context, absent.context)
    close(masked.weights[..., :-1], absent.weights)


@every_stage
def test_no_bit_of_the_context_depends_on_a_masked_key_or_its_value(case):
    (query, key, value), stages = case.inputs(), case.build()
    stages["scope"] &= Padding(torch.arange(KEYS).expand(BATCH, KEYS) != 1)
    other_key, other_value = key.clone(), value.clone()
    other_key[:, :, 1], other_value[:, :, 1] = 100 * torch.randn_like(key[:, :, 1]), 100 * torch.randn_like(value[:, :, 1])
    for impl in ("auto", "reference"):
        before = attend(query, key, value, **stages, impl=impl).context
        assert torch.equal(before, attend(query, other_key, other_value, **stages, impl=impl).context)


@every_stage
def test_a_row_is_attended_alike_alone_and_in_a_batch(case):
    _compare_rows_alone_with_the_batch(case, torch.float64, 1e-12)


@every_stage
def test_a_row_is_attended_alike_alone_and_in_a_batch_in_single_precision(case):
    _compare_rows_alone_with_the_batch(case, torch.float32, 1e-6)


def _compare_rows_alone_with_the_batch(case, dtype, tolerance):
    inputs, stages = _converted(case, dtype)
    scope = stages.pop("scope")
    together = attend(*inputs, scope=scope, **stages).context
    for row in range(BATCH):
        alone = [tensor[row : row + 1] for tensor in inputs]
        context = attend(*alone, scope=moved(scope, batch=1, row=row), **stages).context
        assert_close(context[0], together[row], rtol=tolerance, atol=tolerance)


@every_two
def test_padding_to_a_longer_length_changes_nothing(case):
    _compare_short_with_padded(case, torch.float64, 1e-12)


@every_stage
def test_padding_to_a_longer_length_changes_nothing_in_single_precision(case):
    _compare_short_with_padded(case, torch.float32, 1e-6)


def _compare_short_with_padded(case, dtype, tolerance):
    (query, key, value), stages = _converted(case, dtype)
    scope = stages.pop("scope")
    padding = torch.randn(BATCH, HEADS, 3, KEY + VALUE, dtype=dtype)
    longer = [torch.cat(pair, dim=2) for pair in zip((key, value), padding.split((KEY, VALUE), dim=-1), strict=True)]
    padded = moved(scope, keys=KEYS + 3) & Padding.from_lengths(torch.full((BATCH,), KEYS), KEYS + 3)
    context = attend(query, *longer, scope=padded, offset=OFFSET, **stages).context
    assert_close(context, attend(query, key, value, scope=scope, **stages).context, rtol=tolerance, atol=tolerance)


def _converted(case, dtype):
    """Inputs and stages in another precision."""
    stages = {name: stage.to(dtype) if isinstance(stage, nn.Module) else stage for name, stage in case.build().items()}
    return [tensor.to(dtype) for tensor in case.inputs()], stages


@every_stage
def test_queries_one_at_a_time_through_a_memory_equal_all_at_once(case):
    _compare_steps_with_all_at_once(case, OFFSET)


@every_stage
def test_queries_one_at_a_time_equal_all_at_once_where_each_row_stands_elsewhere(case):
    _compare_steps_with_all_at_once(case, torch.tensor([2, 0]))


def _compare_steps_with_all_at_once(case, offset):
    (query, key, value), stages = case.inputs(), case.build()
    together = attend(query, key, value, offset=offset, **stages).context
    memory = Memory(prepare(stages["score"], key), value)
    for t in range(QUERIES):
        step = run_request(build_request(query[:, :, t : t + 1], memory, offset=offset + t, **stages))
        close(step.context, together[:, :, t : t + 1])


half = pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)


@half
@every_stage
def test_half_precision_stays_finite_at_scores_of_ten_thousand(case, dtype):
    _check_all_is_finite(case, dtype)


@half
@every_stage
def test_weights_in_half_precision_stay_finite_at_scores_of_ten_thousand(case, dtype):
    _check_all_is_finite(case, dtype, weights=True, impl="reference")


def _check_all_is_finite(case, dtype, **options):
    score, query, key = _loud(case.score)
    module = Attend(**case.build() | {"score": deepcopy(score)}).to(dtype)
    value = torch.rand(BATCH, HEADS, KEYS, VALUE) * 2 - 1
    inputs = [tensor.to(dtype).requires_grad_() for tensor in (query, key, value)]
    results = [result for result in module(*inputs, **options) if result is not None]
    loss = sum(result.float().mean() for result in results)
    gradients = torch.autograd.grad(loss, [*inputs, *module.parameters()], allow_unused=True)
    assert all(result.isfinite().all() for result in (*results, *gradients) if result is not None)


@cache
def _loud(name):
    """A score, a query and a key that give scores of about ten thousand."""
    case = Case(name)
    score, (query, key, _) = case.build()["score"], case.inputs()
    while _loudest(score, query, key) < 0.9e4 and query.abs().max() < 2e4:
        query, key = 1.1 * query, 1.1 * key
    missing = 1e4 / _loudest(score, query, key)
    if missing > 1.2 and hasattr(score, "v"):  # no input is loud enough where a tanh stands between
        score.v.weight.data *= missing
    elif missing > 1.2 and hasattr(score, "cap"):
        score = replace(score, cap=score.cap * missing)
    elif missing > 1.2 and hasattr(score, "scale"):
        score = replace(score, scale=score.scale * missing)
    assert 0.9e4 <= _loudest(score, query, key) <= 1.2e4, f"{name} is bounded: say here how to make it loud"
    return score, query, key


def _loudest(score, query, key):
    return compare(score, query, prepare(score, key)).abs().max().item()


@every_stage
def test_weights_are_shares_of_what_is_allowed_and_the_context_does_not_depend_on_asking(case):
    inputs, stages = case.inputs(), case.build()
    attended = attend(*inputs, **stages, weights=True)
    allowed = stages["scope"].allowed(BATCH, HEADS, QUERIES, KEYS, OFFSET, torch.device("cpu"))
    allowed = torch.ones_like(attended.weights, dtype=torch.bool) if allowed is None else allowed.expand_as(attended.weights)
    assert not attended.weights[~allowed].any()
    if stages["normalise"].sums_to_one:
        close(attended.weights.sum(-1), allowed.any(-1).double())
    close(attended.context, attend(*inputs, **stages).context)
    close(attend(*inputs, **stages, weights=True, dropout=0.5).weights, attended.weights)


@every_stage
def test_grouped_key_heads_equal_repeated_ones(case):
    stages = case.build(heads=4)
    for key_heads in (2, 1):
        query, key, value = case.inputs(heads=4, key_heads=key_heads)
        repeated = [tensor.repeat_interleave(4 // key_heads, dim=1) for tensor in (key, value)]
        expected = attend(query, *repeated, **stages).context
        for impl in ("auto", "reference"):
            close(attend(query, key, value, **stages, impl=impl).context, expected)


@every_stage
def test_statistics_equal_those_of_the_weights(case):
    inputs, stages = case.inputs(), case.build()
    names = ("entropy", "max", "argmax", "top_2", "received", "uniform", "mean_position", "spread")
    found = attend(*inputs, **stages, statistics=names).statistics
    weights = attend(*inputs, **stages, weights=True).weights
    allowed = stages["scope"].allowed(BATCH, HEADS, QUERIES, KEYS, OFFSET, torch.device("cpu"))
    expected = _statistics(weights, torch.ones(1, dtype=torch.bool) if allowed is None else allowed)
    assert found.keys() == expected.keys()
    for name in found:
        assert_close(found[name], expected[name], rtol=1e-9, atol=1e-9, msg=lambda text, name=name: f"{name}: {text}")


def _statistics(weights: Tensor, allowed: Tensor) -> dict[str, Tensor]:
    """The same numbers, each from its formula."""
    shares = torch.nan_to_num(weights.abs() / weights.abs().sum(-1, keepdim=True))
    allowed = allowed.expand_as(weights).double()
    place = torch.arange(KEYS, dtype=torch.float64)
    mean = (shares * place).sum(-1)
    best = weights.sort(dim=-1, descending=True, stable=True)
    return {
        "entropy": -(shares * shares.clamp_min(1e-300).log()).sum(-1),
        "max": best.values[..., 0],
        "argmax": weights.argmax(-1),
        "top_2": best.values[..., :2],
        "top_2_keys": weights.topk(2).indices,
        "received": weights.sum(-2),
        "uniform": torch.nan_to_num(allowed / allowed.sum(-1, keepdim=True)).sum(-2),
        "mean_position": mean,
        "spread": (shares * (place - mean[..., None]) ** 2).sum(-1).sqrt(),
    }


def test_combinations_that_make_no_sense_are_refused_and_the_alternative_is_named():
    assert {pair for pair in product(SCORES, NORMALISERS) if _is_refused(*pair)} == REFUSED
    for pair in REFUSED:
        case = Case(*pair)
        with pytest.raises(ValueError, match=r"make no sense together: .*; use Softmax or Sparsemax"):
            attend(*case.inputs(), **case.build())


def _is_refused(score, normalise):
    case = Case(score, normalise)
    try:
        attend(*case.inputs(), **case.build())
    except ValueError:
        return True
    return False


@pytest.mark.parametrize("kind", ["score", "normalise", "scope"])
def test_every_file_in_a_stage_folder_is_under_contract(kind):
    assert set(registry.names(kind)) <= set({"score": SCORES, "normalise": NORMALISERS, "scope": SCOPES}[kind])
