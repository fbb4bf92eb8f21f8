import pytest
import torch

from regard.decoding.engines.eager.topk import BLOCKS, TopTokens
from regard.decoding.logprobs import compute_logprobs, mask_special_tokens
from regard.decoding.topk import select_highest


@pytest.mark.parametrize("vocabulary", [7, 4 * BLOCKS - 1, 4 * BLOCKS, 1000, 1013])
@pytest.mark.parametrize("rows", [1, 32, 70])
@pytest.mark.parametrize("coarse", [False, True])
def test_it_is_the_plain_composition(vocabulary, rows, coarse):
    logits = torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(rows)) * 3
    logits = logits.round() if coarse else logits  # many ties, also across the last place
    values, tokens = TopTokens(6)(logits)
    expected, places = select_highest(mask_special_tokens(compute_logprobs(logits)), 6)
    assert torch.equal(values, expected)
    assert torch.equal(tokens[values > -torch.inf], places[values > -torch.inf])


def test_unknown_tokens_may_be_forbidden():
    logits = torch.zeros(1, 500)
    logits[0, 3], logits[0, 9] = 9.0, 5.0
    assert TopTokens(1, unknown=False)(logits)[1].item() == 9
    assert TopTokens(1)(logits)[1].item() == 3


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_what_is_no_distribution_is_an_error(bad):
    logits = torch.zeros(40, 500)
    logits[37, 5] = bad
    with pytest.raises(ValueError, match="decoding needs an output that gives some token a probability"):
        TopTokens(2)(logits)


def test_double_precision_stays_and_half_becomes_single():
    logits = torch.randn(3, 500)
    assert TopTokens(2)(logits.double())[0].dtype == torch.float64
    assert TopTokens(2)(logits.half())[0].dtype == torch.float32
