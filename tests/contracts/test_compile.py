"""Every stage can be compiled without a break and exported with lengths that stay open, and so can the modules."""

import shutil
from dataclasses import replace

import pytest
import torch

from regard import registry
from regard.attention import Attention, MultiHead
from regard.testing.cases import Case
from regard.testing.compile import check_compiled, check_compiled_module, check_exported, check_exported_module

from .stages import every_case, soaked

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


@pytest.fixture(autouse=True)
def _fresh():
    torch._dynamo.reset()


@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("clang++")), reason="inductor needs a C++ compiler")
@pytest.mark.parametrize("case", [WITH_INDUCTOR[0], *map(soaked, WITH_INDUCTOR[1:])], ids=str)
def test_a_stage_equals_itself_as_machine_code(case):
    check_compiled(case, backend="inductor")


@each_file
def test_a_stage_compiles_whole_and_equals_itself(case):
    check_compiled(case, backend="aot_eager")


@every_case
def test_a_combination_compiles_whole_with_all_sizes_open_and_equals_itself(case):
    check_compiled(case, backend="aot_eager", dynamic=True)


@each_file
def test_a_stage_is_exported_with_open_lengths(case):
    check_exported(case)


MODULES = {
    "attention": lambda: Attention(6, 4, score="additive", normalise="sparsemax"),
    "projected_attention": lambda: Attention(6, 4, size=8, score="bilinear", scope="local"),
    "multi_head": lambda: MultiHead(6, 4, heads=2, size=8, key_heads=1, scope="causal"),
}
each_module = pytest.mark.parametrize("name", ["multi_head", *map(soaked, ("attention", "projected_attention"))])


@each_module
def test_a_module_compiles_whole_and_equals_itself(name):
    check_compiled_module(MODULES[name]())


@each_module
def test_a_module_is_exported_with_open_lengths_and_padding_as_an_input(name):
    check_exported_module(MODULES[name]())
