import torch

from regard.data.batch import Padded, pad, pad_numbers
from regard.data.feedback import NumberFeedback, TokenFeedback
from regard.data.modality import Feedback
from regard.data.special_tokens import BOS, EOS


def test_tokens_begin_with_bos_and_end_with_eos():
    feedback, source, target = TokenFeedback(), pad([[4, 5], [6]]), pad([[7, 8, EOS], [9, EOS]])
    assert isinstance(feedback, Feedback)
    assert feedback.first_input(source).tolist() == [BOS, BOS]
    assert feedback.decoder_input(source, target).tolist() == [[BOS, 7, 8], [BOS, 9, EOS]]
    logits = torch.eye(10)[[EOS, 8]]
    assert feedback.emit(logits).tolist() == feedback.feedback(logits).tolist() == [EOS, 8]
    assert feedback.is_end(logits).tolist() == [True, False]


def test_packed_tokens_begin_with_bos_in_each_document():
    target = Padded(torch.tensor([[4, EOS, 5, EOS]]), torch.ones(1, 4, dtype=torch.bool), torch.tensor([[1, 1, 2, 2]]))
    assert TokenFeedback().decoder_input(target, target).tolist() == [[BOS, 4, BOS, 5]]


def test_numbers_begin_with_zeros_or_with_the_last_observed_value():
    source = pad_numbers([torch.tensor([[1.0, 9.0], [2.0, 9.0]]), torch.tensor([[3.0, 9.0]])])
    target = pad_numbers([torch.tensor([[4.0], [5.0]]), torch.tensor([[6.0]])])
    assert isinstance(NumberFeedback(1), Feedback)
    assert NumberFeedback(1).decoder_input(source, target).tolist() == [[[0.0], [4.0]], [[0.0], [6.0]]]
    observed = NumberFeedback(1, observed=True)
    assert observed.first_input(source).tolist() == [[2.0], [3.0]]
    assert observed.decoder_input(source, target).tolist() == [[[2.0], [4.0]], [[3.0], [6.0]]]


def test_a_learned_stop_is_one_number_more_and_is_fed_to_no_step():
    feedback = NumberFeedback(2, stops=True)
    output = torch.tensor([[1.0, 2.0, 0.1], [3.0, 4.0, -0.1]])
    assert feedback.size == 3
    assert feedback.emit(output).tolist() == feedback.feedback(output).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert feedback.is_end(output).tolist() == [True, False]
    assert NumberFeedback(2).is_end(output[:, :2]).tolist() == [False, False]
