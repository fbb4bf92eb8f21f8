import math
import re

import pytest
import torch

from regard.attention import attend, statistics
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.padding import Padding
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.statistics import check_names, measure, sweep
from regard.attention.types import Request

ALL = ("entropy", "max", "argmax", "mean_position", "spread", "received", "uniform", "top_2")

WEIGHTS = torch.tensor([[[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]]])
LOWER = torch.ones(1, 1, 3, 3, dtype=torch.bool).tril()


def found(name: str, weights: torch.Tensor = WEIGHTS, allowed: torch.Tensor | None = None) -> torch.Tensor:
    return measure(weights, allowed, (name,))[name]


def test_entropy_is_zero_for_one_key_and_its_logarithm_for_many():
    # 2 · ¼ log 4 + ½ log 2 = 1.5 log 2
    expected = torch.tensor([0.0, math.log(2), 1.5 * math.log(2)])
    torch.testing.assert_close(found("entropy")[0, 0], expected)
    torch.testing.assert_close(found("entropy", torch.full((1, 1, 1, 7), 1 / 7)).flatten(), torch.tensor([math.log(7)]))


def test_the_largest_weight_and_its_key():
    assert found("max")[0, 0].tolist() == [1.0, 0.5, 0.5]
    assert found("argmax")[0, 0].tolist()[::2] == [0, 2]


def test_the_mean_position_and_the_spread_around_it():
    # ½·0 + ½·1 = ½, and ¼·0 + ¼·1 + ½·2 = 1¼ with a variance of ¼·25/16 + ¼·1/16 + ½·9/16 = 11/16
    torch.testing.assert_close(found("mean_position")[0, 0], torch.tensor([0.0, 0.5, 1.25]))
    torch.testing.assert_close(found("spread")[0, 0], torch.tensor([0.0, 0.5, math.sqrt(11) / 4]))


def test_received_is_what_each_key_gets_from_all_queries():
    assert found("received")[0, 0].tolist() == [1.75, 0.75, 0.5]


def test_when_all_is_allowed_an_even_look_gives_every_key_queries_over_keys():
    assert found("uniform", torch.zeros(1, 1, 6, 4))[0, 0].tolist() == [1.5, 1.5, 1.5, 1.5]


def test_when_the_scope_is_causal_an_even_look_gives_differences_of_harmonic_numbers():
    # H_3 - H_0 = 1 + ½ + ⅓, H_3 - H_1 = ½ + ⅓, H_3 - H_2 = ⅓
    torch.testing.assert_close(found("uniform", allowed=LOWER)[0, 0], torch.tensor([11 / 6, 5 / 6, 1 / 3]))


def test_a_query_that_sees_nothing_adds_nothing_to_the_even_look():
    allowed = torch.tensor([[[[True, True], [False, False]]]])
    assert found("uniform", torch.zeros(1, 1, 2, 2), allowed)[0, 0].tolist() == [0.5, 0.5]


def test_the_even_look_has_a_number_for_every_row_and_head():
    assert found("uniform", torch.zeros(2, 4, 3, 3), LOWER).shape == (2, 4, 3)
    assert found("uniform", torch.zeros(2, 4, 3, 3)).shape == (2, 4, 3)


def test_the_best_keys_come_with_their_weights():
    best = measure(torch.tensor([[[[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]]]]), None, ("top_2",))
    torch.testing.assert_close(best["top_2"][0, 0], torch.tensor([[0.6, 0.3], [0.5, 0.3]]))
    assert best["top_2_keys"][0, 0].tolist() == [[1, 2], [0, 2]]


def test_there_are_no_more_best_keys_than_keys():
    best = measure(WEIGHTS, None, ("top_10",))
    assert best["top_10"].shape == best["top_10_keys"].shape == (1, 1, 3, 3)


def test_a_query_that_reads_nothing_gives_zeros():
    for name, number in measure(torch.zeros(1, 1, 2, 3), None, ("entropy", "max", "mean_position", "spread")).items():
        assert number.flatten().tolist() == [0.0, 0.0], name


