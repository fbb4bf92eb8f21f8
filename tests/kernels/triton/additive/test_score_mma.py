from dataclasses import replace

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import launch_scores, operator


def drawn(queries, keys, hidden, large=1.0, dtype=torch.bfloat16):
    torch.manual_seed(0)
    query, key = large * torch.randn(2, 1, queries, hidden), large * torch.randn(2, 1, keys, hidden)
    return query.bfloat16(), key.bfloat16(), torch.randn(1, hidden).to(dtype)


def formula(query, key, v):
    return torch.tanh(query.double()[:, :, :, None] + key.double()[:, :, None]) @ v[0].double()


@pytest.mark.parametrize("hidden", [1, 4, 7, 16])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["v of words", "v of numbers"])
def test_scores_are_those_of_the_formula_whatever_the_units(hidden, dtype):
    query, key, v = drawn(19, 40, hidden, dtype=dtype)
    found = operator.attention(query, key, torch.eye(40).expand(2, 1, 40, 40), v, dtype=torch.float32)[0]
    torch.testing.assert_close(found.double(), formula(query, key, v).softmax(-1), rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize("large", [1e-3, 0.05, 2.0, 8.0, 30.0])
def test_small_and_large_numbers_are_as_close_as_others(large):
    query, key, v = drawn(19, 23, 8, large)
    eye = torch.eye(23).expand(2, 1, 23, 23)
    expected = formula(query, key, v).softmax(-1)
    found = operator.attention(query, key, eye, v, dtype=torch.float32)[0]
    assert (found - expected).abs().max() < 1e-6 + 1e-4 * (expected - 1 / 23).abs().max()


def test_what_is_no_number_stays_with_its_key():
    query, key, v = drawn(5, 9, 3)
    key[:, :, 4] = float("nan")
    found = operator.attention(query, key, torch.eye(9).expand(2, 1, 9, 9), v, dtype=torch.float32, weights=torch.float32)
    assert found[1].isnan().all()  # a softmax over it has no number left, as PyTorch's has not
    scores = operator.scores(query, key, v)
    assert scores[..., 4].isnan().all()
    assert scores[..., :4].isfinite().all()


def test_it_is_taken_for_many_queries_in_bfloat16_alone(monkeypatch):
    seen, began = [], launch_scores.launch_cached

    def start(program, grid, given, **told):
        seen.append(given["FOURS"])
        began(program, grid, given, **told)

    monkeypatch.setattr(launch_scores, "launch_cached", start)
    query, key, v = drawn(5, 9, 3)
    for dtype, least in ((torch.bfloat16, 5), (torch.bfloat16, 6), (torch.float16, 5), (torch.float32, 5)):
        monkeypatch.setattr(operator, "TILES", replace(operator.TILES, four_least=least))
        operator.scores(query.to(dtype), key.to(dtype), v.to(dtype))
    assert seen == [True, False, False, False]
