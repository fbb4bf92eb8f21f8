import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.text.tokenizers.bpe import Bpe

from .samples import TEXTS, trained, unicode


def test_frequent_pairs_become_one_token():
    tokenizer = Bpe.train(["low low low lower"], 300)
    assert tokenizer.shown(tokenizer.encode("low lower")) == ["low", " lower"]
    assert tokenizer.pieces("low slow") == [("low", 0, 3), (" ", 3, 4), ("s", 4, 5), ("low", 5, 8)]


def test_a_pair_that_is_rare_stays_apart():
    assert [piece.text for piece in Bpe.train(["ab ab"], 300, min_frequency=3).pieces("ab")] == ["a", "b"]
    assert [piece.text for piece in Bpe.train(["ab ab"], 300, min_frequency=1).pieces("ab")] == ["ab"]


def test_the_size_is_the_most_there_is():
    assert Bpe.train(TEXTS, 280).size == 280
    assert Bpe.train([], 280).size == 260


def test_chinese_merges_into_words():
    tokenizer = Bpe.train(["汤姆喜欢杰瑞", "杰瑞喜欢汤姆", "玛丽喜欢汤姆"] * 3, 400)
    assert tokenizer.decode(tokenizer.encode("汤姆爱杰瑞")) == "汤姆爱杰瑞"
    assert len(tokenizer.encode("汤姆")) == 1


@settings(max_examples=60)
@given(unicode | st.lists(st.sampled_from(["Tom", "cat's", "汤姆", "3.5", "—", "we'll"]), max_size=9).map(" ".join))
def test_word_by_word_is_the_same_as_the_whole(text):
    tokenizer = trained("bpe")
    assert tokenizer.encode(text) == [number + 4 for number in tokenizer.model.encode(text).ids]


def test_a_damaged_file_is_refused_by_name(tmp_path):
    (tmp_path / "x.bpe.json").write_text('{"version": "1.0"', encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.bpe\.json needs to be a tokenizer of the tokenizers library"):
        Bpe.load(tmp_path, "x")


def test_too_small_a_size_is_refused():
    with pytest.raises(ValueError, match="at least 260"):
        Bpe.train(["a"], 100)
