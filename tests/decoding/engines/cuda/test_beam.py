import math

import numpy as np
import pytest
import torch

from regard.data.special_tokens import EOS
from regard.decoding.engines.cuda.beam import LOGPROB, ROW, SCORE, TOKEN, Beam

CPU = torch.device("cpu")


def made(sentences=1, beams=2, best=1, alpha=1.0, longest=8):
    choice = Beam(sentences, beams, best, min(beams + 1, 5), 16, 4, CPU)
    choice.begin(np.array([longest] * sentences), alpha)
    return choice


def turn(choice, number, rows):
    """Probabilities of the tokens from EOS on, one row for each hypothesis."""
    logits = torch.cat((torch.full((len(rows), 2), -math.inf), torch.tensor(rows).log()), 1)
    choice.choose(logits, lambda found: found, torch.tensor([number]), torch.tensor([number]))


def test_two_steps_worked_by_hand():
    choice = made()
    turn(choice, 0, [[0.2, 0.5, 0.3]] * 2)
    assert choice.tokens.tolist() == [3, 4]
    assert choice.parents.tolist() == [[0, 0]]
    assert choice.scores.exp().tolist() == [pytest.approx([0.5, 0.3])]
    turn(choice, 1, [[0.8, 0.15, 0.05], [0.1, 0.9, 0.0]])
    ahead = choice.figures[1, :, 0]
    assert ahead[TOKEN].tolist() == [EOS, 3, 3, EOS]
    assert ahead[ROW].tolist() == [0, 1, 0, 1]
    assert ahead[SCORE].exp().tolist() == pytest.approx([0.4, 0.27, 0.075, 0.03])
    assert ahead[LOGPROB].exp().tolist() == pytest.approx([0.8, 0.9, 0.15, 0.1])
    assert choice.tokens.tolist() == [3, 3]
    assert choice.parents.tolist() == [[1, 0]]
    assert choice.ended.tolist() == [[pytest.approx(math.log(0.4) / 2), -math.inf]]


def test_only_those_among_the_best_end():
    choice = made()
    turn(choice, 0, [[0.2, 0.5, 0.3]] * 2)
    assert choice.ended.tolist() == [[-math.inf] * 2]


def test_a_sentence_is_done_when_nothing_that_grows_can_come_before_what_has_ended():
    choice = made(longest=2, alpha=0.0)
    turn(choice, 0, [[0.7, 0.2, 0.1]] * 2)
    assert choice.fetch(1)[1].tolist() == [[1]]  # 0.2 grows, and becomes no more
    choice = made(longest=100, alpha=1.0)
    turn(choice, 0, [[0.7, 0.2, 0.1]] * 2)
    assert choice.fetch(1)[1].tolist() == [[0]]  # over a hundred tokens its mean may become better


def test_it_is_done_when_as_many_have_ended_as_there_are_beams_and_are_as_good_as_what_grows():
    choice = made(beams=1, best=1, longest=100, alpha=1.0)
    choice.ended.fill_(-1.0)
    turn(choice, 0, [[0.1, 0.2, 0.7]])
    assert choice.fetch(1)[1].tolist() == [[0]]
    choice.ended.fill_(-0.1)
    turn(choice, 0, [[0.1, 0.2, 0.7]])
    assert choice.fetch(1)[1].tolist() == [[1]]


def test_the_host_fetches_a_copy_of_all_that_the_turns_found():
    choice = made(longest=2, alpha=0.0)
    turn(choice, 0, [[0.7, 0.2, 0.1]] * 2)
    figures, done = choice.fetch(1)
    right = choice.figures[:1].clone()
    choice.results.zero_()
    assert torch.equal(figures, right)
    assert done.tolist() == [[1]]


def test_scores_are_divided_by_what_the_last_batch_asked_for():
    choice = made(longest=4, alpha=1.0)
    choice.divide(np.array([9]), 1.0)
    assert choice.longest.tolist() == [[9.0]]
    choice.divide(np.array([9]), 0.5)
    assert choice.longest.tolist() == [[3.0]]
    assert choice.shares[3] == 2.0


def test_another_goes_on_from_where_it_was():
    choice, other = made(sentences=3), made(sentences=2)
    turn(choice, 0, [[0.2, 0.5, 0.3]] * 2 + [[0.5, 0.4, 0.1]] * 2 + [[0.3, 0.3, 0.4]] * 2)
    other.take(choice, torch.tensor([2, 1]))
    assert other.tokens.tolist() == [4, 3, 3, 4]
    assert other.ended.tolist() == choice.ended[[2, 1]].tolist()
    assert other.scores.tolist() == choice.scores[[2, 1]].tolist()
