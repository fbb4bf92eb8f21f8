import pytest

from regard.data.text.tokenizers.unigram import Unigram

from .samples import TEXTS, trained


def test_frequent_words_are_pieces():
    tokenizer = Unigram.train(["the cat likes the dog", "the dog likes the cat", "a cat and a dog"] * 20, 330)
    assert "cat" in "".join(piece.text for piece in tokenizer.pieces("the cat"))
    assert len(tokenizer.encode("the cat likes the dog")) < 12


def test_spaces_stay_as_they_are():
    text = "  two  spaces\tand a tab \n"
    assert trained("unigram").decode(trained("unigram").encode(text)) == text
    assert trained("unigram").encode("Tom") != trained("unigram").encode(" Tom")


def test_nothing_is_normalised():
    text = "ﬁ ① Ａ e\u0301 é"
    assert trained("unigram").decode(trained("unigram").encode(text)) == text


def test_the_sign_for_a_space_is_no_space():
    tokenizer = trained("unigram")
    assert tokenizer.decode(tokenizer.encode("a▁b ▁")) == "a▁b ▁"
    assert [piece.text for piece in tokenizer.pieces("a▁")] == ["a", "▁", "▁", "▁"]


def test_rare_characters_are_written_as_bytes():
    tokenizer = Unigram.train(["aaaa", "aab", "猫"], 300, min_frequency=2)
    assert len(tokenizer.encode("猫")) == 3
    assert len(tokenizer.encode("a")) == 1
    assert tokenizer.decode(tokenizer.encode("猫a")) == "猫a"


def test_more_characters_than_room_are_no_trouble():
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 2000)))
    tokenizer = Unigram.train([text], 300)
    assert tokenizer.size <= 300
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_size_is_the_most_there_is():
    assert Unigram.train(TEXTS, 280).size <= 280


def test_a_damaged_file_is_refused_by_name(tmp_path):
    (tmp_path / "x.unigram.model").write_bytes(b"no model")
    with pytest.raises(ValueError, match=r"x\.unigram\.model needs to be a SentencePiece model"):
        Unigram.load(tmp_path, "x")


def test_too_small_a_size_is_refused():
    with pytest.raises(ValueError, match="unigram needs a vocabulary of at least 262"):
        Unigram.train(["a"], 100)
