import gzip

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.alignment.links import Gold
from regard.alignment.pharaoh import format_links, format_pharaoh, read_gold, read_links
from regard.alignment.soft import SoftAlignment
from regard.alignment.words import Units
from regard.errors import DataError


def file(folder, text):
    path = folder / "links.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


def gold(sure, possible=()):
    return Gold(frozenset(sure), frozenset(possible))


def test_a_line_is_a_pair_and_an_empty_one_has_no_links(tmp_path):
    assert read_links(file(tmp_path, "0-0 1-2\n\n2-1\n")) == [gold({(0, 0), (1, 2)}), gold(()), gold({(2, 1)})]


def test_a_p_is_a_possible_link(tmp_path):
    assert read_links(file(tmp_path, "1-1 2p3\n"), first=1) == [gold({(0, 0)}, {(1, 2)})]


def test_possible_links_may_stand_behind_a_tab(tmp_path):
    assert read_links(file(tmp_path, "1-1 2-2\t2-3\n\t1-1\n"), first=1) == [
        gold({(0, 0), (1, 1)}, {(1, 2)}),
        gold((), {(0, 0)}),
    ]


def test_one_link_a_line_is_counted_from_one_and_sentences_may_have_none(tmp_path):
    path = file(tmp_path, "1 1 1\n1 2 3\n3 1 2 P\n3 2 2 S\n")
    found = [gold({(0, 0), (1, 2)}), gold(()), gold({(1, 1)}, {(0, 1)})]
    assert read_links(path) == found
    assert read_links(path, sentences=4) == [*found, gold(())]


def test_a_packed_file_is_unpacked(tmp_path):
    path = tmp_path / "links.gz"
    path.write_bytes(gzip.compress(b"0-1\n"))
    assert read_links(str(path)) == [gold({(0, 1)})]


@pytest.mark.parametrize(
    ("text", "options", "told"),
    [
        ("0-0\n0-x\n", {}, r"links.txt:2 has '0-x' where a link is needed: SOURCE-TARGET, or SOURCEpTARGET"),
        ("0-0\n1\n", {}, r"links.txt:2 has '1' where a link is needed"),
        ("1-1 0-2\n", {"first": 1}, r"links.txt:1 links 0 and 2, and words are counted from 1 here"),
        ("0-0\t1-1\t2-2\n", {}, r"links.txt:1 has more than one tab; a line is sure links, or sure links, a tab"),
        ("0-0\n0-0\n", {"sentences": 3}, r"links.txt has 2 lines of links for 3 pairs; it needs one line for each pair"),
        ("1 1 1\n1 1\n", {}, r"links.txt:2 needs a sentence, a source word and a target word, as numbers from 1, got '1 1'"),
        ("1 0 1\n", {}, r"links.txt:1 links 0 and 1, and words are counted from 1 here"),
        ("0 1 1\n", {}, r"links.txt:1 is about sentence 0, and sentences are counted from 1$"),
        ("4 1 1\n", {"sentences": 3}, r"links.txt:1 is about sentence 4, and sentences are counted from 1 to 3$"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path, text, options, told):
    with pytest.raises(DataError, match=told):
        read_links(file(tmp_path, text), **options)


@settings(max_examples=20)
@given(st.lists(st.frozensets(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=9), min_size=1, max_size=5))
def test_what_is_written_is_read(tmp_path_factory, found):
    assert read_links(file(tmp_path_factory.mktemp("links"), format_pharaoh(found))) == [gold(links) for links in found]


def test_links_are_written_in_the_order_of_the_source():
    assert format_links({(1, 0), (0, 3), (0, 1)}) == "0-1 0-3 1-0"


@pytest.mark.parametrize(
    ("text", "need"), [("x" * 9999, "where a link is needed"), ("1 1 1\n" + "x" * 9999, "as numbers from 1")]
)
def test_a_word_of_any_length_is_quoted_short(tmp_path, text, need):
    (tmp_path / "gold.links").write_text(text + "\n")
    with pytest.raises(DataError, match=need) as raised:
        read_links(str(tmp_path / "gold.links"))
    assert f"'{'x' * 80}'..." in str(raised.value)
    assert len(str(raised.value)) < 400


def words(count):
    return Units(("w",) * count, torch.ones(count, 1, dtype=torch.bool))


PAIRS = [SoftAlignment(words(2), words(3), {}), SoftAlignment(words(1), words(1), {})]


def test_gold_links_belong_to_the_pairs(tmp_path):
    path = file(tmp_path, "1-1 2p3\n1-1\n")
    assert read_gold(path, PAIRS, first=1) == [Gold({(0, 0)}, {(1, 2)}), Gold({(0, 0)}, frozenset())]


def test_a_file_that_writes_the_target_first_is_turned(tmp_path):
    assert read_gold(file(tmp_path, "2-1 0p0\n\n"), PAIRS, flip=True)[0] == Gold({(1, 2)}, {(0, 0)})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "2-0\n\n",
            r"links.txt, pair 1, links 2-0, counted from 0, and the pair has 2 words in its source and 3 in its target",
        ),
        ("0-0\n0p1\n", r"links.txt, pair 2, links 0-1"),
        ("0p0\n\n", "links.txt has no sure link, and nothing can be measured without one"),
        ("0-0\n", "links.txt has 1 lines of links for 2 pairs"),
    ],
)
def test_links_of_other_pairs_are_refused(tmp_path, text, told):
    with pytest.raises(DataError, match=told):
        read_gold(file(tmp_path, text), PAIRS)
