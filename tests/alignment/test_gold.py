import pytest
import torch

from regard.alignment.gold import gold
from regard.alignment.links import Gold
from regard.alignment.soft import Soft
from regard.alignment.words import Units
from regard.errors import DataError


def words(count):
    return Units(("w",) * count, torch.ones(count, 1, dtype=torch.bool))


PAIRS = [Soft(words(2), words(3), {}), Soft(words(1), words(1), {})]


def file(folder, text):
    path = folder / "gold.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_gold_links_belong_to_the_pairs(tmp_path):
    path = file(tmp_path, "1-1 2p3\n1-1\n")
    assert gold(path, PAIRS, first=1) == [Gold({(0, 0)}, {(1, 2)}), Gold({(0, 0)}, frozenset())]


def test_a_file_that_writes_the_target_first_is_turned(tmp_path):
    assert gold(file(tmp_path, "2-1 0p0\n\n"), PAIRS, flip=True)[0] == Gold({(1, 2)}, {(0, 0)})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "2-0\n\n",
            r"gold.txt, pair 1, links 2-0, counted from 0, and the pair has 2 words in its source and 3 in its target",
        ),
        ("0-0\n0p1\n", r"gold.txt, pair 2, links 0-1"),
        ("0p0\n\n", "gold.txt has no sure link, and nothing can be measured without one"),
        ("0-0\n", "gold.txt has 1 lines of links for 2 pairs"),
    ],
)
def test_links_of_other_pairs_are_refused(tmp_path, text, told):
    with pytest.raises(DataError, match=told):
        gold(file(tmp_path, text), PAIRS)
