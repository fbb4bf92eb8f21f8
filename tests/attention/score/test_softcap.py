import math
import re

import pytest
import torch

from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.softcap import Softcap


def test_a_score_is_bent_towards_the_cap():
    query, key = torch.tensor([[[[2.0]]]]), torch.tensor([0.0, 1.0, -3.0]).view(1, 1, 3, 1)
    expected = [0.0, 4 * math.tanh(2 / 4), 4 * math.tanh(-6 / 4)]
    torch.testing.assert_close(Softcap(cap=4.0)(query, key).flatten(), torch.tensor(expected))


def test_small_scores_stay_what_they_are():
    query, key = torch.randn(1, 2, 3, 4) / 10, torch.randn(1, 2, 5, 4)
    torch.testing.assert_close(Softcap()(query, key), ScaledDot()(query, key), rtol=1e-4, atol=1e-5)


def test_no_score_passes_the_cap_and_the_order_stays():
    query, key = torch.full((1, 1, 1, 1), 50.0), torch.linspace(-2, 2, 9).view(1, 1, 9, 1)
    scores = Softcap()(query, key).flatten()
    assert scores.abs().max() < 50
    assert (scores.diff() > 0).all()


def test_the_scale_is_of_the_product():
    query, key = torch.full((1, 1, 1, 4), 1.0), torch.full((1, 1, 1, 4), 1.0)
    assert Softcap(cap=1.0, scale=0.25)(query, key).item() == pytest.approx(math.tanh(1))


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match=re.escape("Softcap needs a cap above 0, got 0.0")):
        Softcap(cap=0.0)
    with pytest.raises(ValueError, match="Softcap needs queries and keys of one size, got 3 and 2"):
        Softcap()(torch.zeros(1, 1, 1, 3), torch.zeros(1, 1, 1, 2))
