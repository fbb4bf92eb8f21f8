import numpy as np
import pytest
import torch

from regard.decoding.engines.cuda.generic import Engine, covers

from .small import PRE, SOURCE, model

LUONG = "recurrent, recurrent, lstm, luong"


@pytest.mark.parametrize(
    ("kind", "attention", "options", "reason"),
    [
        (LUONG, "bilinear", {}, None),
        (LUONG, "none", {}, None),
        ("convolution, convolution", "dot", {}, None),
        (PRE, "transformer", {}, "needs a recurrent or convolutional decoder, got Transformer"),
        (LUONG, "pointer", {}, "needs an output that is nothing but a projection"),
        (LUONG, "additive+sparsemax", {}, "needs Softmax and Everywhere"),
        ("convolution, convolution", "dot", {"positions": "learned"}, "needs positions that have no last"),
    ],
)
def test_it_says_what_it_does_not_cover(kind, attention, options, reason):
    found = covers(model(kind, attention, **options).decoder)
    assert found is None if reason is None else found.startswith(reason)


@torch.no_grad()
def test_a_state_follows_its_row_and_another_goes_on_from_it():
    built = model(LUONG, "bilinear")
    memory = built.encode(SOURCE)
    engine = Engine(built.decoder, torch.float32)
    steps, fewer = engine.steps(memory, 4, 2, 16), engine.steps(memory, 1, 2, 16)
    steps.begin(memory, np.arange(4))
    straight = torch.tensor([[0, 1]] * 4)
    steps.step(torch.arange(8) + 4, straight, torch.tensor([0]))
    fewer.take(steps, torch.tensor([2]))
    found = fewer.project(fewer.step(torch.tensor([5, 5]), torch.tensor([[1, 1]]), torch.tensor([1])))
    right = steps.step(torch.full((8,), 5), straight, torch.tensor([1]))
    torch.testing.assert_close(found, right[5].expand(2, -1))


def test_in_another_precision_it_is_a_copy():
    built = model(LUONG, "bilinear")
    assert next(Engine(built.decoder, torch.bfloat16).decoder.parameters()).dtype == torch.bfloat16
    assert next(built.decoder.parameters()).dtype == torch.float32
    Engine(built.decoder, torch.float32).refuse()  # nothing
