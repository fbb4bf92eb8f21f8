import pytest

from regard.data.image.unknown_label import refuse
from regard.errors import DataError


def test_what_was_learned_is_no_reason_to_stop():
    refuse([], "labels", ["cat"])


def test_what_was_not_is_listed_with_its_place_and_what_there_is():
    with pytest.raises(DataError, match=r"^1 labels were not there to be learned: t\.tsv:3 'cow'; there are cat, dog$"):
        refuse(["t.tsv:3 'cow'"], "labels", ["cat", "dog"])


def test_long_lists_are_cut_and_say_so():
    strange, known = [f"t.tsv:{line} 'x'" for line in range(1, 8)], [f"name{number}" for number in range(21)]
    with pytest.raises(DataError, match=r"^7 answers .*t\.tsv:5 'x' and 2 more; there are name0, .*, name19 \.\.\.$"):
        refuse(strange, "answers", known)
