import pytest
import torch
from torch.testing import assert_close

from regard.attention.types import Encoded
from regard.config import AttentionPart, Dropout, Model
from regard.data.batch import pad_numbers
from regard.data.feedback import NumberFeedback
from regard.decoding.rollout import roll_out
from regard.models.seq2seq import build_decoder

SOURCE = pad_numbers([torch.randn(5, 2), torch.randn(3, 2)])


def build(decoder, feedback, attention="additive"):
    torch.manual_seed(0)
    model = Model(hidden_size=8, encoder="transformer", decoder=decoder, attention=AttentionPart(attention), heads=2)
    made = build_decoder(model, Dropout(0.0, 0.0, 0.0), 8, feedback.channels, feedback=feedback).eval()
    return made, made.remember(Encoded(torch.randn(2, 5, 8), SOURCE.keep, (torch.randn(2, 1, 8),) * 2))


@pytest.mark.parametrize("decoder", ["recurrent", "convolution", "transformer"])
def test_a_rollout_is_what_teacher_forcing_on_it_computes(decoder):
    feedback = NumberFeedback(2, observed=True)
    made, memory = build(decoder, feedback)
    rollout = roll_out(made, memory, SOURCE, feedback, length=6, weights=True)
    step = made(feedback.decoder_input(SOURCE, rollout.output), memory, weights=True)
    assert rollout.output.keep.all()
    assert_close(rollout.output.data, feedback.emit(step.output), rtol=1e-4, atol=1e-5)
    assert rollout.weights
    for name, weights in rollout.weights.items():
        assert_close(weights, step.attended[name].weights, rtol=1e-4, atol=1e-5)


def test_each_row_ends_at_its_own_length():
    feedback = NumberFeedback(1)
    made, memory = build("recurrent", feedback)
    rollout = roll_out(made, memory, SOURCE, feedback, length=[4, 2])
    assert rollout.output.lengths == [4, 2]
    assert (rollout.output.data[1, 2:] == 0).all()
    assert roll_out(made, memory, SOURCE, feedback, length=0).output.data.shape == (2, 0, 1)


def test_a_learned_stop_ends_a_row_with_its_position():
    feedback = NumberFeedback(1, stops=True)
    made, memory = build("recurrent", feedback)
    torch.nn.init.zeros_(made.output.linear.weight)
    torch.nn.init.constant_(made.output.linear.bias, 1.0)
    assert roll_out(made, memory, SOURCE, feedback, length=9).output.lengths == [1, 1]
    torch.nn.init.constant_(made.output.linear.bias, -1.0)
    assert roll_out(made, memory, SOURCE, feedback, length=9).output.lengths == [9, 9]


def test_numbers_refuse_an_attention_that_copies_and_another_number_of_channels():
    with pytest.raises(ValueError, match="an attention that takes no part in the output"):
        build("recurrent", NumberFeedback(1), "pointer")
    with pytest.raises(ValueError, match="reads as many as it is fed back, 3, got 2"):
        build_decoder(Model(hidden_size=8), Dropout(), 8, 2, feedback=NumberFeedback(3))
