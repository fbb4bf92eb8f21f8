import pytest
import torch

from regard.models.types import select
from regard.native.compiled.recurrent import Engine, cell, covers

from ..test_recurrent import COVERED, PATH, SOURCE, built

KINDS = {name: options for name, options in COVERED.items() if options.get("cell", "lstm") == "lstm"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attention", ["bilinear", "transformer", "additive"])
def test_steps_are_the_decoders_through_reordering_and_leaving(kind, attention):
    model = built(attention, layers=2, **KINDS[kind])
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


def test_a_cell_is_one_matrix_of_what_enters_and_of_its_state():
    made = cell(torch.nn.LSTM(5, 4), "float32")
    assert (made.size, made.out) == (9, 16)


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
        ("bilinear", {"cell": "gru"}, "needs LSTM cells, got GRU"),
        ("additive+sparsemax", {}, "needs Softmax and Everywhere, got Sparsemax"),
    ],
)
def test_what_it_does_not_cover_it_says(attention, options, reason):
    assert covers(built(attention, **options).decoder).startswith(reason)
