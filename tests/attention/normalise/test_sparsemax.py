import torch

from regard.attention.normalise.sparsemax import Sparsemax


def shares(*scores: float, allowed: list[bool] | None = None) -> torch.Tensor:
    mask = None if allowed is None else torch.tensor(allowed)[None, None, None]
    return Sparsemax()(torch.tensor(scores)[None, None, None], mask).flatten()


def test_a_key_far_ahead_takes_it_all():
    # τ = 3 - 1 = 2, and neither 1 nor 0.1 is above it
    assert shares(3.0, 1.0, 0.1).tolist() == [1.0, 0.0, 0.0]


def test_keys_near_the_best_share_and_the_rest_gets_exactly_zero():
    # τ = (1 + 0.8 - 1) / 2 = 0.4
    found = shares(1.0, 0.8, 0.1)
    torch.testing.assert_close(found, torch.tensor([0.6, 0.4, 0.0]))
    assert found[2] == 0


def test_a_distribution_stays_as_it_is():
    torch.testing.assert_close(shares(0.5, 0.2, 0.3), torch.tensor([0.5, 0.2, 0.3]))


def test_equal_scores_share_equally():
    assert shares(7.0, 7.0, 7.0, 7.0).tolist() == [0.25, 0.25, 0.25, 0.25]


def test_what_is_not_allowed_is_left_out():
    torch.testing.assert_close(
        shares(9.0, 1.0, 0.8, 0.1, allowed=[False, True, True, True]), torch.tensor([0.0, 0.6, 0.4, 0.0])
    )


def test_a_query_that_sees_nothing_gets_zeros():
    assert shares(1.0, 2.0, allowed=[False, False]).tolist() == [0.0, 0.0]


def test_large_scores_are_no_trouble():
    assert shares(1e4, 1e4, -1e4).tolist() == [0.5, 0.5, 0.0]
    half = Sparsemax()(torch.tensor([[[[6e4, 6e4, -6e4]]]], dtype=torch.float16))
    assert half.flatten().tolist() == [0.5, 0.5, 0.0]


def test_the_gradient_is_shared_among_the_support_alone():
    scores = torch.tensor([[[[1.0, 0.8, 0.1]]]], requires_grad=True)
    Sparsemax()(scores)[..., 0].sum().backward()
    # on a support of two, d a_0 / d s = [1 - ½, -½], and nothing beyond it
    torch.testing.assert_close(scores.grad.flatten(), torch.tensor([0.5, -0.5, 0.0]))
