"""Contracts of stages: properties that hold for every score with every normaliser in every scope.

Each contract is a function of a case that raises AssertionError where the property is broken; the first line of its
docstring is the property.
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, is_dataclass, replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.testing import assert_close

from regard.attention import attend
from regard.attention.attend import build_request, run_request
from regard.attention.scope import Offset, Scope
from regard.attention.scope.padding import Padding
from regard.attention.score import compare, prepare
from regard.attention.types import Memory
from regard.testing.cases import (
    BATCH,
    HEADS,
    KEY,
    KEYS,
    QUERIES,
    QUERY,
    VALUE,
    Attend,
    Case,
    Factory,
    build_stage,
    make_inputs,
    move_scope,
)

OFFSET = KEYS - QUERIES
SIZES = {"query": QUERY, "key": KEY, "value": VALUE, "heads": HEADS}
CPU = torch.device("cpu")
close = partial(assert_close, rtol=1e-12, atol=1e-12)


@dataclass(frozen=True)
class Unless(Scope):
    """Every key, but none for the query at one position of one row."""

    row: int
    position: int

    def __call__(self, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return (b != self.row) | (q != self.position) | (k < 0)


def check_gradient(case: Case) -> None:
    """Gradients equal finite differences.

    They are compared in one random direction of the space that holds query, key, value and all parameters.
    """
    run, parts = differentiate(case)
    sizes = [part.numel() for part in parts]

    def run_all(together: Tensor) -> Any:
        return run(*(piece.view_as(part) for piece, part in zip(together.split(sizes), parts, strict=True)))  # type: ignore[no-untyped-call]

    together = torch.cat([part.detach().flatten() for part in parts]).requires_grad_()
    assert gradcheck(run_all, together, fast_mode=True, rtol=1e-5, atol=1e-7, check_undefined_grad=False)


def check_every_gradient(case: Case) -> None:
    """Gradients equal finite differences in each number."""
    assert gradcheck(*differentiate(case))


def differentiate(case: Case) -> tuple[Callable[..., Any], list[Tensor]]:
    """The context and the weights of the reference as a function of inputs and parameters, and these."""
    module = Attend(**case.build())
    parameters = dict(module.named_parameters())

    def run(query: Tensor, key: Tensor, value: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
        values = dict(zip(parameters, rest, strict=True))
        context, _ = functional_call(module, values, (query, key, value))
        _, weights = functional_call(module, values, (query, key, value), {"impl": "reference", "weights": True})
        return context, weights

    return run, [*(tensor.requires_grad_() for tensor in case.inputs()), *parameters.values()]


def check_blind_query(case: Case) -> None:
    """A query that may see nothing reads zeros and passes no gradient."""
    seeing = Attend(**case.build())
    blind = Attend(seeing.score, seeing.normalise, seeing.scope & Unless(row=1, position=OFFSET + 1))
    inputs = [tensor.requires_grad_() for tensor in case.inputs()]
    gradient = partial(torch.autograd.grad, inputs=[*inputs, *blind.parameters()], retain_graph=True, allow_unused=True)
    whole, _ = seeing(*inputs)
    for options in ({}, {"impl": "reference", "weights": True}):
        results = [result for result in blind(*inputs, **options) if result is not None]
        gradients = gradient(add(result.sum() for result in results))
        assert all_finite(*results, *gradients), "there is NaN or infinity beside a query that may see nothing"
        lost = [result[1, :, 1] for result in results]
        assert not any(result.any() for result in lost), "a query that may see nothing reads something"
        gradients = gradient(add(result.sum() for result in lost))
        assert not any(gradient.any() for gradient in gradients if gradient is not None), (
            "a query that may see nothing has a gradient"
        )
        close(results[0][0], whole[0])
        close(results[0][1, :, ::2], whole[1, :, ::2])


def check_masked_key(case: Case) -> None:
    """A masked key might as well not exist."""
    (query, key, value), stages = case.inputs(), case.build()
    scope = stages.pop("scope")
    keep = torch.arange(KEYS).expand(BATCH, KEYS) < KEYS - 1
    masked = attend(query, key, value, scope=scope & Padding(keep), offset=OFFSET, weights=True, **stages)
    shorter = move_scope(scope, keys=KEYS - 1)
    absent = attend(query, key[:, :, :-1], value[:, :, :-1], scope=shorter, offset=OFFSET, weights=True, **stages)
    assert masked.weights is not None
    close(masked.context, absent.context)
    close(masked.weights[..., :-1], absent.weights)


def check_masked_values(case: Case) -> None:
    """No bit of the context depends on a masked key or its value."""
    (query, key, value), stages = case.inputs(), case.build()
    stages["scope"] &= Padding(torch.arange(KEYS).expand(BATCH, KEYS) != 1)
    other_key, other_value = key.clone(), value.clone()
    other_key[:, :, 1], other_value[:, :, 1] = 100 * torch.randn_like(key[:, :, 1]), 100 * torch.randn_like(value[:, :, 1])
    for impl in ("auto", "reference"):
        before = attend(query, key, value, **stages, impl=impl).context
        after = attend(query, other_key, other_value, **stages, impl=impl).context
        assert torch.equal(before, after), f"with impl={impl!r} the context depends on a masked key"


def check_rows(case: Case, dtype: torch.dtype = torch.float64, tolerance: float = 1e-12) -> None:
    """A row is attended alike alone and in a batch."""
    inputs, stages = convert(case, dtype)
    scope = stages.pop("scope")
    together = attend(*inputs, scope=scope, **stages).context
    for row in range(BATCH):
        alone = [tensor[row : row + 1] for tensor in inputs]
        context = attend(*alone, scope=move_scope(scope, batch=1, row=row), **stages).context
        assert_close(context[0], together[row], rtol=tolerance, atol=tolerance)


def check_padding(case: Case, dtype: torch.dtype = torch.float64, tolerance: float = 1e-12) -> None:
    """Padding to a longer length changes nothing."""
    (query, key, value), stages = convert(case, dtype)
    scope = stages.pop("scope")
    padding = torch.randn(BATCH, HEADS, 3, KEY + VALUE, dtype=dtype)
    longer = [torch.cat(pair, dim=2) for pair in zip((key, value), padding.split((KEY, VALUE), dim=-1), strict=True)]  # type: ignore[no-untyped-call]
    padded = move_scope(scope, keys=KEYS + 3) & Padding.from_lengths(torch.full((BATCH,), KEYS), KEYS + 3)
    context = attend(query, longer[0], longer[1], scope=padded, offset=OFFSET, **stages).context
    assert_close(context, attend(query, key, value, scope=scope, **stages).context, rtol=tolerance, atol=tolerance)


def convert(case: Case, dtype: torch.dtype) -> tuple[list[Tensor], dict[str, Any]]:
    """Inputs and stages in another precision."""
    stages = {name: stage.to(dtype) if isinstance(stage, nn.Module) else stage for name, stage in case.build().items()}
    return [tensor.to(dtype) for tensor in case.inputs()], stages


def check_steps(case: Case, offset: Offset = OFFSET) -> None:
    """Queries one at a time through a memory equal all at once."""
    (query, key, value), stages = case.inputs(), case.build()
    together = attend(query, key, value, offset=offset, **stages).context
    memory = Memory(prepare(stages["score"], key), value)
    for t in range(QUERIES):
        step = run_request(build_request(query[:, :, t : t + 1], memory, offset=offset + t, **stages))
        close(step.context, together[:, :, t : t + 1])


def check_half_precision(case: Case, dtype: torch.dtype, **options: Any) -> None:
    """Half precision stays finite at scores of ten thousand."""
    score, query, key = amplify(case.score_factory)
    module = Attend(**case.build() | {"score": deepcopy(score)}).to(dtype)
    value = torch.rand(BATCH, HEADS, KEYS, VALUE) * 2 - 1
    inputs = [tensor.to(dtype).requires_grad_() for tensor in (query, key, value)]
    results = [result for result in module(*inputs, **options) if result is not None]
    loss = add(result.float().mean() for result in results)
    gradients = torch.autograd.grad(loss, [*inputs, *module.parameters()], allow_unused=True)
    assert all_finite(*results), f"there is NaN or infinity in {dtype}"
    assert all_finite(*gradients), f"a gradient has NaN or infinity in {dtype}"


@cache
def amplify(factory: Factory) -> tuple[Any, Tensor, Tensor]:
    """A score, a query and a key that give scores of about ten thousand, or the largest there are of a bounded score."""
    score, (query, key, _) = build_stage(factory, **SIZES), make_inputs(factory)
    while largest(score, query, key) < 0.9e4 and query.abs().max() < 2e4:
        query, key = 1.1 * query, 1.1 * key
    factor = 1e4 / largest(score, query, key)
    if factor > 1.2 and isinstance(getattr(getattr(score, "v", None), "weight", None), Tensor):
        score.v.weight.data *= factor  # no input is large enough where a tanh stands between
    elif factor > 1.2 and is_dataclass(score) and hasattr(score, "cap"):
        score = replace(score, cap=score.cap * factor)  # type: ignore[type-var]
    elif factor > 1.2 and is_dataclass(score) and hasattr(score, "scale"):
        score = replace(score, scale=score.scale * factor)  # type: ignore[type-var]
    return score, query, key


def largest(score: Any, query: Tensor, key: Tensor) -> float:
    """The largest absolute score."""
    return compare(score, query, prepare(score, key)).abs().max().item()


def check_weights(case: Case) -> None:
    """Weights are zero where masked, add up to one where promised, and asking for them does not change the context."""
    inputs, stages = case.inputs(), case.build()
    attended = attend(*inputs, **stages, weights=True)
    assert attended.weights is not None
    allowed = _mask(stages["scope"], attended.weights)
    assert not attended.weights[~allowed].any(), "a masked key has a weight"
    if stages["normalise"].sums_to_one:
        close(attended.weights.sum(-1), allowed.any(-1).double())
    close(attended.context, attend(*inputs, **stages).context)
    close(attend(*inputs, **stages, weights=True, dropout=0.5).weights, attended.weights)


def check_grouped_heads(case: Case) -> None:
    """Grouped key heads equal repeated ones."""
    stages = case.build(heads=4)
    for key_heads in (2, 1):
        query, key, value = case.inputs(heads=4, key_heads=key_heads)
        repeated = [tensor.repeat_interleave(4 // key_heads, dim=1) for tensor in (key, value)]
        expected = attend(query, repeated[0], repeated[1], **stages).context
        for impl in ("auto", "reference"):
            close(attend(query, key, value, **stages, impl=impl).context, expected)


def check_statistics(case: Case) -> None:
    """Statistics equal those of the weights."""
    inputs, stages = case.inputs(), case.build()
    names = ("entropy", "max", "argmax", "top_2", "received", "uniform", "mean_position", "spread")
    statistics = attend(*inputs, **stages, statistics=names).statistics
    weights = attend(*inputs, **stages, weights=True).weights
    assert weights is not None
    expected = compute_statistics(weights, _mask(stages["scope"], weights))
    assert statistics.keys() == expected.keys()
    for name in statistics:
        assert_close(statistics[name], expected[name], rtol=1e-9, atol=1e-9, msg=partial("{}: {}".format, name))


def compute_statistics(weights: Tensor, allowed: Tensor) -> dict[str, Tensor]:
    """Statistics of weights, each from its formula."""
    shares = torch.nan_to_num(weights.abs() / weights.abs().sum(-1, keepdim=True))
    positions = torch.arange(KEYS, dtype=torch.float64)
    mean = (shares * positions).sum(-1)
    best = weights.sort(dim=-1, descending=True, stable=True)
    return {
        "entropy": -(shares * shares.clamp_min(1e-300).log()).sum(-1),
        "max": best.values[..., 0],
        "argmax": weights.argmax(-1),
        "top_2": best.values[..., :2],
        "top_2_keys": weights.topk(2).indices,
        "received": weights.sum(-2),
        "uniform": torch.nan_to_num(allowed.double() / allowed.double().sum(-1, keepdim=True)).sum(-2),
        "mean_position": mean,
        "spread": (shares * (positions - mean[..., None]) ** 2).sum(-1).sqrt(),
    }


def _mask(scope: Scope, weights: Tensor) -> Tensor:
    """The mask of a scope in the shape of the weights."""
    allowed = scope.allowed(BATCH, HEADS, QUERIES, KEYS, OFFSET, CPU)
    return torch.ones_like(weights, dtype=torch.bool) if allowed is None else allowed.expand_as(weights)


def add(terms: Iterable[Tensor]) -> Tensor:
    """Sum of tensors."""
    return torch.stack(list(terms)).sum()


def all_finite(*tensors: Tensor | None) -> bool:
    """True if no tensor has NaN or infinity; None stands for a gradient that is not there."""
    return all(bool(tensor.isfinite().all()) for tensor in tensors if tensor is not None)
