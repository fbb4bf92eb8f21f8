import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.models.layers.cells import (
    CELLS,
    STATES,
    LayerStack,
    RepeatedLinear,
    UnrolledLayer,
    build_cells,
    run_cells,
    stack_states,
)
from regard.models.layers.dropout import Drop

every_cell = pytest.mark.parametrize("cell", CELLS)


@every_cell
@pytest.mark.parametrize("width", [0, 3, 5])
def test_unrolled_steps_equal_the_fused_layer_in_value_and_every_gradient(cell, width):
    made = build_cells(cell, 5, 4)
    twin = copy.deepcopy(made)
    data = torch.randn(2, 6, 5, requires_grad=True)
    begin = tuple(torch.randn(2, 4) for _ in range(STATES[cell]))
    first = tuple(each[None] for each in begin)
    expected, _ = twin(data, first if len(first) > 1 else first[0])
    weight = torch.randn_like(expected)
    (expected * weight).sum().backward()
    expected_gradient, data.grad = data.grad, None
    unrolled, state, found = UnrolledLayer(made, data[:, :, :width]), begin, []
    for step in range(6):
        state = unrolled(step, state, *((data[:, step, width:],) if width < 5 else ()))
        found.append(state[0])
    assert_close(torch.stack(found, dim=1), expected)
    (torch.stack(found, dim=1) * weight).sum().backward()
    assert_close(data.grad, expected_gradient)
    for (name, one), other in zip(made.named_parameters(), twin.parameters(), strict=True):
        assert_close(one.grad, other.grad, msg=name)


@every_cell
def test_a_stack_equals_layers_one_after_the_other(cell):
    layers = nn.ModuleList([build_cells(cell, 5, 4), build_cells(cell, 4, 4)])
    data = torch.randn(2, 6, 5)
    hidden = tuple(torch.randn(2, 2, 4) for _ in range(STATES[cell]))
    stack, found, expected, lasts = LayerStack(layers, data, hidden, Drop(), [None] * 3), [], data, []
    for step in range(6):
        found.append(stack.advance(step))
    for number, made in enumerate(layers):
        begin = tuple(each[None, :, number].contiguous() for each in hidden)
        expected, last = made(expected, begin if len(begin) > 1 else begin[0])
        lasts.append(tuple(each[0] for each in last) if len(begin) > 1 else (last[0],))
    assert_close(torch.stack(found, dim=1), expected)
    assert_close(stack.hidden, stack_states(lasts))


def test_the_mask_of_a_layer_falls_on_what_enters_it():
    layers = nn.ModuleList([build_cells("tanh", 3, 2), build_cells("tanh", 2, 2)])
    stack = LayerStack(layers, torch.randn(1, 1, 3), (torch.zeros(1, 2, 2),), Drop(), [None, torch.zeros(1, 2)])
    top = stack.advance(0)
    assert_close(top[0], torch.tanh(layers[1].bias_ih_l0 + layers[1].bias_hh_l0))


def test_a_repeated_product_takes_its_gradient_in_one_piece():
    given, W = torch.randn(3, 2, 4, requires_grad=True), torch.randn(4, 5, requires_grad=True)
    inputs = torch.randn(3, 2, 5, requires_grad=True)
    repeated = RepeatedLinear(given, W)
    found = torch.stack([repeated(step, inputs[step]) for step in range(3)])
    expected = given + inputs @ W.mT
    assert_close(found, expected)
    weight = torch.randn_like(expected)
    wanted = torch.autograd.grad((expected * weight).sum(), (given, W, inputs))
    assert_close(torch.autograd.grad((found * weight).sum(), (given, W, inputs)), wanted)
    assert len(repeated.inputs) == 3


def test_several_repeated_products_are_one():
    given = torch.randn(3, 2, 4, requires_grad=True)
    weights = [torch.randn(4, size, requires_grad=True) for size in (5, 1)]
    inputs = [torch.randn(3, 2, size, requires_grad=True) for size in (5, 1)]
    repeated = RepeatedLinear(given, *weights)
    found = torch.stack([repeated(step, *(each[step] for each in inputs)) for step in range(3)])
    expected = given + inputs[0] @ weights[0].mT + inputs[1] @ weights[1].mT
    assert_close(found, expected)
    learned = (given, *weights, *inputs)
    assert_close(torch.autograd.grad(found.sin().sum(), learned), torch.autograd.grad(expected.sin().sum(), learned))
    assert torch.equal(RepeatedLinear(given)(1), given[1])


def test_a_frozen_matrix_gets_no_gradient_and_nothing_is_kept_without_one():
    given, W = torch.randn(2, 2, 4, requires_grad=True), torch.randn(4, 5)
    repeated = RepeatedLinear(given, W)
    torch.stack([repeated(step, torch.ones(2, 5)) for step in range(2)]).sum().backward()
    assert W.grad is None
    assert_close(given.grad, torch.ones(2, 2, 4))
    with torch.no_grad():
        repeated = RepeatedLinear(given, W)
        repeated(0, torch.ones(2, 5))
    assert repeated.inputs == []


def test_an_lstm_begins_by_remembering():
    made = build_cells("lstm", 3, 2, bidirectional=True)
    assert made.bias_ih_l0[2:4].tolist() == [1, 1]
    assert made.bias_ih_l0_reverse[2:4].tolist() == [1, 1]


def test_a_cell_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="a cell needs to be one of tanh, lstm, gru, got 'relu'"):
        build_cells("relu", 3, 2)


@every_cell
def test_under_autocast_a_layer_keeps_its_precision_on_a_cpu(cell):
    made, data = build_cells(cell, 3, 2), torch.randn(2, 4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, _ = run_cells(made, data)
    assert torch.equal(found, made(data)[0])
