import pytest
import torch

from regard.attention.first_derivative import refuse_second_derivative


def cube(data):
    return refuse_second_derivative(1 * data, "Cube").pow(3).sum()


def test_the_first_derivative_is_unchanged():
    data = torch.tensor([1.0, 2.0], requires_grad=True)
    cube(data).backward()
    assert data.grad.tolist() == [3.0, 12.0]
    assert torch.func.grad(cube)(torch.tensor([1.0, 2.0])).tolist() == [3.0, 12.0]


def test_the_second_derivative_is_refused_by_name():
    data = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = torch.autograd.grad(cube(data), data, create_graph=True)
    assert first.tolist() == [3.0, 12.0]
    with pytest.raises(RuntimeError, match=r"Cube has no second derivative: .*; use Softmax or Sparsemax"):
        first.sum().backward()
    with pytest.raises(RuntimeError, match="Cube has no second derivative"):
        torch.func.grad(lambda data: torch.func.grad(cube)(data).sum())(data.detach())


def test_without_a_gradient_it_is_the_data_itself():
    data = torch.ones(2)
    assert refuse_second_derivative(data, "Cube") is data
    assert not data.requires_grad
