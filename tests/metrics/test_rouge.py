import pytest

from regard.metrics.rouge import Rouge, split_words
from regard.metrics.text import measure

PAIRS = [
    ("the cat sat on the mat", "the cat lay on the mat", 0.833333, 0.6, 0.833333),
    ("Re: meeting -- moved to 3pm!", "Meeting moved to 3 pm", 0.6, 0.5, 0.6),
    ("", "something", 0.0, 0.0, 0.0),
    ("a a a b", "a b a", 0.857143, 0.4, 0.571429),
    ("police killed the gunman", "police kill the gunman", 0.75, 0.333333, 0.75),
    ("the gunman kill police", "police kill the gunman", 1.0, 0.333333, 0.5),
    ("don't stop U.S. plans", "US plans: don't stop", 0.727273, 0.444444, 0.545455),
    ("one", "one", 1.0, 0.0, 1.0),
]
"""Outputs and references with F1 of ROUGE-1, ROUGE-2 and ROUGE-L by rouge-score 0.1.2, use_stemmer=False."""


@pytest.mark.parametrize(("output", "reference", "one", "two", "longest"), PAIRS)
def test_scores_are_those_of_the_package_rouge_score(output, reference, one, two, longest):
    for order, expected in ((1, one), (2, two), (0, longest)):
        [[score, count]] = Rouge(order).rows([output], [reference])
        assert score == pytest.approx(expected, abs=1e-6)
        assert count == 1


def test_of_several_references_the_best_counts():
    # rouge-score's score_multi: 0.666667, 0.285714 and 0.444444
    references = [["the cat sat", "a dog ran in the park"]]
    for order, expected in ((1, 66.6667), (2, 28.5714), (0, 44.4444)):
        score = measure(Rouge(order), ["the dog ran"], references)
        assert score.value == pytest.approx(expected, abs=1e-3)
    assert score.signature == "ROUGE-L F1, lower case, no stemming, best of the references"


def test_the_score_is_the_mean_of_outputs_with_an_interval():
    score = measure(Rouge(1), ["a b", "c"], ["a b", "d"])
    assert score.value == 50
    assert score.low <= 50 <= score.high


def test_words_of_other_scripts_count():
    assert split_words("Été 3pm_x 汤姆!") == ["été", "3pm", "x", "汤", "姆"]
