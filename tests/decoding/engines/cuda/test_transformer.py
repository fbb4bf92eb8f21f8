import math
from functools import partial

import numpy as np
import pytest
import torch

from regard.decoding.engines.cuda.layer import run_layer
from regard.decoding.engines.cuda.transformer import UNWRITTEN, Engine, covers
from regard.tree import map_tree, repeat, select

from .small import PRE, SOURCE, model


@pytest.mark.parametrize(
    ("attention", "options", "reason"),
    [
        ("transformer", {}, None),
        ("additive", {}, "needs a source read by heads of scaled_dot, got Attention"),
        ("transformer", {"self_attention": "rotary"}, "needs self-attention by scaled_dot and softmax"),
        ("transformer", {"norm": "rms"}, "needs layer norms, and matrices with biases"),
        ("transformer", {"bias": False}, "needs layer norms, and matrices with biases"),
    ],
)
def test_it_says_what_it_does_not_cover(attention, options, reason):
    found = covers(model(PRE, attention, **options).decoder)
    assert found is None if reason is None else found.startswith(reason)


def test_heads_that_share_keys_or_are_added_up_are_not_covered():
    decoder = model().decoder
    decoder.layers[0].cross.how = "sum"
    assert covers(decoder) == "needs as many heads of keys as of queries over the source, joined by concat"


@torch.no_grad()
def test_steps_give_the_logits_of_the_decoder_and_rows_have_their_own_past():
    built = model(layers=2)
    memory = built.encode(SOURCE)
    steps = Engine(built.decoder, torch.float32).steps(memory, 4, 2, 16)
    steps.begin(memory, np.arange(4))
    state, parents = repeat(built.decoder.start(memory), 2), torch.tensor([[0, 1]] * 4)
    crossed = torch.arange(8).view(4, 2).flip(1).flatten()
    for place, pair in enumerate(([1, 1], [5, 6], [7, 8], [9, 10])):
        tokens = torch.tensor(pair * 4)
        found = steps.project(steps.step(tokens, parents, torch.tensor([place])))
        step = built.decoder.step(tokens, memory, state)
        torch.testing.assert_close(found, step.output)
        state, parents = select(step.state, crossed), torch.tensor([[1, 0]] * 4)


def test_layers_are_compiled_where_that_is_asked_for(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: (function, dynamic))
    decoder = model().decoder
    assert Engine(decoder, torch.float32).through is run_layer
    assert Engine(decoder, torch.float32, compiled=True).through == (run_layer, False)


@torch.no_grad()
def test_more_room_holds_what_there_was_and_sentences_are_picked():
    built = model()
    memory = built.encode(SOURCE)
    engine = Engine(built.decoder, torch.float32)
    one, other = engine.steps(memory, 4, 1, 16), engine.steps(memory, 2, 1, 32)
    one.begin(memory, np.arange(4))
    none = torch.zeros(4, 1, dtype=torch.long)
    one.step(torch.tensor([1, 1, 1, 1]), none, torch.tensor([0]))
    other.take(one, torch.tensor([3, 1]))
    right = one.step(torch.tensor([5, 6, 7, 8]), none, torch.tensor([1]))
    found = other.step(torch.tensor([8, 6]), none[:2], torch.tensor([1]))
    torch.testing.assert_close(found, right[[3, 1]])
    assert (other.past[:, :, 2:] == UNWRITTEN).all()


@torch.no_grad()
def test_what_was_no_number_in_one_batch_is_gone_in_the_next():
    built = model(layers=2)
    memory, none = built.encode(SOURCE), torch.zeros(4, 1, dtype=torch.long)
    engine = Engine(built.decoder, torch.float32)
    one, other = (engine.steps(memory, 4, 1, room) for room in (16, 32))
    one.begin(memory, np.arange(4))
    right = one.step(torch.tensor([1, 1, 1, 1]), none, torch.tensor([0]))
    for cache in (*one.caches, *other.caches):
        cache.fill_(math.nan)
    one.begin(memory, np.arange(4))
    torch.testing.assert_close(one.step(torch.tensor([1, 1, 1, 1]), none, torch.tensor([0])), right)
    other.take(one, torch.arange(4))
    assert other.step(torch.tensor([5, 6, 7, 8]), none, torch.tensor([1])).isfinite().all()


@torch.no_grad()
def test_rows_of_a_batch_are_taken_in_whatever_order_they_are_asked_for():
    built = model(layers=2)
    memory, none = built.encode(SOURCE), torch.zeros(3, 1, dtype=torch.long)
    steps = Engine(built.decoder, torch.float32).steps(memory, 3, 1, 16)
    for rows in (np.array([1, 2, 3]), np.array([3, 0]), np.array([2])):
        steps.begin(memory, rows)
        found = steps.step(torch.tensor([1, 1, 1]), none, torch.tensor([0]))[: len(rows)]
        few = select(memory, torch.from_numpy(rows))
        right = built.decoder.step(torch.ones(len(rows), dtype=torch.long), few, built.decoder.start(few))
        torch.testing.assert_close(steps.project(found), right.output)


def cast(dtype, tensor):
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


@torch.no_grad()
def test_half_precision_is_near():
    built = model()
    half = Engine(built.decoder, torch.bfloat16)
    assert half.onto[0].dtype == torch.bfloat16
    memory = built.encode(SOURCE)
    found = []
    for engine in (half, Engine(built.decoder, torch.float32)):
        steps = engine.steps(memory, 4, 1, 16)
        steps.begin(map_tree(partial(cast, engine.dtype), memory), np.arange(4))
        found.append(steps.step(torch.tensor([1, 1, 1, 1]), torch.zeros(4, 1, dtype=torch.long), torch.tensor([0])).float())
    assert (found[0] - found[1]).abs().max() < 0.05
