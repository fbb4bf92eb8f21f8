import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.alignment.links import Gold
from regard.alignment.score import LETTERS, WORDS, count_links, error_rate, measure, metrics_from_counts

LINKS = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=8)


def test_figures_worked_by_hand():
    # A has 4 links; 2 of the 3 sure ones are among them, and 3 of the 5 possible ones
    found = [{(0, 0), (1, 1)}, {(0, 0), (2, 1)}]
    gold = [Gold({(0, 0), (1, 2)}, {(1, 1)}), Gold({(0, 0)}, {(1, 1)})]
    rows = count_links(found, gold)
    assert rows[:, :4].tolist() == [[2, 2, 1, 2], [2, 1, 1, 1]]
    told = metrics_from_counts(rows.sum(0))
    assert told["aer"] == pytest.approx(100 * (1 - (2 + 3) / (4 + 3)))
    assert told["precision"] == pytest.approx(75)
    assert told["recall"] == pytest.approx(100 * 2 / 3)
    assert told["f1"] == pytest.approx(2 * 75 * (200 / 3) / (75 + 200 / 3))
    # targets 0, 1, 2 of the first and 0, 1 of the second have gold links: 0, 1 and 0 are hit; 2-1 is one off 1-1
    assert told["accuracy"] == pytest.approx(60)
    assert told["within_one"] == pytest.approx(80)


def test_a_perfect_alignment_has_no_error():
    told = metrics_from_counts(count_links([{(0, 1), (1, 0)}], [Gold([(0, 1), (1, 0)])]).sum(0))
    assert told == {"aer": 0, "precision": 100, "recall": 100, "f1": 100, "accuracy": 100, "within_one": 100}


def test_no_link_is_no_wrong_one_and_finds_nothing():
    told = metrics_from_counts(count_links([set()], [Gold({(0, 0)})]).sum(0))
    assert told == {"aer": 100, "precision": 100, "recall": 0, "f1": 0, "accuracy": 0, "within_one": 0}


def test_a_draw_of_pairs_without_any_link_can_be_told():
    assert metrics_from_counts(np.zeros(7))["aer"] == 0


@settings(max_examples=40)
@given(st.lists(st.tuples(LINKS, LINKS, LINKS), min_size=1, max_size=4))
def test_counts_are_those_of_one_large_pair(triples):
    found = [found for found, _, _ in triples]
    gold = [Gold(sure, possible) for _, sure, possible in triples]
    if not any(each.sure for each in gold):
        return
    links, sure = ({(n, *link) for n, each in enumerate(side) for link in each} for side in (found, [g.sure for g in gold]))
    possible = sure | {(n, *link) for n, each in enumerate(gold) for link in each.possible}
    told = metrics_from_counts(count_links(found, gold).sum(0))
    assert told["aer"] == pytest.approx(100 * (1 - (len(links & sure) + len(links & possible)) / (len(links) + len(sure))))
    assert told["accuracy"] <= told["within_one"] <= 100


def test_a_measure_has_an_interval_around_it():
    found = [{(0, 0)}, {(0, 1)}, {(1, 1)}, {(0, 0), (1, 1)}]
    told = measure(found, [Gold({(0, 0)})] * 4, (*WORDS, *LETTERS))
    assert list(told) == [*WORDS, *LETTERS]
    assert told["precision"].value == 40
    for each in told.values():
        assert each.low <= each.value <= each.high
    assert told["aer"].signature == "1 - (|A∩S| + |A∩P|) / (|A| + |S|)"


def test_the_rate_takes_arrays_too():
    assert error_rate(np.array([4, 0]), np.array([2, 2]), 2).tolist() == [0, 1]


def test_gold_has_to_be_there_for_each_pair():
    with pytest.raises(ValueError, match="a score needs gold links for each pair, got 1 for 2 pairs"):
        count_links([set(), set()], [Gold(())])


def test_something_has_to_be_sure():
    with pytest.raises(ValueError, match="a score needs at least one sure gold link, got none; are all links"):
        count_links([set()], [Gold((), {(0, 0)})])
