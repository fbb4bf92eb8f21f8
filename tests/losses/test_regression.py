from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.config import Train
from regard.data.batch import pad_numbers
from regard.data.feedback import NumberFeedback
from regard.losses.regression import find_last, regression_loss
from regard.losses.teacher_forcing import TeacherForcing

TARGET = pad_numbers([torch.tensor([[1.0, 3.0], [5.0, 5.0]]), torch.tensor([[2.0, 2.0]])])


def test_absolute_errors_by_hand():
    output = torch.tensor([[[1.0, 4.0], [5.0, 2.0]], [[0.0, 2.0], [9.0, 9.0]]])
    loss = regression_loss(output, TARGET, NumberFeedback(2))
    assert (float(loss.total), int(loss.tokens), float(loss.parts["mae"])) == (0.5 + 1.5 + 1.0, 3, 3.0)


def test_the_stop_is_learned_at_the_last_position():
    assert find_last(TARGET.keep).tolist() == [[False, True], [True, False]]
    output = torch.zeros(2, 2, 3)
    output[..., :2] = TARGET.data
    loss = regression_loss(output, TARGET, NumberFeedback(2, stops=True))
    assert_close(loss.total, 3 * torch.tensor(2.0).log())
    output[..., 2] = torch.tensor([[-20.0, 20.0], [20.0, 0.0]])
    assert float(regression_loss(output, TARGET, NumberFeedback(2, stops=True)).total) < 1e-6


@pytest.mark.parametrize("name", ["label_smoothing", "confidence_penalty"])
def test_settings_of_tokens_are_refused(name):
    model = nn.Module()
    model.decoder = nn.Module()
    model.decoder.feedback = NumberFeedback(1)
    with pytest.raises(ValueError, match=f"train.{name}=0.1 needs a decoder of tokens"):
        TeacherForcing(replace(Train(), **{name: 0.1}), model)
