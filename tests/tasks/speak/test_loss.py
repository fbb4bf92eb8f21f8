import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention import Attended
from regard.config import Train
from regard.data.batch import Batch, Padded, pad
from regard.losses.types import Progress
from regard.tasks.speak.loss import SpeakLoss, mean_absolute_error
from regard.tasks.speak.model import Spoken


class Fixed:
    """A model whose frames are wrong by 1 before the postnet and right behind it, and whose stops are all of even odds."""

    reduction = 2

    def __call__(self, source, target):
        frames = torch.nn.functional.pad(target.data, (0, 0, 0, 1))
        keep = torch.tensor([[True] * 4, [True] * 2 + [False] * 2])
        weights = torch.zeros(2, 1, 2, 3)
        weights[:, :, 0, 0] = weights[:, :, 1, 2] = 1.0
        attended = {"decoder.cross": Attended(torch.zeros(1), weights)}
        return Spoken(frames + 1, frames, torch.zeros(2, 2), keep, attended)


def batch():
    keep = torch.tensor([[True, True, True], [True, True, False]])
    return Batch(pad([[4, 5, 2], [4, 2]]), Padded(torch.randn(2, 3, 4), keep))


@pytest.mark.parametrize("guided", [0.0, 2.0])
def test_the_loss_is_a_sum_over_frames_that_can_be_worked_by_hand(guided):
    loss = SpeakLoss(Train(guided_attention=guided))(Fixed(), batch(), Progress(0, 1))
    assert loss.tokens == 5
    # 5 frames are wrong by 1 once: L1 5 and squares 5; each of three steps costs log 2, the two last ones five times
    stop = 2 * (1 + 5 + 5) * math.log(2)
    # the second step of the first row is at s / S = 2 / 3, t / T = 1 / 2
    off = 1 - math.exp(-((2 / 3 - 1 / 2) ** 2) / (2 * 0.2**2))
    assert_close(loss.total, torch.tensor(5 + 5 + stop + guided * 2 * off), atol=1e-4, rtol=1e-5)
    assert_close(loss.parts["l1"], torch.tensor(2.5))


def test_the_error_of_a_row_is_a_mean_over_its_frames():
    target, keep = torch.zeros(2, 3, 4), torch.tensor([[True, True, True], [True, False, False]])
    predicted = torch.ones(2, 4, 4)
    predicted[1] = 3.0
    assert mean_absolute_error(predicted, target, keep) == [1.0, 3.0]
