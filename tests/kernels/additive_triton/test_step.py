import math
from dataclasses import replace

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.additive_triton import launch, operator, step
from regard.kernels.additive_triton.arguments import Dropped, Scoped


def test_one_query_can_be_worked_by_hand():
    query, key = torch.tensor([[[[1.0]]]]), torch.tensor([[[[0.0], [-1.0]]]])
    value, v = torch.tensor([[[[1.0], [3.0]]]]), torch.tensor([[2.0]])
    context, weights = operator.attention(query, key, value, v, weights=torch.float32)
    share = 1 / (1 + math.exp(-2 * math.tanh(1)))
    torch.testing.assert_close(weights[0, 0, 0], torch.tensor([share, 1 - share]))
    torch.testing.assert_close(context[0, 0, 0], torch.tensor([3 - 2 * share]))


@pytest.mark.parametrize("ahead", [0, 60])
def test_one_query_reads_what_it_reads_among_others(ahead):
    query, key, value, v = torch.randn(1, 1, 2, 3), torch.randn(1, 1, 50, 3), torch.randn(1, 1, 50, 5), torch.randn(1, 3)
    both = operator.attention(query, key, value, v, Scoped(offset=20, ahead=ahead), weights=torch.float32)
    alone = operator.attention(query[:, :, 1:], key, value, v, Scoped(offset=21, ahead=ahead), weights=torch.float32)
    for found, expected in zip(alone, both, strict=True):
        torch.testing.assert_close(found, expected[:, :, 1:])


@pytest.mark.parametrize(
    "changed", [{"step_whole": True}, {"step_stages": 3}, {"step_whole": True, "step_stages": 2}], ids=str
)
def test_the_parts_of_one_query_are_the_same_whoever_joins_them(monkeypatch, changed):
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 2, 1, 40), torch.randn(3, 1, 50, 40), torch.randn(3, 2, 50, 5)
    told = Scoped(torch.arange(50) < torch.tensor([[50], [9], [0]])), Dropped(0.3, torch.tensor([5]))
    runs = []
    for tiles in (operator.TILES, replace(operator.TILES, **changed)):
        monkeypatch.setattr(operator, "TILES", tiles)
        leaves = [each.clone().requires_grad_() for each in (query, key, value, torch.ones(1, 40))]
        found = operator.attention(*leaves, *told, weights=torch.float32)
        runs.append((*found, *torch.autograd.grad(found[0].square().sum(), leaves)))
    for now, then in zip(*runs, strict=True):
        torch.testing.assert_close(now, then, rtol=0, atol=0)


def test_the_last_program_of_a_head_is_the_only_one_launched(monkeypatch):
    started, start = [], launch.start
    monkeypatch.setattr(
        launch, "start", lambda program, *given, **named: started.append(program) or start(program, *given, **named)
    )
    monkeypatch.setattr(operator, "TILES", replace(operator.TILES, step_whole=True))
    operator.attention(torch.randn(1, 1, 1, 3), torch.randn(1, 1, 5, 3), torch.randn(1, 1, 5, 3), torch.ones(1, 3))
    assert started == [step.split]
