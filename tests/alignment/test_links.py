import pytest

from regard.alignment.links import check_links, transpose
from regard.errors import DataError


def test_seen_from_the_other_side_a_link_is_turned():
    assert transpose([(0, 2), (1, 1)]) == {(2, 0), (1, 1)}


def test_a_link_inside_a_pair_is_fine():
    check_links([(0, 0), (2, 1)], 3, 2, "a:1")


@pytest.mark.parametrize("link", [(3, 0), (0, 2), (-1, 0)])
def test_a_link_to_a_word_that_is_not_there_is_refused_with_its_place(link):
    text = f"a:1 links {link[0]}-{link[1]}, counted from 0, and the pair has 3 words in its source and 2 in its target"
    with pytest.raises(DataError, match=text):
        check_links([(0, 0), link], 3, 2, "a:1")
