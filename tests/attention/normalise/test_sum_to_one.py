import torch

from regard.attention.normalise.sum_to_one import SumToOne


def shares(*scores: float, allowed: list[bool] | None = None) -> list[float]:
    mask = None if allowed is None else torch.tensor(allowed)[None, None, None]
    return SumToOne()(torch.tensor(scores)[None, None, None], mask).flatten().tolist()


def test_shares_are_in_proportion_to_the_scores():
    assert shares(1.0, 3.0) == [0.25, 0.75]


def test_a_score_below_zero_counts_as_zero():
    assert shares(1.0, 3.0, -5.0) == [0.25, 0.75, 0.0]


def test_a_query_that_fits_no_key_reads_nothing():
    assert shares(-1.0, -3.0) == [0.0, 0.0]
    assert shares(0.0, 0.0) == [0.0, 0.0]


def test_what_is_not_allowed_is_left_out():
    assert shares(1.0, 3.0, 100.0, allowed=[True, True, False]) == [0.25, 0.75, 0.0]
    assert shares(1.0, 3.0, 100.0, allowed=[False, False, False]) == [0.0, 0.0, 0.0]


def test_the_sum_does_not_overflow_in_half_precision():
    weights = SumToOne()(torch.full((1, 1, 1, 4), 6e4, dtype=torch.float16))
    assert weights.flatten().tolist() == [0.25, 0.25, 0.25, 0.25]


def test_gradients_stay_finite_where_nothing_is_read():
    scores = torch.tensor([[[[-1.0, -3.0]]]], requires_grad=True)
    SumToOne()(scores).sum().backward()
    assert scores.grad.flatten().tolist() == [0.0, 0.0]


def test_scores_that_are_never_positive_are_refused_with_a_reason():
    reason = "its scores are never positive, so no key would get a share; use Softmax or Sparsemax"
    assert SumToOne().refuses(0.0) == reason
    assert SumToOne().refuses(1.0) is None
