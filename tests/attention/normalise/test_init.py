import math

import torch

from regard.attention.normalise import hide, silence, visible, widen

SCORES = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
ALLOWED = torch.tensor([[[[True, False], [False, False]]]])


def test_hide_puts_minus_infinity_where_a_key_is_not_allowed_and_leaves_blind_queries_alone():
    assert hide(SCORES, ALLOWED)[0, 0].tolist() == [[1.0, -math.inf], [3.0, 4.0]]


def test_silence_puts_zero_where_a_key_is_not_allowed():
    assert silence(SCORES, ALLOWED)[0, 0].tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_silence_lets_no_gradient_through_where_a_key_is_not_allowed():
    scores = SCORES.clone().requires_grad_()
    silence(scores, ALLOWED).sum().backward()
    assert scores.grad[0, 0].tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_visible_gives_a_blind_query_its_whole_row():
    assert visible(ALLOWED)[0, 0].tolist() == [[True, False], [True, True]]


def test_nothing_happens_where_everything_is_allowed():
    assert hide(SCORES, None) is SCORES
    assert silence(SCORES, None) is SCORES


def test_half_precision_is_widened_and_the_rest_kept():
    for given, found in (
        (torch.float16, torch.float32),
        (torch.bfloat16, torch.float32),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
    ):
        assert widen(SCORES.to(given)).dtype == found
