import pytest
import torch
from torch import nn

from regard.data.batch import pad
from regard.models.cells import layer
from regard.models.types import select
from regard.native.recurrent import Engine, cell, covers

from ..models.small import KINDS, made

SOURCE = pad([[4, 5, 6, 2], [7, 2], [8, 9, 2]])
COVERED = {name: options for name, options in KINDS.items() if options.get("decoder") == "recurrent"}


def built(attention="bilinear", **options):
    torch.manual_seed(5)
    return made(attention, **options).eval()


@pytest.mark.parametrize("kind", COVERED)
@pytest.mark.parametrize("attention", ["additive", "transformer"])
def test_steps_are_the_decoders_through_reordering_and_leaving(kind, attention):
    model = built(attention, layers=2, **COVERED[kind])
    decoder = model.decoder
    with torch.no_grad():
        memory = model.encode(SOURCE)
        steps, state = Engine(decoder).begin(memory), decoder.start(memory)
        for tokens, parents, staying in PATH:
            if staying is not None:
                steps.leave(staying)
                memory = select(memory, staying)
            state = state if parents is None else select(state, parents)
            expected = decoder.step(tokens, memory, state)
            torch.testing.assert_close(steps.step(tokens, parents), expected.output, atol=1e-5, rtol=1e-5)
            state = expected.state


PATH = [
    (torch.tensor([1, 1, 1]), None, None),
    (torch.tensor([4, 5, 6, 7, 8, 9]), torch.tensor([0, 0, 1, 1, 2, 2]), None),
    (torch.tensor([9, 9, 4, 5]), torch.tensor([1, 0, 5, 5]), torch.tensor([0, 2])),
    (torch.tensor([7, 3, 4, 6]), torch.tensor([1, 1, 2, 3]), None),
    (torch.tensor([8, 5]), torch.tensor([3, 2]), torch.tensor([1])),
]
"""Tokens, the rows that they grow from, and the sentences that stay: one row each, two each, then fewer sentences."""


@pytest.mark.parametrize("name", ["tanh", "lstm", "gru"])
def test_a_cell_takes_the_step_of_its_layer(name):
    torch.manual_seed(0)
    one, data = layer(name, 5, 4), torch.randn(3, 5)
    begin = tuple(torch.randn(3, 4) for _ in range(2 if isinstance(one, nn.LSTM) else 1))
    given = tuple(each[None] for each in begin)
    with torch.no_grad():
        found = cell(one, "float32")(data, begin)
        _, last = one(data[:, None], given if len(given) > 1 else given[0])
    for mine, theirs in zip(found, last if len(given) > 1 else (last,), strict=True):
        torch.testing.assert_close(mine, theirs[0])


def test_int8_is_near():
    model = built(size=64)
    with torch.no_grad():
        memory, tokens = model.encode(SOURCE), torch.tensor([1, 1, 1])
        exact, rounded = (Engine(model.decoder, each).begin(memory).step(tokens, None) for each in ("float32", "int8"))
    assert 0 < (exact - rounded).abs().max() < 0.05 * exact.abs().max()


@pytest.mark.parametrize(
    ("attention", "options", "reason"),
    [
        ("bilinear", {"decoder": "transformer"}, "needs the recurrent decoder, got Transformer"),
        ("none", {}, "needs an attention to the source"),
        ("additive+sparsemax", {}, "needs Softmax and Everywhere, got Sparsemax"),
        ("pointer", {}, "needs an output that is nothing but a projection"),
    ],
)
def test_what_it_does_not_cover_it_says(attention, options, reason):
    assert covers(built(attention, **options).decoder).startswith(reason)
