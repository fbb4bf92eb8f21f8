"""The contracts of compiling and exporting bite."""

import pytest
import torch

from regard.testing.cases import Case, list_stages
from regard.testing.compile import check_compiled, check_exported, compare_gradients

from . import components

pytestmark = pytest.mark.unhooked


class Broken(components.L1):
    """A score that leaves the graph: it looks at a number."""

    def __call__(self, query, prepared):
        if query.sum().item() > 1e9:
            return super().__call__(query, prepared) + 1
        return super().__call__(query, prepared)


def case(component):
    return Case(score="component", stages=list_stages().add("score", "component", component))


@pytest.mark.parametrize("check", [lambda case: check_compiled(case, backend="aot_eager"), check_exported])
def test_a_graph_break_is_caught(check):
    check(case(components.L1))
    with pytest.raises(Exception, match=r"(?i)data-dependent|item\(\)|break"):
        check(case(Broken))


def test_another_gradient_is_caught():
    module = torch.nn.Linear(3, 2)
    inputs = (torch.randn(2, 3, requires_grad=True),)
    compare_gradients(module, module, inputs)
    with pytest.raises(AssertionError):
        compare_gradients(module, lambda data: module(data) * 2, inputs)
