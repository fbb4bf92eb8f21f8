from regard.data.special_tokens import UNK
from regard.data.tokenizers.words import Words


def test_tokenised_text_goes_by_its_spaces_and_comes_back_exactly():
    text = "a man in a t-shirt , the o.k. one &apos;s ."
    tokeniser = Words.train([text, "more , marks : alone . " * 10], 100)
    assert tokeniser.whole
    assert tokeniser.tokens(text) == text.split(" ")
    assert tokeniser.decode(tokeniser.encode(text)) == text
    assert tokeniser.shown(tokeniser.encode(text)) == text.split(" ")
    assert [piece.text for piece in tokeniser.pieces(text)] == text.split(" ")


def test_plain_text_is_cut_at_punctuation_and_comes_back():
    text = 'Tom\'s cat said: "汤姆追逐杰瑞!" (twice)'
    tokeniser = Words.train([text], 100)
    assert not tokeniser.whole
    assert tokeniser.decode(tokeniser.encode(text)) == text
    assert tokeniser.shown(tokeniser.encode(text))[:4] == ["Tom", "'", "s", "cat"]


def test_chinese_goes_by_its_characters():
    tokeniser = Words.train(["汤姆追逐杰瑞"], 100)
    assert tokeniser.encode("杰瑞追逐汤姆") == [tokeniser.vocabulary.number(each) for each in "杰瑞追逐汤姆"]


def test_numbers_follow_the_counts():
    tokeniser = Words.train(["b a", "b c", "b a"], 100)
    assert tokeniser.vocabulary.tokens == ("b", "a", "c")
    assert Words.train(["b a", "b c", "b a"], 100, least=2).vocabulary.tokens == ("b", "a")
    assert Words.train(["b a", "b c", "b a"], 5).vocabulary.tokens == ("b",)


def test_an_unknown_word_is_shown_by_its_name_but_covers_its_text():
    tokeniser = Words.train(["Tom chases Jerry"], 100)
    assert tokeniser.encode("Tom eats Jerry")[1] == UNK
    assert tokeniser.decode(tokeniser.encode("Tom eats Jerry")) == "Tom <unk> Jerry"
    assert tokeniser.pieces("Tom eats Jerry")[1] == ("eats", 4, 8)


def test_how_the_text_came_is_saved(tmp_path):
    for text in ("a .", "a."):
        tokeniser = Words.train([text], 100)
        tokeniser.save(tmp_path, "x")
        assert Words.load(tmp_path, "x") == tokeniser
