import torch

from regard.attention.mechanisms.bahdanau import Bahdanau


def test_it_is_the_formula_of_the_paper():
    attention = Bahdanau(query=3, key=2)
    state, source = torch.randn(1, 1, 3), torch.randn(1, 4, 2)
    W, U, v = (parameter.weight[0] for parameter in (attention.score.W, attention.score.U, attention.score.v))
    # e_j = vᵀ tanh(W s + U h_j),  α = softmax(e),  c = Σ α_j h_j
    energies = torch.stack([v[0] @ torch.tanh(W @ state[0, 0] + U @ annotation) for annotation in source[0]])
    shares = energies.exp() / energies.exp().sum()
    context = sum(share * annotation for share, annotation in zip(shares, source[0], strict=True))
    attended = attention(state, attention.remember(source), weights=True)
    torch.testing.assert_close(attended.weights[0, 0, 0], shares)
    torch.testing.assert_close(attended.context[0, 0], context)


def test_a_plain_case_can_be_worked_by_hand():
    attention = Bahdanau(query=1)
    for parameter in attention.parameters():
        parameter.data.fill_(1.0)
    state, source = torch.tensor([[[0.0]]]), torch.tensor([[[0.0], [1.0]]])
    # e = [tanh 0, tanh 1] = [0, 0.76159], whose softmax is [0.31830, 0.68170]
    context = attention(state, attention.remember(source)).context
    torch.testing.assert_close(context, torch.tensor([[[0.681700]]]), atol=1e-5, rtol=0)


def test_other_options_are_those_of_attention():
    assert Bahdanau(query=3, key=2, normalise="sparsemax").normalise.sums_to_one
    assert Bahdanau(query=3, key=2, size=4).size == 4