def test_weights_that_do_not_sum_to_one_count_by_their_share():
    weights = torch.tensor([[[[2.0, -2.0]]]])
    assert found("entropy", weights).item() == pytest.approx(math.log(2))
    assert found("mean_position", weights).item() == 0.5
    assert found("received", weights).flatten().tolist() == [2.0, -2.0]


def test_statistics_carry_no_gradient():
    data = torch.randn(1, 1, 3, 4, requires_grad=True)
    for impl in ("reference", "fused"):
        numbers = attend(data, data, data, statistics=ALL, impl=impl).statistics
        assert not any(number.requires_grad for number in numbers.values())


def test_the_functions_themselves_are_differentiable():
    weights = torch.tensor([[[[0.75, 0.25]]]], requires_grad=True)
    statistics.entropy(weights).sum().backward()
    assert weights.grad.abs().max() > 0


@pytest.mark.parametrize("block", [1, 12, 1 << 22])
@pytest.mark.parametrize("offset", [0, 4, torch.tensor([1, 3])], ids=["0", "4", "per row"])
def test_a_sweep_in_small_blocks_equals_the_measure_of_the_whole(monkeypatch, block, offset):
    monkeypatch.setattr(statistics, "BLOCK", block)
    query, key = torch.randn(2, 4, 5, 3), torch.randn(2, 2, 9, 3)
    scope = Causal() & Padding.from_lengths(torch.tensor([9, 6]))
    request = Request(query, key, key, ScaledDot(), Softmax(), scope, 0.0, offset, False, ALL)
    weights = Softmax()(ScaledDot()(query, key.repeat_interleave(2, dim=1)), request.allowed)
    expected = measure(weights, request.allowed, ALL)
    swept = sweep(request)
    assert swept.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(swept[name], expected[name], msg=name)


def test_the_even_look_of_a_sweep_adds_up_where_everything_is_allowed(monkeypatch):
    monkeypatch.setattr(statistics, "BLOCK", 1)
    data = torch.randn(1, 1, 6, 3)
    request = Request(
        data, data[:, :, :4], data[:, :, :4], ScaledDot(), Softmax(), Everywhere(), 0.0, 0, False, ("uniform",)
    )
    torch.testing.assert_close(sweep(request)["uniform"], torch.full((1, 1, 4), 1.5))


def test_a_sweep_holds_the_weights_of_a_few_queries_at_a_time(monkeypatch):
    monkeypatch.setattr(statistics, "BLOCK", 2 * 9)
    sizes = []

    class Watched(Softmax):
        def __call__(self, scores, allowed=None):
            sizes.append(scores.shape[2])
            return super().__call__(scores, allowed)

    query, key = torch.randn(1, 1, 5, 3), torch.randn(1, 1, 9, 3)
    sweep(Request(query, key, key, ScaledDot(), Watched(), Everywhere(), 0.0, 0, False, ("entropy",)))
    assert sizes == [2, 2, 1]


def test_nothing_is_swept_where_nothing_is_asked():
    data = torch.randn(1, 1, 2, 3)
    assert sweep(Request(data, data, data, ScaledDot(), Softmax(), Everywhere(), 0.0, 0, False, ())) == {}


@pytest.mark.parametrize("name", ["surprise", "top_0", "top_", "top_3_keys", "Entropy"])
def test_an_unknown_statistic_is_refused(name):
    text = (
        f"there is no statistic {name!r}; there are entropy, max, argmax, mean_position, spread, received, uniform, "
        "and top_3 for the best three"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        check_names((name,))


def test_known_statistics_pass():
    check_names((*ALL, "top_1", "top_25"))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_positions_of_a_long_memory_are_exact_in_half_precision(dtype):
    weights = torch.zeros(1, 1, 1, 4000, dtype=dtype)
    weights[..., [1001, 3001]] = 0.5
    found = measure(weights, None, ("mean_position", "spread"))
    assert found["mean_position"].item() == 2001
    assert found["spread"].item() == 1000


@pytest.mark.unhooked
def test_one_name_needs_a_comma():
    with pytest.raises(ValueError, match=r"statistics needs a tuple of names, got a text; write \('entropy',\)"):
        check_names("entropy")
