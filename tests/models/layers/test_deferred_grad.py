import gc
import weakref

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention.types import Encoded, Memory
from regard.models.attention_factory import build_attention
from regard.models.layers.deferred_grad import DeferredAttention
from regard.registry import names

KEEP = torch.tensor([[True, True, True], [True, False, False]])
TIME = 4


def looked(made, memory, queries, deferred, weights=False, position=None):
    """The contexts of a loop in which every query depends on what was found before it."""
    state = made.start(memory)
    looks = DeferredAttention(
        made, memory, state, TIME, torch.zeros(2, dtype=torch.long) if position is None else position, weights
    )
    if not deferred:
        looks.gradients, looks.memory = (), memory
    found = torch.zeros(2, made.size, dtype=torch.float64)
    for step in range(TIME):
        found = looks(step, queries[:, step] + found.sum(-1, keepdim=True))
    return torch.cat([look.context for look in looks.steps], dim=1), looks


def gradients(name, deferred):
    torch.manual_seed(0)
    made = build_attention(name, 4, 4).double().eval()
    source, queries = torch.randn(2, 3, 4, dtype=torch.float64), torch.randn(2, TIME, 4, dtype=torch.float64)
    for each in (source, queries):
        each.requires_grad_()
    contexts, looks = looked(made, made.remember(Encoded(source, KEEP)), queries, deferred)
    learned = [source, queries, *made.parameters()]
    return contexts, torch.autograd.grad(contexts.sin().sum(), learned, allow_unused=True), looks


@pytest.mark.parametrize(
    "name", [*names("score"), "additive+sparsemax", "additive+local", "transformer", "local_p", "local_m", "channelwise"]
)
def test_a_gradient_that_waits_equals_one_taken_at_every_step(name):
    contexts, found, looks = gradients(name, deferred=True)
    expected_contexts, expected, _ = gradients(name, deferred=False)
    assert looks.gradients
    assert_close(contexts, expected_contexts)
    for mine, other in zip(found, expected, strict=True):
        assert (mine is None) == (other is None)
        if mine is not None:
            assert_close(mine, other)


def memory(grad=True):
    return Memory(*(torch.randn(2, 1, 3, 4, requires_grad=grad) for _ in range(2)))


class Anything(nn.Module):
    """A normaliser that draws."""

    random, sums_to_one = True, True

    def forward(self, scores, allowed):
        return scores.softmax(-1)


@pytest.mark.parametrize(
    ("options", "made"),
    [
        ({"weights": True}, build_attention("additive", 4, 4)),
        ({}, build_attention("additive", 4, 4, dropout=0.5)),
        ({}, build_attention("coverage", 4, 4)),
    ],
    ids=["weights are wanted", "weights are dropped", "a state is carried"],
)
def test_what_does_not_follow_from_query_and_memory_alone_does_not_wait(options, made):
    kept = memory()
    assert not DeferredAttention(
        made, kept, made.start(kept), TIME, torch.zeros(2, dtype=torch.long), options.get("weights", False)
    ).gradients


def test_what_is_drawn_does_not_wait_while_training():
    made = build_attention("additive", 4, 4)
    made.normalise = Anything()
    assert not DeferredAttention(made, memory(), (), TIME, torch.zeros(2, dtype=torch.long), False).gradients
    assert DeferredAttention(made.eval(), memory(), (), TIME, torch.zeros(2, dtype=torch.long), False).gradients


def test_nothing_waits_where_no_gradient_is_wanted_or_beams_share_a_memory():
    made = build_attention("additive", 4, 4)
    assert not DeferredAttention(made, memory(grad=False), (), TIME, torch.zeros(2, dtype=torch.long), False).gradients
    assert not DeferredAttention(made, memory(), (), 1, torch.zeros(2, dtype=torch.long), False).gradients
    assert not DeferredAttention(made, memory(), (), TIME, torch.zeros(6, dtype=torch.long), False).gradients
    with torch.no_grad():
        assert not DeferredAttention(made, memory(), (), TIME, torch.zeros(2, dtype=torch.long), False).gradients


def test_what_a_loop_held_is_freed_without_looking_for_rings():
    made, kept = build_attention("additive", 4, 4), memory()
    gc.disable()
    try:
        looks = DeferredAttention(made, kept, (), TIME, torch.zeros(2, dtype=torch.long), False)
        looks(0, torch.randn(2, 4)).sum().backward(retain_graph=True)
        freed = weakref.ref(looks.queries[0]), weakref.ref(looks)
        del looks
        assert [each() for each in freed] == [None, None]
    finally:
        gc.enable()


def test_the_gradient_is_that_of_the_mode_in_which_was_asked():
    made = build_attention("additive", 4, 4, dropout=0.5).eval()
    kept, queries = memory(), torch.randn(TIME, 2, 4)
    found = []
    for training in (False, True):
        looks = DeferredAttention(made.eval(), kept, (), TIME, torch.zeros(2, dtype=torch.long), False)
        total = sum(looks(step, queries[step]).sin().sum() for step in range(TIME))
        made.train(training)
        found.append(torch.autograd.grad(total, (kept.keys, kept.values)))
        assert made.training == training
    assert_close(found[0], found[1])


def test_under_autocast_the_gradient_is_taken_under_it_too():
    made = build_attention("transformer", 4, 4, heads=2)
    kept = made.remember(torch.randn(2, 3, 4, requires_grad=True))
    with torch.autocast("cpu", torch.float16):
        looks = DeferredAttention(made, kept, (), TIME, torch.zeros(2, dtype=torch.long), False)
        total = sum(looks(step, torch.randn(2, 4)).sum() for step in range(TIME))
    found = torch.autograd.grad(total, (kept.keys, kept.values))
    assert all(each.dtype == torch.float32 and bool(each.abs().sum() > 0) for each in found)
