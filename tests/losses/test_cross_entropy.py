import math

import pytest
import torch

from regard.data.batch import Padded
from regard.losses.cross_entropy import cross_entropy, entropy, likelihood_loss

LOGITS = torch.tensor([[[0.0, 0.0], [0.0, math.log(3.0)], [7.0, -7.0]]])  # p = (1/2, 1/2), (1/4, 3/4), padding
TARGET = Padded(torch.tensor([[0, 1, 0]]), torch.tensor([[True, True, False]]))


def test_cross_entropy_is_a_sum_over_kept_tokens():
    assert cross_entropy(LOGITS, TARGET).item() == pytest.approx(math.log(2) + math.log(4 / 3))


def test_smoothing_spreads_a_share_over_the_vocabulary():
    plain, even = math.log(2) + math.log(4 / 3), math.log(2) + (math.log(4) + math.log(4 / 3)) / 2
    assert cross_entropy(LOGITS, TARGET, 0.1).item() == pytest.approx(0.9 * plain + 0.1 * even)


def test_entropy_counts_kept_tokens_alone():
    assert entropy(LOGITS, TARGET).item() == pytest.approx(math.log(2) + 0.25 * math.log(4) + 0.75 * math.log(4 / 3))


def test_a_padded_position_gets_no_gradient():
    logits = LOGITS.clone()
    logits[0, 2] = 1e30
    logits.requires_grad_()
    loss = likelihood_loss(logits, TARGET)
    loss.total.backward()
    assert loss.total.isfinite()
    assert logits.grad[0, 2].tolist() == [0, 0]


def test_the_confidence_penalty_takes_a_share_of_the_entropy_away():
    loss = likelihood_loss(LOGITS, TARGET, smoothing=0.1, confidence=0.3)
    wanted = cross_entropy(LOGITS, TARGET, 0.1) - 0.3 * entropy(LOGITS, TARGET)
    assert loss.total.item() == pytest.approx(wanted.item())
    assert loss.tokens == 2
    assert loss.parts["nll"].item() == pytest.approx(cross_entropy(LOGITS, TARGET).item())
    assert loss.parts["entropy"].item() == pytest.approx(entropy(LOGITS, TARGET).item())
