import pytest

from regard.metrics.times import Interval, boundary_errors, measure_times

REFERENCE = [Interval("one", 0.0, 0.4), Interval("two", 0.5, 0.9), Interval("three", 1.0, 1.5)]


def test_errors_are_of_words_that_both_have():
    words = [Interval("one", 0.02, 0.43), Interval("too", 0.5, 0.9), Interval("three", 1.1, 1.5)]
    assert boundary_errors(words, REFERENCE).round(6).tolist() == [[0.02, 0.03], [0.1, 0.0]]


def test_a_corpus_has_errors_in_milliseconds_and_f1_in_per_cent():
    words = [Interval("one", 0.02, 0.43), Interval("too", 0.5, 0.9), Interval("three", 1.1, 1.5)]
    figures = measure_times([words, REFERENCE], [REFERENCE, REFERENCE])
    assert figures["boundary_error"].value == pytest.approx(150 / 10)  # ten boundaries of five words
    assert figures["f1_50"].value == pytest.approx(100 * 2 * 4 / 12)  # "three" begins 100 ms late, "too" is another word
    assert figures["f1_50"].low <= figures["f1_50"].value <= figures["f1_50"].high


def test_a_word_said_twice_is_one_too_many():
    twice = [*REFERENCE, Interval("three", 1.5, 2.0)]
    assert measure_times([twice], [REFERENCE])["f1_50"].value == pytest.approx(100 * 6 / 7)


def test_every_utterance_needs_a_reference():
    with pytest.raises(ValueError, match="a reference for each of one or more utterances, got 0 for 1"):
        measure_times([REFERENCE], [])
