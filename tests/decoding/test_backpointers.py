import torch

from regard.decoding.backpointers import Ending, History, SearchStep, make_empty_hypothesis

MOMENTS = [
    SearchStep([1, 1], [0.0, 0.0], [0, 1]),
    SearchStep([4, 5, 6, 7], [-0.1, -0.2, -0.3, -0.4], [0, 0, 1, 1]),
    SearchStep([8, 9], [-0.5, -0.6], [3, 2]),  # the first sentence has left
]


def history(looks: bool) -> History:
    made = History(torch.zeros(2, 1))
    for time, moment in enumerate(MOMENTS):
        rows = len(moment.tokens)
        made.add(moment, {"a": 10.0 * time + torch.arange(rows).view(rows, 1, 1).float()} if looks else None)
    return made


def test_a_hypothesis_is_read_backwards_from_its_ending():
    found = history(False).backtrace(Ending(1, 2, 0, 2, -0.7, -1.6, -0.53, True), weights=False)
    assert found == ([7, 8, 2], -1.6, -0.53, [-0.4, -0.5, -0.7], True, None, None)


def test_its_weights_are_those_of_the_rows_it_came_through():
    found = history(True).backtrace(Ending(1, 2, 1, 2, -0.7, -1.6, -0.53, True), weights=True)
    assert found.tokens == [6, 9, 2]
    assert found.weights["a"][0, :, 0].tolist() == [1, 12, 21]


def test_an_ending_long_ago_knows_nothing_of_what_came_later():
    found = history(True).backtrace(Ending(0, 0, 0, 2, -0.7, -0.7, -0.7, True), weights=True)
    assert found.tokens == [2]
    assert found.weights["a"].shape == (1, 1, 1)
    assert len(history(True)) == 3


def test_nothing_has_no_tokens_and_never_finished():
    assert make_empty_hypothesis(False) == ([], 0.0, 0.0, [], False, None, None)
    assert make_empty_hypothesis(True).weights == {}
