import pytest
import torch

from regard.decoding.engines.cpp.recurrent import Engine, build_cell, covers

from ..eager.test_recurrent import COVERED, built
from ..eager.walked import near, walked

KINDS = {name: options for name, options in COVERED.items() if options.get("cell", "lstm") == "lstm"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attention", ["bilinear", "transformer", "additive"])
def test_steps_are_the_decoders_through_reordering_and_leaving(kind, attention):
    walked(Engine, built(attention, layers=2, **KINDS[kind]))


def test_a_cell_is_one_matrix_of_what_enters_and_of_its_state():
    made = build_cell(torch.nn.LSTM(5, 4), "float32")
    assert (made.size, made.out) == (9, 16)


def test_int8_is_near():
    near(Engine, built(hidden_size=64))


@pytest.mark.parametrize(
    ("attention", "options", "reason"),
    [
        ("bilinear", {"decoder": "transformer"}, "needs the recurrent decoder, got Transformer"),
        ("bilinear", {"cell": "gru"}, "needs LSTM cells, got GRU"),
        ("additive+sparsemax", {}, "needs Softmax and Everywhere, got Sparsemax"),
    ],
)
def test_what_it_does_not_cover_it_says(attention, options, reason):
    assert covers(built(attention, **options).decoder).startswith(reason)
