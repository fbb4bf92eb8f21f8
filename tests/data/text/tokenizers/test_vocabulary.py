import json

import pytest

from regard.data.special_tokens import BOS, EOS, NAMES, PAD, UNK
from regard.data.text.tokenizers.vocabulary import Vocabulary


def test_the_special_numbers_come_first_and_have_names():
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    assert [Vocabulary(("a",)).token(number) for number in range(5)] == ["<pad>", "<bos>", "<eos>", "<unk>", "a"]


def test_frequent_tokens_come_first_and_equal_ones_by_their_text():
    assert Vocabulary.count({"b": 2, "c": 5, "a": 2, "字": 2}).tokens == ("c", "a", "b", "字")


def test_rare_tokens_are_left_out():
    assert Vocabulary.count({"a": 3, "b": 2, "c": 1}, min_frequency=2).tokens == ("a", "b")


def test_the_size_counts_the_special_ones():
    vocabulary = Vocabulary.count({"a": 3, "b": 2, "c": 1}, size=6)
    assert len(vocabulary) == 6
    assert vocabulary.tokens == ("a", "b")


def test_a_size_without_room_for_a_token_is_refused():
    with pytest.raises(ValueError, match="size of at least 5, 4 of it special, got 4"):
        Vocabulary.count({"a": 1}, size=4)


def test_what_is_not_listed_is_unknown():
    vocabulary = Vocabulary(("a", "b"))
    assert vocabulary.numbers(["b", "x", "a"]) == [5, UNK, 4]
    assert vocabulary.number("b") == 5
    assert "a" in vocabulary
    assert "x" not in vocabulary


def test_the_name_of_a_special_token_in_a_text_is_a_word_like_any_other():
    assert Vocabulary(("a",)).numbers(NAMES) == [UNK] * 4
    listed = Vocabulary(("<eos>",))
    assert listed.number("<eos>") == 4
    assert listed.token(4) == listed.token(EOS) == "<eos>"


@pytest.mark.parametrize("number", [-1, 5])
def test_a_number_outside_is_refused(number):
    with pytest.raises(ValueError, match=f"go from 0 to 4, got {number}"):
        Vocabulary(("a",)).token(number)


def test_what_is_saved_comes_back(tmp_path):
    vocabulary = Vocabulary(("a", "汤", "\u2028", "\n", "🐭", "<pad>", ""))
    vocabulary.save(tmp_path / "词汇🙂.json")
    assert Vocabulary.load(tmp_path / "词汇🙂.json") == vocabulary


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not: Expecting"),
        ("[" * 100_000, "needs to be a vocabulary in JSON"),
        ("[]", "of format 1"),
        (json.dumps({"format": 2, "special": NAMES, "tokens": []}), "of format 1"),
        (json.dumps({"format": 1, "special": ["<unk>"], "tokens": []}), "<pad>, <bos>, <eos>, <unk> in front"),
        (json.dumps({"format": 1, "special": NAMES, "tokens": ["a", 1]}), "a list of tokens, each a text"),
        (json.dumps({"format": 1, "special": NAMES, "tokens": ["a", "b", "a"]}), "each token once, and has 1 twice"),
    ],
)
def test_a_damaged_file_is_refused_by_name(tmp_path, text, message):
    (tmp_path / "v.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as refused:
        Vocabulary.load(tmp_path / "v.json")
    assert "v.json" in str(refused.value)
