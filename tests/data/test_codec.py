import pytest

from regard.data.codec import Report, refuse_unknown_labels
from regard.data.split import HeldOut
from regard.errors import DataError


def test_what_was_learned_is_no_reason_to_stop():
    refuse_unknown_labels([], "labels", ["cat"])


def test_what_was_not_is_listed_with_its_place_and_what_there_is():
    with pytest.raises(DataError, match=r"^1 labels were not there to be learned: t\.tsv:3 'cow'; there are cat, dog$"):
        refuse_unknown_labels(["t.tsv:3 'cow'"], "labels", ["cat", "dog"])


def test_long_lists_are_cut_and_say_so():
    strange, known = [f"t.tsv:{line} 'x'" for line in range(1, 8)], [f"name{number}" for number in range(21)]
    with pytest.raises(DataError, match=r"^7 answers .*t\.tsv:5 'x' and 2 more; there are name0, .*, name19 \.\.\.$"):
        refuse_unknown_labels(strange, "answers", known)


def test_a_report_reads_as_a_sentence():
    assert (
        str(Report(1200, 1000, 0, 0, 200, 0.0125))
        == "1,000 of 1,200 records, 200 dropped as too long, 1.25% of the tokens unknown"
    )
    assert str(Report(3, 3, 1, 2, 0, 0.0)) == "3 of 3 records, 1 sources and 2 targets cut"


def test_a_report_says_in_the_log_what_was_held_out():
    report = Report(3, 3, 0, 0, 0, 0.0)
    plain = {"read": 3, "kept": 3, "cut_sources": 0, "cut_targets": 0, "dropped": 0, "unknown": 0.0}
    assert report.notes() == plain
    held_out = {"held": 1, "lines": 4, "table": "a.tsv", "by": "source"}
    assert report._replace(held_out=HeldOut(1, 4, "a.tsv", "source")).notes() == {**plain, "held_out": held_out}
