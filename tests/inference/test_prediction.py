import torch

from regard.inference.prediction import Prediction


def test_what_was_not_asked_for_is_not_there():
    answer = Prediction("a cat", -0.5, ["1,1"], ["a", "cat"])
    assert (answer.weights, answer.links, answer.grid, answer.boxes) == (None, None, None, None)


def test_the_repr_is_one_line_without_tensors():
    answer = Prediction("a cat", -0.5, ["1,1"], ["a", "cat"])
    assert repr(answer) == "Prediction('a cat', score -0.5000, 1 source and 2 target tokens)"
    full = answer._replace(weights=torch.ones(2, 1), links=[(0, 1)], boxes=[(0.0, 0.0, 1.0, 1.0)] * 2)
    assert repr(full) == (
        "Prediction('a cat', score -0.5000, 1 source and 2 target tokens, weights (2, 1), 1 links, 2 boxes)"
    )
    assert repr(answer._replace(text="word\n" * 40)).count("\n") == 0
    assert len(repr(answer._replace(text="word " * 40))) < 200
