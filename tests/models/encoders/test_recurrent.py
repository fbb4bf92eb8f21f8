import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention.positions.learned import Learned
from regard.attention.positions.sinusoidal import Sinusoidal
from regard.data.batch import Padded, pad
from regard.models.encoders.recurrent import Recurrent, reverse_indices, run_layer, run_layer_stepwise
from regard.models.layers.cells import STATES, build_cells

SOURCE = pad([[4, 5, 6, 2], [7, 2], [8, 9, 2]])
every_cell = pytest.mark.parametrize("cell", STATES)


def alone(row):
    length = int(SOURCE.keep[row].sum())
    return Padded(SOURCE.data[row : row + 1, :length], SOURCE.keep[row : row + 1, :length])


@every_cell
@pytest.mark.parametrize("bidirectional", [True, False])
@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize("layers", [1, 2])
def test_padding_never_touches_the_result(cell, bidirectional, reverse, layers):
    encoder = Recurrent(11, 6, cell=cell, bidirectional=bidirectional, reverse=reverse, layers=layers).eval()
    encoded = encoder(SOURCE)
    assert encoded.data.shape == (3, 4, 6)
    assert len(encoded.final) == STATES[cell]
    longer = encoder(Padded(F.pad(SOURCE.data, (0, 3), value=9), F.pad(SOURCE.keep, (0, 3))))
    assert_close(longer.data[:, :4], encoded.data)
    assert longer.data[:, 4:].abs().sum() == 0
    for row in range(3):
        single = encoder(alone(row))
        assert_close(single.data[0], encoded.data[row, : single.data.shape[1]])
        for one, all_ in zip(single.final, encoded.final, strict=True):
            assert one.shape == (1, layers, 6)
            assert_close(one[0], all_[row])


@every_cell
def test_the_final_state_is_what_stands_at_the_last_token_and_the_first(cell):
    encoder = Recurrent(11, 6, cell=cell).eval()
    encoded = encoder(SOURCE)
    assert_close(encoded.final[0][1, 0, :3], encoded.data[1, 1, :3])  # forwards: the second of two tokens
    assert_close(encoded.final[0][1, 0, 3:], encoded.data[1, 0, 3:])  # backwards: the first


def test_a_layer_is_pytorchs_own():
    encoder = Recurrent(11, 6, embedding=5, bidirectional=False)
    data, (hidden, cell) = encoder.layers[0](encoder.embedding(alone(0).data))
    encoded = encoder(alone(0))
    assert_close(encoded.data, data)
    assert_close(encoded.final, (hidden.transpose(0, 1), cell.transpose(0, 1)))


def test_reversed_it_reads_from_the_end_and_answers_in_the_order_of_the_source():
    encoder = Recurrent(11, 6, bidirectional=False, reverse=True).eval()
    flipped = Padded(alone(2).data.flip(1), alone(2).keep)
    encoded = encoder(SOURCE)
    encoder.reverse = False
    plain = encoder(flipped)
    assert_close(encoded.data[2, :3], plain.data[0].flip(0))
    assert_close(encoded.final[0][2], plain.final[0][0])


def test_the_tokens_come_along_in_the_order_of_the_source():
    source = pad([[4, 5, 6], [7, 8]])
    for reverse in (False, True):
        assert Recurrent(9, 4, reverse=reverse)(source).tokens.tolist() == [[4, 5, 6], [7, 8, 0]]


def test_backwards_respects_padding():
    assert reverse_indices(SOURCE.keep, SOURCE.keep.sum(1)).tolist() == [[3, 2, 1, 0], [1, 0, 2, 3], [2, 1, 0, 3]]


@pytest.mark.parametrize("positions", [Sinusoidal(5), Learned(3, "concat")], ids=["added", "beside"])
def test_it_can_be_told_positions(positions):
    encoder = Recurrent(11, 6, embedding=5, positions=positions).eval()
    assert encoder.layers[0].input_size == positions.width(5)
    assert encoder(SOURCE).data.shape == (3, 4, 6)


def test_variational_dropout_hides_the_same_of_every_token():
    encoder = Recurrent(11, 32, layers=2, drop_embedding=0.5, drop_residual=0.5, variational=True)
    entering = []
    for made in encoder.layers:
        made.register_forward_pre_hook(lambda _, inputs: entering.append(inputs[0]))
    encoder(alone(0))
    for data in entering:
        hidden = data == 0
        assert hidden.any()
        assert torch.equal(hidden.any(1), hidden.all(1))


def test_dropout_between_layers_falls_on_training_only():
    encoder = Recurrent(11, 6, layers=2, drop_residual=0.5)
    assert not torch.equal(encoder(SOURCE).data, encoder(SOURCE).data)
    encoder.eval()
    assert torch.equal(encoder(SOURCE).data, encoder(SOURCE).data)


def test_a_row_without_tokens_breaks_nothing():
    encoder = Recurrent(11, 6).eval()
    encoded = encoder(Padded(SOURCE.data, SOURCE.keep & torch.tensor([[True], [False], [True]])))
    assert encoded.data[1].abs().sum() == 0
    assert_close(encoded.data[0], encoder(SOURCE).data[0])


def test_two_directions_need_an_even_size():
    with pytest.raises(ValueError, match="a bidirectional encoder needs an even size, half for each direction, got 7"):
        Recurrent(11, 7)


@every_cell
@pytest.mark.parametrize("bidirectional", [True, False])
def test_step_by_step_a_layer_finds_what_it_finds_in_one_call_and_so_do_its_gradients(cell, bidirectional):
    rnn = build_cells(cell, 5, 6, bidirectional).double()
    data = torch.randn(3, 4, 5, dtype=torch.float64, requires_grad=True)
    at_once, states = run_layer(rnn, data, SOURCE.keep.sum(1))
    steps, others = run_layer_stepwise(rnn, data, SOURCE.keep)
    at_once, steps = (each.masked_fill(~SOURCE.keep[..., None], 0.0) for each in (at_once, steps))
    assert_close(steps, at_once)
    assert_close(others, states)
    learned = [data, *rnn.parameters()]

    def slopes(found, final):
        return torch.autograd.grad((found**2).sum() + sum((each**3).sum() for each in final), learned)

    assert_close(slopes(steps, others), slopes(at_once, states))
