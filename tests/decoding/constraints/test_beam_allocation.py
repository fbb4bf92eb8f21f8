import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.special_tokens import EOS
from regard.decoding.beam_state import Candidates
from regard.decoding.constraints.beam_allocation import allocate_banks, select_candidates, suggest_tokens
from regard.decoding.constraints.spelling import Spelling
from regard.decoding.constraints.state import Constraints, Guard


def test_each_bank_gets_an_equal_part_and_the_last_the_rest():
    assert allocate_banks([9, 9, 9], 8) == [2, 2, 4]
    assert allocate_banks([9], 5) == [5]


def test_what_a_bank_cannot_fill_goes_to_those_that_have_written_more():
    assert allocate_banks([9, 9, 0], 6) == [2, 4, 0]
    assert allocate_banks([9, 1, 1], 6) == [4, 1, 1]
    assert allocate_banks([9, 3, 0, 0, 0], 4) == [1, 3, 0, 0, 0]


@given(counts=st.lists(st.integers(0, 9), min_size=1, max_size=6), beams=st.integers(1, 12))
def test_no_place_is_wasted_and_the_furthest_is_never_dropped(counts, beams):
    found = allocate_banks(counts, beams)
    assert sum(found) == min(beams, sum(counts))
    assert all(0 <= each <= count for each, count in zip(found, counts, strict=True))
    furthest = max((bank for bank, count in enumerate(counts) if count), default=None)
    assert furthest is None or found[furthest] > 0


def test_the_best_of_each_bank_go_on_in_order_of_their_scores():
    scores = torch.tensor([[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0]], dtype=torch.float64)
    tokens = torch.tensor([[4, EOS, 5, 6, 7, 3]])
    ahead = Candidates(scores, scores.float(), tokens, torch.zeros(1, 6, dtype=torch.long))
    grown = select_candidates(ahead, torch.tensor([[1, 0, 1, 1, 0, 0]]), [1], beams=4)
    assert grown.tokens.tolist() == [[4, 5, 7, 3]]
    assert grown.scores.tolist() == [[-1.0, -3.0, -5.0, -6.0]]


def test_a_token_is_tried_once():
    guard = Guard([Constraints(include=((5,), (5, 6)))], Spelling.numbers(8))
    logs = torch.tensor([[0.1, 0.1, 0.1, 0.1, 0.3, 0.2, 0.05, 0.05]]).log()
    values, tokens = suggest_tokens(logs, guard, guard.start([0]), beams=1)
    assert tokens.tolist() == [[4, 5, 5, 5]]
    assert values[0, 2:].tolist() == [float("-inf")] * 2
