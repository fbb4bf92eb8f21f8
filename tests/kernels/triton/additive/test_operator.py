import os
import subprocess
import sys

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import operator
from regard.kernels.triton.additive.arguments import Dropout, MaskArguments


@pytest.mark.parametrize(("queries", "keys"), [(0, 3), (3, 0), (1, 0)])
def test_no_keys_and_no_queries_are_no_trouble(queries, keys):
    shapes = (2, 1, queries, 3), (2, 1, keys, 3), (2, 1, keys, 4), (1, 3)
    leaves = [torch.randn(shape, requires_grad=True) for shape in shapes]
    context, weights = operator.attention(*leaves, weights=torch.float32)
    assert context.eq(0).all()
    assert weights.shape == (2, 1, queries, keys)
    assert all(each.eq(0).all() for each in torch.autograd.grad(context.sum() + weights.sum(), leaves))
    scores = operator.scores(leaves[0], leaves[1], leaves[3])
    assert scores.shape == (2, 1, queries, keys)
    assert all(each.eq(0).all() for each in torch.autograd.grad(scores.sum(), (leaves[0], leaves[1])))


@pytest.mark.unhooked
def test_the_operators_keep_what_they_promise():
    leaves = [torch.randn(shape, requires_grad=True) for shape in ((1, 2, 3, 4), (1, 1, 5, 4), (1, 2, 5, 3), (2, 4))]
    torch.library.opcheck(operator.forward_operator, (*leaves, *MaskArguments(ahead=0), *Dropout(), "float32", "float32"))
    torch.library.opcheck(operator.scores_operator, (leaves[0], leaves[1], leaves[3]))


COMPILE = """
import torch, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.runtime.jit import JITFunction

from regard.kernels.triton.additive import operator
from regard.kernels.triton.additive.arguments import Dropout, MaskArguments

TYPES = {torch.float32: "*fp32", torch.bfloat16: "*bf16", torch.bool: "*i1", torch.int64: "*i64", int: "i32", float: "fp32"}
TYPES |= {torch.int32: "*i32", torch.int8: "*i8"}


def compile(self, *values, grid, warmup, num_warps, maxnreg=None, num_stages=3):
    signature, constants = {}, {}
    for place, (parameter, value) in enumerate(zip(self.params, values, strict=True)):
        fixed = parameter.is_constexpr or value is None
        signature[parameter.name] = "constexpr" if fixed else TYPES[getattr(value, "dtype", type(value))]
        if fixed:
            constants[place,] = value
    made = triton.compile(ASTSource(self, signature, constants), GPUTarget("cuda", 90, 32), {"num_warps": num_warps, "maxnreg": maxnreg, "num_stages": num_stages})
    print(self.fn.__name__, "ptx" in made.asm)


JITFunction.run = compile
mask = torch.ones(1, 1, 1, 1, dtype=torch.int32), torch.ones(1, 1, 1, 1, dtype=torch.int8)
scoped = MaskArguments(torch.ones(1, 9, dtype=bool), *mask, torch.zeros(1, dtype=int), ahead=0)
for dtype, options in ((torch.bfloat16, (scoped, Dropout(0.1, torch.tensor([1])))), (torch.float32, ())):
    for queries in (3, 40, 1):
        shapes = (1, 2, queries, 8), (1, 1, 9, 8), (1, 2, 9, 256), (2, 8)
        leaves = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
        context, weights = operator.attention(*leaves, *options, weights=torch.float32)
        (context.sum() + weights.sum()).backward()
"""


@pytest.mark.unhooked
@pytest.mark.soak
def test_every_kernel_compiles_for_a_gpu_that_is_not_here():
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    done = subprocess.run([sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    names = [line.removesuffix(" True") for line in done.stdout.splitlines()]
    assert set(names) == {
        "transpose_kernel",
        "exponentials_kernel",
        "compare_kernel",
        "read_kernel",
        "weights_kernel",
        "write_dscores",
    } | {"backward_kernel", "reduce_kernel", "split_kernel", "trace_kernel"}


@pytest.mark.unhooked
def test_gradients_of_scores_are_found_under_torch_compile_of_sides_that_lie_otherwise():
    leaves = [torch.randn(2, 5, 2, 4), torch.randn(2, 7, 2, 4), torch.randn(1, 4)]
    leaves = [each.requires_grad_() for each in leaves]

    def run(query, key, v):
        return operator.scores(query.transpose(1, 2), key.transpose(1, 2), v).square().sum()

    expected = torch.autograd.grad(run(*leaves), leaves)
    for mine, right in zip(
        torch.autograd.grad(torch.compile(run, backend="aot_eager")(*leaves), leaves), expected, strict=True
    ):
        torch.testing.assert_close(mine, right)
