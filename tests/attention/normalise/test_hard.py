import math

import pytest
import torch

from regard import registry
from regard.attention import Attention, attend
from regard.attention.normalise.hard import Hard, sample_gumbel, select_one_hot
from regard.attention.scope.padding import Padding

QUARTERS = [0.0, math.log(3.0)]  # softmax: 1/4, 3/4


def row(*scores: float) -> torch.Tensor:
    return torch.tensor(scores)[None, None, None]


def test_in_evaluation_the_first_of_the_best_gets_everything():
    weights = Hard().eval()(row(1.0, 3.0, 3.0, -2.0))
    assert weights.flatten().tolist() == [0, 1, 0, 0]


def test_evaluation_draws_nothing():
    before = torch.get_rng_state()
    Hard().eval()(torch.zeros(1, 1, 4, 3))
    assert torch.equal(before, torch.get_rng_state())


def test_while_training_keys_are_drawn_as_often_as_softmax_says():
    draws = 20_000
    weights, _ = Hard()(row(*QUARTERS).expand(1, 1, draws, 2))
    assert ((weights == 0) | (weights == 1)).all()
    assert (weights.sum(-1) == 1).all()
    error = math.sqrt(0.25 * 0.75 / draws)
    assert abs(weights[..., 1].mean().item() - 0.75) < 4 * error


def test_what_was_drawn_comes_with_its_log_probability_and_the_entropy():
    weights, sampled = Hard()(row(*QUARTERS).expand(1, 1, 50, 2))
    share = torch.tensor([0.25, 0.75])
    torch.testing.assert_close(sampled.log_probability, weights @ share.log())
    torch.testing.assert_close(sampled.entropy, torch.full((1, 1, 50), 0.25 * math.log(4) + 0.75 * math.log(4 / 3)))
    assert {0.0, 1.0} == set(weights[..., 0].flatten().tolist())  # both were seen


def test_the_log_probability_and_the_entropy_teach_the_scores_and_the_weights_do_not():
    scores = row(*QUARTERS).requires_grad_()
    weights, sampled = Hard()(scores)
    assert not weights.requires_grad
    (slope,) = torch.autograd.grad(sampled.log_probability.sum(), scores, retain_graph=True)
    torch.testing.assert_close(slope, weights - row(0.25, 0.75))  # one_hot - p
    (slope,) = torch.autograd.grad(sampled.entropy.sum(), scores)
    rise = 0.25 * 0.75 * math.log(3.0)  # dH / ds_k = -p_k (log p_k + H)
    torch.testing.assert_close(slope, row(rise, -rise))


def test_a_key_that_is_not_allowed_is_never_drawn_and_might_as_well_not_exist():
    allowed = torch.tensor([[[[True, False, True]]]])
    scores = row(0.0, 50.0, math.log(3.0)).expand(1, 1, 200, 3).clone().requires_grad_()
    weights, sampled = Hard()(scores, allowed)
    assert not weights[..., 1].any()
    torch.testing.assert_close(sampled.entropy, torch.full((1, 1, 200), 0.25 * math.log(4) + 0.75 * math.log(4 / 3)))
    (sampled.log_probability.sum() + sampled.entropy.sum()).backward()
    assert scores.grad.isfinite().all()
    assert not scores.grad[..., 1].any()


def test_a_query_that_may_see_nothing_draws_nothing_and_learns_nothing():
    allowed = torch.tensor([[[[False, False], [True, True]]]])
    scores = row(*QUARTERS).expand(1, 1, 2, 2).clone().requires_grad_()
    weights, sampled = Hard()(scores, allowed)
    assert weights[0, 0].sum(-1).tolist() == [0, 1]
    assert sampled.log_probability[0, 0, 0] == sampled.entropy[0, 0, 0] == 0
    (sampled.log_probability.sum() + sampled.entropy.sum()).backward()
    assert not scores.grad[0, 0, 0].any()
    assert scores.grad[0, 0, 1].any()
    assert not Hard().eval()(scores, allowed)[0, 0, 0].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_weights_keep_the_precision_and_loud_scores_stay_finite(dtype):
    scores = torch.tensor([1e4, -1e4, 9e3], dtype=dtype)[None, None, None].requires_grad_()
    weights, sampled = Hard()(scores)
    assert (weights.dtype, sampled.entropy.dtype) == (dtype, torch.promote_types(dtype, torch.float32))
    assert weights.flatten().tolist() == [1, 0, 0]
    (sampled.log_probability + sampled.entropy).sum().backward()
    assert scores.grad.isfinite().all()


