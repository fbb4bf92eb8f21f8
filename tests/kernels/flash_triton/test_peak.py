import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.flash_triton import arguments, launch
from regard.kernels.flash_triton.launch import Asked

PEAK = Asked(peak=True)


@pytest.fixture(params=["tf32", "ieee"], ids=["four hands", "one"], autouse=True)
def hands(request, monkeypatch):
    """As where tensor cores multiply, and where they do not: the interpreter multiplies alike."""
    monkeypatch.setattr(arguments, "precision", lambda dtype: request.param)


def peak(scores: torch.Tensor, formula, **options) -> int:
    """The key that a query of 1 takes for the best of these."""
    plan = formula.plain._replace(**{"tiles": [16, 64, 4, 1], "scale": 1.0, **options})
    keys = scores.view(1, 1, -1, 1)
    return launch.forward(torch.ones(1, 1, 1, 1), keys, keys, plan, PEAK).argmax.item()


@pytest.mark.parametrize("scale", [2**n / 1.4426950408889634 for n in (-9, 0, 5)])  # the interpreter rounds twice in an fma
@pytest.mark.parametrize("top", [1e-3, 0.9999, 1.0, 2.0, 63.9, 4e4, -0.3, -1.0, -4e4])
def test_scores_that_differ_in_their_last_bit_are_told_apart(top, scale, formula):
    lower = torch.tensor(top).nextafter(torch.tensor(-torch.inf))
    for place in (1, 2, 9, 31, 62):
        scores = torch.full((64,), lower.item())
        scores[place] = top
        assert peak(scores, formula, scale=scale) == place


def test_of_scores_that_are_nothing_the_sign_does_not_matter(formula):
    assert peak(torch.tensor([-1.0, -0.0, 0.0] + [-0.0, 0.0] * 20), formula) == 1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("place", [0, 3, 40])
def test_where_the_highest_score_is_no_number_the_first_key_is_named(place, formula):
    scores = torch.zeros(70)
    scores[place] = torch.inf
    assert peak(scores, formula) == 0
