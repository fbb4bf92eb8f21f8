from regard.inference.prediction import Prediction


def test_what_was_not_asked_for_is_not_there():
    answer = Prediction("a cat", -0.5, ["1,1"], ["a", "cat"])
    assert (answer.weights, answer.links, answer.grid, answer.boxes) == (None, None, None, None)
