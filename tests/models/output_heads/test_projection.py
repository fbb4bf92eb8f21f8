import torch
from torch import nn
from torch.testing import assert_close

from regard.models.output_heads.projection import Projection

TABLE = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])


def test_a_tied_output_compares_with_every_embedding():
    output = Projection(2, vocabulary=3, embedding=2, tie=True)
    nn.init.constant_(output.bias, 0.5)
    assert_close(output(torch.tensor([[1.0, 1.0]]), TABLE), torch.tensor([[1.5, 2.5, 6.5]]))
    assert [name for name, _ in output.named_parameters()] == ["bias"]


def test_an_output_of_another_width_than_the_embedding_is_fitted_first():
    output = Projection(4, vocabulary=3, embedding=2, tie=True)
    data = torch.randn(5, 4)
    assert_close(output(data, TABLE), data @ output.fit.weight.mT @ TABLE.mT)


def test_a_loose_output_has_its_own_matrix():
    output = Projection(4, vocabulary=3, embedding=2, tie=False)
    data = torch.randn(2, 5, 4)
    assert_close(output(data, TABLE), data @ output.weight.mT)


def test_without_bias_what_it_adds_is_not_learned():
    layer = Projection(3, 5, 3, tie=True, bias=False)
    layer(torch.randn(2, 3), torch.randn(5, 3, requires_grad=True)).sum().backward()
    assert layer.bias.tolist() == [0.0] * 5
    assert layer.bias.grad is None
