from regard.decoding.hypothesis import Hypothesis


def test_a_target_says_nothing_of_weights_unless_asked():
    found = Hypothesis(tokens=[4, 2], score=-1.5, normalised=-0.75, logprobs=[-1.0, -0.5], finished=True)
    assert found.weights is None
    assert sum(found.logprobs) == found.score
