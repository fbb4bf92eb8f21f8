import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.mechanisms.forward import Forward
from regard.models.attention_factory import build_attention

from .in_models import check_learning_and_padding, check_steps_and_beams, every_kind


def small(query=3, key=None, **options):
    return Forward(query, key, **{"filters": 2, "kernel": 3} | options)


def test_a_plain_case_can_be_worked_by_hand():
    attention = small(1, transition_agent=False)
    for parameter in attention.parameters():
        parameter.data.zero_()
    query, source = torch.zeros(1, 3, 1), torch.tensor([[[0.0], [1.0], [0.0]]])
    weights = attention(query, attention.remember(source), weights=True).weights[0, 0]
    # every key has the same score, so that only paths count: 1 1, then 1 2 1, then 1 3 3 (and 1 beyond the end)
    expected = torch.tensor([[1 / 2, 1 / 2, 0], [1 / 4, 2 / 4, 1 / 4], [1 / 7, 3 / 7, 3 / 7]])
    assert_close(weights, expected)


def test_a_transition_agent_that_always_moves_walks_key_by_key_and_stays_at_the_last():
    attention = small(1)
    for parameter in attention.parameters():
        parameter.data.zero_()
    attention.agent.bias.data.fill_(100.0)
    weights = attention(torch.zeros(1, 4, 1), attention.remember(torch.zeros(1, 3, 1)), weights=True).weights[0, 0]
    expected = torch.tensor([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1.0], [0, 0, 1.0]])
    assert_close(weights, expected, atol=1e-5, rtol=0)


def formula(attention, query, source):
    """The recursion of the paper for one row, with loops over keys."""
    W, U, v = (part.weight[0] for part in (attention.score.W, attention.score.U, attention.score.v))
    reach, keys = attention.F.kernel_size[0] // 2, len(source)
    alignment, history, u, weights = [1.0] + [0.0] * (keys - 1), torch.zeros(keys), torch.tensor(0.5), []
    for state in query:
        energies = []
        for j, h in enumerate(source):
            near = [(history[j + r] if 0 <= j + r < keys else 0.0) for r in range(-reach, reach + 1)]
            f = sum(part * taken for part, taken in zip(attention.F.weight[:, 0].unbind(1), near, strict=True))
            energies.append(v[0] @ torch.tanh(W @ state + U @ h + attention.V.weight @ f + attention.V.bias))
        y = torch.stack(energies).softmax(0)
        product = [((1 - u) * alignment[n] + (u * alignment[n - 1] if n else 0.0)) * y[n] for n in range(keys)]
        alignment = [share / sum(product) for share in product]
        weights.append(torch.stack(alignment))
        history = history + weights[-1] if attention.cumulative else weights[-1]
        if attention.agent is not None:
            u = torch.sigmoid(attention.agent(torch.cat((weights[-1] @ source, state))))[0]
    return torch.stack(weights)


@pytest.mark.parametrize("cumulative", [False, True])
@pytest.mark.parametrize("transition_agent", [False, True])
def test_it_is_the_recursion_of_the_paper(cumulative, transition_agent):
    attention = small(3, 2, cumulative=cumulative, transition_agent=transition_agent)
    query, source = torch.randn(1, 4, 3), torch.randn(1, 5, 2)
    attended = attention(query, attention.remember(source), weights=True)
    weights = formula(attention, query[0], source[0])
    assert_close(attended.weights[0, 0], weights)
    assert_close(attended.context[0], weights @ source[0])


def test_it_begins_at_the_first_key_that_is_not_padding():
    attention, keep = small(), torch.tensor([[False, True, True, True], [False] * 4])
    attended = attention(torch.randn(2, 2, 3), attention.remember(Encoded(torch.randn(2, 4, 3), keep)), weights=True)
    assert attended.weights[0, 0, 0, 1:3].all()
    assert not attended.weights[0, 0, 0, 3]
    assert not attended.weights[1].any()


def test_a_score_far_out_of_reach_leaves_no_nan():
    attention = small(2, transition_agent=False)
    attention.score.v.weight.data.mul_(1e4)
    query = torch.randn(2, 5, 2, requires_grad=True)
    attended = attention(query, attention.remember(torch.randn(2, 7, 2)), weights=True)
    attended.context.sum().backward()
    assert query.grad.isfinite().all()
    assert_close(attended.weights.sum(-1), torch.ones(2, 1, 5))
    assert not attended.weights[:, 0, 0, 2:].any()
    assert math.isclose(attended.state.move.unique().item(), 0.5)


def test_it_brings_its_own_normaliser():
    with pytest.raises(ValueError, match="Forward normalises over the paths of its alignment, got normalise='sparsemax'"):
        build_attention("forward+sparsemax", 4, 4)


@every_kind
def test_it_works_in_every_decoder(kind):
    check_learning_and_padding("forward", kind)
    check_steps_and_beams("forward", kind)
