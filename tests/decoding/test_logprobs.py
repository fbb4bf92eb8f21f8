import math

import pytest
import torch

from regard.data.special_tokens import BOS, EOS, PAD, UNK
from regard.decoding.logprobs import UndistributedError, compute_logprobs, mask_special_tokens, no_token_error
from regard.errors import DataError


def test_it_is_the_log_of_the_softmax():
    logs = compute_logprobs(torch.tensor([[1.0, 3.0]]).log())
    assert logs[0].tolist() == pytest.approx([math.log(0.25), math.log(0.75)])


def test_half_precision_becomes_single_before_the_sum():
    output = torch.randn(3, 50).bfloat16()
    torch.testing.assert_close(compute_logprobs(output), output.float().log_softmax(-1), rtol=0, atol=0)


def test_double_precision_stays():
    assert compute_logprobs(torch.zeros(1, 5, dtype=torch.float64)).dtype == torch.float64


def test_a_token_of_probability_zero_is_no_error():
    assert compute_logprobs(torch.tensor([[0.0, -math.inf]])).tolist() == [[0.0, -math.inf]]


@pytest.mark.parametrize("row", [[math.nan, 0.0], [0.0, math.nan], [0.0, math.inf], [math.inf, 0.0], [-math.inf] * 2])
def test_a_row_without_a_distribution_is_an_error(row):
    with pytest.raises(ValueError, match="decoding needs an output that gives some token a probability"):
        compute_logprobs(torch.tensor([[0.0, 0.0], row]))


def test_no_target_holds_pad_or_bos():
    logs = mask_special_tokens(torch.full((2, 6), -1.0))
    assert logs[:, [PAD, BOS]].eq(-math.inf).all()
    assert logs[:, [EOS, UNK, 4, 5]].eq(-1.0).all()


def test_unknown_tokens_can_be_forbidden():
    assert mask_special_tokens(torch.zeros(1, 6), unknown=False)[0].tolist() == [
        -math.inf,
        -math.inf,
        0.0,
        -math.inf,
        0.0,
        0.0,
    ]


def test_forbidding_leaves_the_original_as_it_was():
    logs = torch.zeros(1, 6)
    mask_special_tokens(logs)
    assert logs.eq(0).all()


def test_being_stuck_says_where_and_what_to_do():
    with pytest.raises(ValueError, match=r"a possible token at step 3, and all are forbidden.*allow unknown tokens"):
        raise no_token_error(3)


def test_a_row_without_a_distribution_is_an_error_of_the_data():
    with pytest.raises(UndistributedError) as found:
        compute_logprobs(torch.tensor([[math.nan, 0.0]]))
    assert isinstance(found.value, DataError)
