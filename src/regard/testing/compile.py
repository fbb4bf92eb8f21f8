"""Contracts of compiling and exporting: stages compile without a graph break and export with open lengths."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, export
from torch.testing import assert_close

from regard.attention.module import Attention
from regard.attention.types import Encoded
from regard.testing.cases import Attend, Case

QUERIES, KEYS = 5, 7  # equal to no other size, which the compiler would take for a promise
OTHERS = ((6, 9), (8, 6))
MASKS = ("padding", "document")
"""Scopes that hold a mask, and so have one number of keys."""


def check_compiled(case: Case, **options: Any) -> None:
    """torch.compile gives one graph, the same results, and no new graph at other lengths."""
    torch._dynamo.reset()
    module = Attend(**case.build(keys=KEYS)).float()
    compiled = torch.compile(module, fullgraph=True, **options)
    longer, _ = _other_lengths(case)
    first = _inputs(case, QUERIES, KEYS)
    for tensor in first[:1] if case.scope in MASKS else first:
        torch._dynamo.mark_dynamic(tensor, 2)  # a marked length that is built in after all is an error
    compare_gradients(module, compiled, first)
    with torch.compiler.set_stance("fail_on_recompile"):
        compare_gradients(module, compiled, _inputs(case, *longer))


def compare_gradients(module: nn.Module, compiled: Any, inputs: tuple[Tensor, ...]) -> None:
    """Raise where a compiled module gives another context or another gradient."""
    expected, context = _first(module(*inputs)), _first(compiled(*inputs))
    assert_close(context, expected)
    learned = [tensor for tensor in (*inputs, *module.parameters()) if tensor.requires_grad]
    direction = torch.randn_like(context)
    assert_close(_gradients(context, learned, direction), _gradients(expected, learned, direction))


def _first(output: Any) -> Tensor:
    context: Tensor = output if isinstance(output, Tensor) else output[0]
    return context


def _gradients(context: Tensor, learned: list[Tensor], direction: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(context, learned, direction, allow_unused=True, materialize_grads=True)


def check_exported(case: Case) -> None:
    """torch.export gives a program for all lengths."""
    module = Attend(**case.build(keys=KEYS)).float()
    longest = getattr(module.score, "limit", None)
    keys: Any = Dim.STATIC if case.scope in MASKS else Dim("keys", max=longest and longest - 1)
    shapes = {2: Dim("queries")}, {2: keys}, {2: keys}
    program = export(module, _inputs(case, QUERIES, KEYS), dynamic_shapes=shapes).module()
    for lengths in ((QUERIES, KEYS), *_other_lengths(case)):
        inputs = _inputs(case, *lengths)
        assert_close(program(*inputs)[0], module(*inputs)[0])


def _inputs(case: Case, queries: int, keys: int) -> tuple[Tensor, ...]:
    return tuple(tensor.float().requires_grad_() for tensor in case.inputs(queries=queries, keys=keys))


def _other_lengths(case: Case) -> list[tuple[int, int]]:
    return [(queries, KEYS if case.scope in MASKS else keys) for queries, keys in OTHERS]


class Whole(nn.Module):
    """A source with padding, remembered and attended to."""

    def __init__(self, attention: Attention):
        super().__init__()
        self.attention = attention

    def forward(self, query: Tensor, source: Tensor, keep: Tensor) -> Tensor:
        memory = self.attention.remember(Encoded(source, keep))
        return self.attention(query, memory).context


def check_compiled_module(attention: Attention) -> None:
    """torch.compile of a module gives one graph, the same results, and no new graph at other lengths."""
    module = Whole(attention)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    first = make_source(QUERIES, KEYS)
    for tensor in first:
        torch._dynamo.mark_dynamic(tensor, 1)
    compare_gradients(module, compiled, first)
    with torch.compiler.set_stance("fail_on_recompile"):
        compare_gradients(module, compiled, make_source(3, 10))


def check_exported_module(attention: Attention) -> None:
    """torch.export of a module gives a program for all lengths, with padding as an input."""
    module = Whole(attention)
    keys = {1: Dim("keys")}
    program = export(module, make_source(QUERIES, KEYS), dynamic_shapes=({1: Dim("queries")}, keys, keys)).module()
    for lengths in ((QUERIES, KEYS), (3, 10), (9, 6)):
        inputs = make_source(*lengths)
        assert_close(program(*inputs), module(*inputs))


def make_source(queries: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    """A query of size 6, a source of size 4, and its padding mask: one row is whole, one is half empty."""
    keep = torch.arange(keys) < torch.tensor([[keys], [keys // 2]])
    return torch.randn(2, queries, 6, requires_grad=True), torch.randn(2, keys, 4, requires_grad=True), keep
