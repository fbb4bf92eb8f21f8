import math

import torch

from regard.data.special_tokens import EOS
from regard.decoding.backpointers import SearchStep
from regard.decoding.beam_state import ActiveBeam, Candidates

LOW = -math.inf


def active() -> ActiveBeam:
    """Two sentences, two hypotheses each; the second of the second does not exist."""
    return ActiveBeam(
        sentences=[3, 8],
        scores=torch.tensor([[-1.0, -2.0], [-1.0, LOW]], dtype=torch.float64),
        input=SearchStep([4, 5, 6, 7], [-1.0, -2.0, -1.0, LOW], [0, 0, 1, 1]),
        memory=torch.tensor([[30.0], [80.0]]),
        state=torch.tensor([[0.0], [1.0], [2.0], [3.0]]),
    )


def logs() -> torch.Tensor:
    rows = [
        [LOW, LOW, -0.5, LOW, -3.0],
        [LOW, LOW, -9.0, LOW, -1.0],
        [LOW, LOW, -1.0, -2.0, -0.5],
        [LOW, LOW, -0.1, -0.1, -0.1],
    ]
    return torch.tensor(rows)


def test_the_best_ways_on_come_first_with_the_rows_they_grew_from():
    ahead = active().select_candidates(logs(), beams=2)
    assert ahead.scores.tolist() == [[-1.5, -3.0, -4.0, -11.0], [-1.5, -2.0, -3.0, LOW]]
    assert ahead.tokens[0].tolist() == [2, 4, 4, 2]
    assert ahead.tokens[1, :3].tolist() == [4, 2, 3]
    assert ahead.rows[0].tolist() == [0, 1, 0, 1]
    assert ahead.rows[1, :3].tolist() == [2, 2, 2]
    assert ahead.logprobs[0].tolist() == [-0.5, -1.0, -3.0, -9.0]


def test_eos_ends_a_hypothesis_and_the_others_grow():
    ahead = active().select_candidates(logs(), beams=2)
    assert ahead.ending.tolist() == [[True, False, False, True], [False, True, False, False]]
    grown = ahead.growing(2)
    assert grown.scores.tolist() == [[-3.0, -4.0], [-1.5, -3.0]]
    assert EOS not in grown.tokens


def test_where_all_have_ended_nobody_grows():
    ended = Candidates(torch.zeros(1, 2), torch.zeros(1, 2), torch.full((1, 2), EOS), torch.zeros(1, 2, dtype=torch.long))
    assert ended.growing(2).scores.tolist() == [[LOW, LOW]]


def test_those_who_stay_take_their_rows_of_the_state_and_their_memory_along():
    grown = active().select_candidates(logs(), beams=2).growing(2)
    moved = active().move(grown, [0], active().state)
    assert moved.sentences == [3]
    assert moved.memory.tolist() == [[30.0]]
    assert moved.state.tolist() == [[1.0], [0.0]]
    assert moved.input == ([4, 4], [-1.0, -3.0], [1, 0])


def test_a_memory_that_all_still_need_is_not_copied():
    before = active()
    after = before.move(before.select_candidates(logs(), beams=2).growing(2), [0, 1], before.state)
    assert after.memory is before.memory


def test_the_front_is_as_wide_as_its_widest_sentence():
    before = active()
    ahead = before.select_candidates(logs(), beams=9).growing(9)
    assert before.move(ahead, [0, 1], before.state).width == 2
    assert before.move(ahead, [0, 1], before.state).scores.shape == (2, 2)
