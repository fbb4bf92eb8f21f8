import torch

from regard.data.special_tokens import BOS, EOS
from regard.decoding.engines.cuda.greedy import Greedy

CPU = torch.device("cpu")


def turn(choice, number, *logits):
    rows = torch.tensor(logits)
    choice.choose(rows, lambda found: found, torch.tensor([number]), torch.tensor([number]))


def test_the_likeliest_token_is_fed_next_and_scores_add_up():
    choice = Greedy(2, 3, CPU)
    choice.begin()
    assert choice.tokens.tolist() == [BOS, BOS]
    turn(choice, 0, [9.0, 9.0, 0.0, 0.0, 1.0], [9.0, 9.0, 2.0, 0.0, 1.0])
    assert choice.tokens.tolist() == [4, EOS]
    turn(choice, 1, [9.0, 9.0, 0.0, 3.0, 1.0], [9.0, 9.0, 2.0, 0.0, 1.0])
    scores, logprobs, tokens, rows = choice.figures[:2, ..., 0].unbind(1)
    assert tokens.tolist() == [[4, EOS], [3, EOS]]
    assert not rows.any()
    torch.testing.assert_close(scores, logprobs.cumsum(0))
    assert choice.fetch(2)[1].tolist() == [[0, 1], [0, 1]]


def test_who_has_no_way_on_is_done():
    choice = Greedy(1, 1, CPU)
    turn(choice, 0, [1.0, 1.0, *[-torch.inf] * 3])
    assert choice.fetch(1)[1].tolist() == [[1]]


def test_another_goes_on_from_where_it_was():
    choice, other = Greedy(3, 1, CPU), Greedy(2, 1, CPU)
    choice.tokens.copy_(torch.tensor([5, 6, 7]))
    choice.scores.copy_(torch.tensor([[-1.0], [-2.0], [-3.0]]))
    other.take(choice, torch.tensor([2, 0]))
    assert other.tokens.tolist() == [7, 5]
    assert other.scores.tolist() == [[-3.0], [-1.0]]
