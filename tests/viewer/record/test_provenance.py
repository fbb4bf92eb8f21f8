import torch
from torch import nn

from regard.viewer.record.provenance import Following, arguments, tensors


def followed(before=None):
    """A mode that knows a box "W", whose parameter is a matrix, and notes when it runs."""
    weight, ran = nn.Parameter(torch.randn(3, 3)), []
    mode = Following({id(weight): "W"}, lambda name, tensor, origin: ran.append((name, set(origin))), (before or {}).get)
    return mode, weight, ran


def origin(mode, tensor):
    return set(mode.origin(tensor))


def test_what_comes_out_of_an_operation_comes_from_where_its_inputs_come_from():
    mode, _, _ = followed()
    left, right = torch.randn(2, 3), torch.randn(2, 3)
    mode.origins[left], mode.origins[right] = frozenset("a"), frozenset("b")
    with mode:
        joined = torch.cat([left, right[:, :1]], dim=1)
        halves = joined.chunk(2, dim=1)
        blank = torch.zeros_like(left)
        mask = left > 0
        alone = torch.randn(2)
    assert origin(mode, joined) == {"a", "b"}
    assert origin(mode, halves[1]) == {"a", "b"}
    assert origin(mode, blank) == origin(mode, mask) == origin(mode, alone) == set()


def test_an_operation_on_parameters_is_their_box_running_also_through_views_of_them():
    mode, weight, ran = followed()
    data = torch.randn(2, 3)
    mode.origins[data] = frozenset("a")
    with mode:
        turned = weight.mT.detach()
        found = data @ turned
    assert origin(mode, turned) == set()
    assert origin(mode, found) == {"W"}
    assert ran == [("W", {"a"})]


def test_what_goes_around_a_box_is_forgotten_where_it_is_added_to_what_comes_out():
    mode, _, _ = followed({"f": {"x"}, "x": set(), "g": {"h"}, "h": {"g"}})
    around, out = torch.randn(2), torch.randn(2)
    mode.origins[around], mode.origins[out] = frozenset("x"), frozenset("f")
    with mode:
        total, product = around + out, around * out
    assert origin(mode, total) == {"f"}
    assert origin(mode, product) == {"f", "x"}
    mode.origins[around], mode.origins[out] = frozenset("g"), frozenset("h")  # a loop: both come from each other
    with mode:
        total = around + out
    assert origin(mode, total) == {"g", "h"}


def test_tensors_are_found_in_trees_and_arguments_by_name():
    a, b, c = torch.zeros(1), torch.zeros(2), torch.zeros(3)
    assert [each.numel() for each in tensors({"x": (a, [b, None]), "y": 3, "z": c})] == [1, 2, 3]
    named = list(arguments(nn.Bilinear(1, 1, 1), (a,), {"input2": (b, c)}))
    assert [(name, tensor.numel()) for name, tensor in named] == [("input1", 1), ("input2", 2), ("input2", 3)]
    assert [name for name, _ in arguments(nn.Identity(), (a, b), {})] == ["input", "input 1"]


def test_an_argument_keeps_its_name_whatever_the_module_calls_itself():
    class Net(nn.Module):
        def forward(this, words):  # noqa: N805 the point is another name than self
            return words

    assert [name for name, _ in arguments(Net(), (torch.zeros(1),), {})] == ["words"]
