import pytest
import torch
from torch import nn

from regard.decoding.engines.eager.recurrent import Engine, build_cell, covers
from regard.models.layers.cells import build_cells

from ....models.small import KINDS, made
from .walked import near, walked

COVERED = {name: options for name, options in KINDS.items() if options.get("decoder") == "recurrent"}


def built(attention="bilinear", **options):
    torch.manual_seed(5)
    return made(attention, **options).eval()


@pytest.mark.parametrize("kind", COVERED)
@pytest.mark.parametrize("attention", ["additive", "transformer", "additive+sparsemax", "monotonic"])
def test_steps_are_the_decoders_through_reordering_and_leaving(kind, attention):
    walked(Engine, built(attention, layers=2, **COVERED[kind]))


@pytest.mark.parametrize("name", ["tanh", "lstm", "gru"])
def test_a_cell_takes_the_step_of_its_layer(name):
    torch.manual_seed(0)
    one, data = build_cells(name, 5, 4), torch.randn(3, 5)
    begin = tuple(torch.randn(3, 4) for _ in range(2 if isinstance(one, nn.LSTM) else 1))
    given = tuple(each[None] for each in begin)
    with torch.no_grad():
        found = build_cell(one, "float32")(data, begin)
        _, last = one(data[:, None], given if len(given) > 1 else given[0])
    for mine, theirs in zip(found, last if len(given) > 1 else (last,), strict=True):
        torch.testing.assert_close(mine, theirs[0])


@pytest.mark.parametrize("attention", ["bilinear", "additive+sparsemax", "mocha"])
def test_int8_is_near(attention):
    near(Engine, built(attention, hidden_size=64))


@pytest.mark.parametrize(
    ("attention", "options", "reason"),
    [
        ("bilinear", {"decoder": "transformer"}, "needs the recurrent decoder, got Transformer"),
        ("none", {}, "needs an attention to the source"),
        ("pointer", {}, "needs an output that is nothing but a projection"),
    ],
)
def test_what_it_does_not_cover_it_says(attention, options, reason):
    assert covers(built(attention, **options).decoder).startswith(reason)
