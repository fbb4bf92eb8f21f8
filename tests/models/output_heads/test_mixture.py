import torch
from torch import nn
from torch.testing import assert_close

from regard.models.output_heads.mixture import Mixture

TABLE = torch.tensor([[1.0, 0.0], [0.0, 2.0], [3.0, 3.0]])


def test_each_head_proposes_and_the_data_trusts():
    output = Mixture(2, vocabulary=3, embedding=2, heads=2)
    nn.init.normal_(output.bias)
    data = torch.randn(1, 1, 2)
    x, W, trust = data[0, 0], output.W.weight.view(2, 2, 2), (output.U.weight @ data[0, 0]).softmax(0)
    expected = sum(trust[k] * (TABLE @ torch.tanh(W[k] @ x) + output.bias).softmax(0) for k in range(2))
    assert_close(output(data, TABLE)[0, 0].exp(), expected)


def test_two_heads_may_agree_on_what_one_softmax_cannot_say():
    output = Mixture(1, vocabulary=3, embedding=1, heads=2)
    with torch.no_grad():
        output.W.weight.copy_(torch.tensor([[9.0], [-9.0]]))
        output.U.weight.zero_()
    table = torch.tensor([[20.0], [0.0], [-20.0]])
    found = output(torch.ones(1, 1, 1), table)[0, 0].exp()
    assert_close(found, torch.tensor([0.5, 0.0, 0.5]), atol=1e-6, rtol=0)  # one row of E x puts the middle between them


def test_one_head_is_a_softmax():
    output = Mixture(4, 5, 3, heads=1)
    data, table = torch.randn(2, 3, 4), torch.randn(5, 3)
    assert_close(output(data, table), (torch.tanh(output.W(data)) @ table.mT).log_softmax(-1))


def test_what_comes_out_is_the_logarithm_of_a_distribution():
    output = Mixture(4, 5, 4, tie=False, heads=3)
    assert output.weight.shape == (5, 4)
    assert_close(output(torch.randn(2, 3, 4), torch.randn(5, 4)).exp().sum(-1), torch.ones(2, 3))
