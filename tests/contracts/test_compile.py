"""Every stage can be compiled without a break and exported with lengths that stay open, and so can the modules."""

import shutil
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.export import Dim, export
from torch.testing import assert_close

from regard import registry
from regard.attention import Attention, Encoded, MultiHead

from .stages import Attend, Case, every_case, soaked

pytestmark = [
    pytest.mark.unhooked,
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),  # inductor still takes it along
]

KINDS = ("score", "normalise", "scope")
ALONE = list(dict.fromkeys(replace(Case(), **{kind: name}) for kind in KINDS for name in registry.names(kind)))
"""Each file with plain stages beside it."""

OFTEN = [Case(), Case(score="additive"), Case(score="shaw"), Case(normalise="sparsemax"), Case(scope="local")]
"""PyTorch's kernel, one of ours, a score that knows positions and adds to what is read, a sort, a mask: compiling takes long."""

WITH_INDUCTOR = [
    *(Case(score=name) for name in ("scaled_dot", "additive", "bilinear", "concat")),
    *(Case(normalise=name) for name in ("sparsemax", "top_k")),
    *(Case(scope=name) for name in ("causal", "local")),
]
each_file = pytest.mark.parametrize("case", [case if case in OFTEN else soaked(case) for case in ALONE], ids=str)

QUERIES, KEYS = 5, 7  # equal to no other size, which the compiler would take for a promise
OTHERS = ((6, 9), (8, 6))
mark_open = torch._dynamo.mark_dynamic  # a length that is marked and then built in after all is an error


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="inductor needs a C++ compiler")
@pytest.mark.parametrize("case", [WITH_INDUCTOR[0], *map(soaked, WITH_INDUCTOR[1:])], ids=str)
def test_a_stage_equals_itself_as_machine_code(case):
    _compare_with_compiled(case, backend="inductor")


@each_file
def test_a_stage_compiles_whole_and_equals_itself(case):
    _compare_with_compiled(case, backend="aot_eager")


@every_case
def test_a_combination_compiles_whole_with_all_sizes_open_and_equals_itself(case):
    _compare_with_compiled(case, backend="aot_eager", dynamic=True)


def _compare_with_compiled(case, **options):
    """At the first lengths, and at others for which nothing is compiled again."""
    torch._dynamo.reset()
    module = Attend(**case.build(keys=KEYS)).float()
    compiled = torch.compile(module, fullgraph=True, **options)
    longer, _ = _other_lengths(case)
    first = _inputs(case, QUERIES, KEYS)
    for tensor in first[:1] if _holds_a_mask(case) else first:
        mark_open(tensor, 2)
    _compare(module, compiled, first)
    with torch.compiler.set_stance("fail_on_recompile"):
        _compare(module, compiled, _inputs(case, *longer))


def _compare(module, compiled, inputs):
    expected, context = _context(module(*inputs)), _context(compiled(*inputs))
    assert_close(context, expected)
    learned = [tensor for tensor in (*inputs, *module.parameters()) if tensor.requires_grad]
    direction = torch.randn_like(context)
    assert_close(_gradients(context, learned, direction), _gradients(expected, learned, direction))


def _context(output):
    return output if isinstance(output, torch.Tensor) else output[0]


def _gradients(context, learned, direction):
    return torch.autograd.grad(context, learned, direction, allow_unused=True, materialize_grads=True)


@each_file
def test_a_stage_is_exported_with_open_lengths(case):
    module = Attend(**case.build(keys=KEYS)).float()
    longest = getattr(module.score, "limit", None)
    keys = Dim.STATIC if _holds_a_mask(case) else Dim("keys", max=longest and longest - 1)
    shapes = {2: Dim("queries")}, {2: keys}, {2: keys}
    program = export(module, _inputs(case, QUERIES, KEYS), dynamic_shapes=shapes).module()
    for lengths in ((QUERIES, KEYS), *_other_lengths(case)):
        inputs = _inputs(case, *lengths)
        assert_close(program(*inputs)[0], module(*inputs)[0])


def _inputs(case, queries, keys):
    return tuple(tensor.float().requires_grad_() for tensor in case.inputs(queries=queries, keys=keys))


def _other_lengths(case):
    """A scope that holds a mask keeps its number of keys."""
    return [(queries, KEYS if _holds_a_mask(case) else keys) for queries, keys in OTHERS]


def _holds_a_mask(case):
    return case.scope in ("padding", "document")


class Whole(nn.Module):
    """A source with padding, remembered and read."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, query, source, keep):
        memory = self.attention.remember(Encoded(source, keep))
        return self.attention(query, memory).context


MODULES = {
    "attention": lambda: Attention(6, 4, score="additive", normalise="sparsemax"),
    "projected_attention": lambda: Attention(6, 4, size=8, score="bilinear", scope="local"),
    "multi_head": lambda: MultiHead(6, 4, heads=2, size=8, key_heads=1, scope="causal"),
}
each_module = pytest.mark.parametrize("name", ["multi_head", *map(soaked, ("attention", "projected_attention"))])


@each_module
def test_a_module_compiles_whole_and_equals_itself(name):
    module = Whole(MODULES[name]())
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    first = _source(QUERIES, KEYS)
    for tensor in first:
        mark_open(tensor, 1)
    _compare(module, compiled, first)
    with torch.compiler.set_stance("fail_on_recompile"):
        _compare(module, compiled, _source(3, 10))


@each_module
def test_a_module_is_exported_with_open_lengths_and_padding_as_an_input(name):
    module = Whole(MODULES[name]())
    keys = {1: Dim("keys")}
    program = export(module, _source(QUERIES, KEYS), dynamic_shapes=({1: Dim("queries")}, keys, keys)).module()
    for lengths in ((QUERIES, KEYS), (3, 10), (9, 6)):
        inputs = _source(*lengths)
        assert_close(program(*inputs), module(*inputs))


def _source(queries, keys):
    """A query, a source, and what is really there: one row is whole, one is half empty."""
    keep = torch.arange(keys) < torch.tensor([[keys], [keys // 2]])
    return torch.randn(2, queries, 6, requires_grad=True), torch.randn(2, keys, 4, requires_grad=True), keep