def test_without_keys_nothing_is_drawn():
    weights, sampled = Hard()(torch.zeros(2, 1, 3, 0))
    assert weights.shape == (2, 1, 3, 0)
    assert not sampled.entropy.any()
    assert select_one_hot(torch.zeros(2, 1, 3, 0), None).shape == (2, 1, 3, 0)


def test_equal_seeds_draw_alike():
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append(Hard()(torch.zeros(1, 1, 50, 4))[0])
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_the_noise_has_the_mean_and_spread_of_a_gumbel_distribution():
    drawn = sample_gumbel(torch.zeros(200_000, dtype=torch.float64))
    assert drawn.mean().item() == pytest.approx(0.57722, abs=4 * 1.2825 / math.sqrt(200_000))  # Euler's constant
    assert drawn.std().item() == pytest.approx(math.pi / math.sqrt(6), rel=0.02)


def test_attend_reads_the_one_value_that_was_drawn_and_hands_on_its_probability():
    query, key, value = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 6, 4), torch.randn(2, 3, 6, 2)
    scope = Padding.from_lengths(torch.tensor([6, 4]), 6)
    attended = attend(query, key, value, normalise=Hard(), scope=scope, weights=True)
    torch.testing.assert_close(
        attended.context, value.gather(2, attended.weights.argmax(-1, keepdim=True).expand(-1, -1, -1, 2))
    )
    assert attended.sampled.log_probability.shape == (2, 3, 5)
    assert not attended.weights[1, ..., 4:].any()


def test_a_module_draws_while_it_trains_and_not_afterwards():
    attention = Attention(4, score="additive", normalise="hard")
    memory = attention.remember(torch.randn(2, 6, 4))
    assert attention(torch.randn(2, 3, 4), memory).sampled is not None
    assert attention.eval()(torch.randn(2, 3, 4), memory).sampled is None


@pytest.mark.parametrize("kind", registry.every("normalise"), ids=lambda kind: kind.__name__)
def test_a_normaliser_says_that_it_is_random_where_two_calls_differ(kind):
    made, scores = kind(), torch.rand(1, 1, 40, 6)
    calls = [made(scores, None) for _ in range(2)]
    one, other = (each[0] if isinstance(each, tuple) else each for each in calls)
    assert torch.equal(one, other) != getattr(made, "random", False)


def test_a_share_of_the_rows_is_read_by_the_softmax_and_owes_nothing_to_a_draw():
    rows = 20_000
    weights, sampled = Hard(soft=0.25)(row(*QUARTERS).expand(rows, 1, 2, 2))
    softly = ((weights > 0) & (weights < 1)).all(-1)
    torch.testing.assert_close(weights[softly], torch.tensor([0.25, 0.75]).expand(int(softly.sum()), 2))
    assert torch.equal(softly[..., 0], softly[..., 1])  # all queries of a row, or none
    assert abs(softly.float().mean().item() - 0.25) < 4 * math.sqrt(0.25 * 0.75 / rows)
    drawn = weights[~softly]
    assert ((drawn == 0) | (drawn == 1)).all()
    assert not sampled.log_probability[softly].any()
    torch.testing.assert_close(sampled.log_probability[~softly], drawn @ torch.tensor([0.25, 0.75]).log())
    torch.testing.assert_close(sampled.entropy, torch.full((rows, 1, 2), 0.25 * math.log(4) + 0.75 * math.log(4 / 3)))


def test_a_gradient_passes_through_looks_that_are_not_drawn():
    scores = row(*QUARTERS).requires_grad_()
    weights, sampled = Hard(soft=1.0)(scores)
    (slope,) = torch.autograd.grad(weights[..., 1].sum(), scores, retain_graph=True)
    torch.testing.assert_close(slope, row(-0.25 * 0.75, 0.75 * 0.25))  # that of softmax
    assert not torch.autograd.grad(sampled.log_probability.sum(), scores)[0].any()
    assert Hard(soft=1.0).eval()(scores).flatten().tolist() == [0, 1]
    assert Hard(soft=1.0)(torch.zeros(2, 1, 3, 0))[0].shape == (2, 1, 3, 0)


def test_soft_looks_need_to_be_a_share():
    assert str(Hard(soft=0.5)) == "Hard(soft=0.5)"
    with pytest.raises(ValueError, match=r"Hard needs a fraction of softmax rows from 0 to 1, got 1\.5"):
        Hard(soft=1.5)
