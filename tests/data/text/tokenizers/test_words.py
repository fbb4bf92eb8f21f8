from regard.data.special_tokens import UNK
from regard.data.text.tokenizers.words import Words


def test_tokenized_text_goes_by_its_spaces_and_comes_back_exactly():
    text = "a man in a t-shirt , the o.k. one &apos;s ."
    tokenizer = Words.train([text, "more , marks : alone . " * 10], 100)
    assert tokenizer.whole
    assert tokenizer.tokens(text) == text.split(" ")
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.shown(tokenizer.encode(text)) == text.split(" ")
    assert [piece.text for piece in tokenizer.pieces(text)] == text.split(" ")


def test_plain_text_is_cut_at_punctuation_and_comes_back():
    text = 'Tom\'s cat said: "汤姆追逐杰瑞!" (twice)'
    tokenizer = Words.train([text], 100)
    assert not tokenizer.whole
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.shown(tokenizer.encode(text))[:4] == ["Tom", "'", "s", "cat"]


def test_chinese_goes_by_its_characters():
    tokenizer = Words.train(["汤姆追逐杰瑞"], 100)
    assert tokenizer.encode("杰瑞追逐汤姆") == [tokenizer.vocabulary.number(each) for each in "杰瑞追逐汤姆"]


def test_numbers_follow_the_counts():
    tokenizer = Words.train(["b a", "b c", "b a"], 100)
    assert tokenizer.vocabulary.tokens == ("b", "a", "c")
    assert Words.train(["b a", "b c", "b a"], 100, min_frequency=2).vocabulary.tokens == ("b", "a")
    assert Words.train(["b a", "b c", "b a"], 5).vocabulary.tokens == ("b",)


def test_an_unknown_word_is_shown_by_its_name_but_covers_its_text():
    tokenizer = Words.train(["Tom chases Jerry"], 100)
    assert tokenizer.encode("Tom eats Jerry")[1] == UNK
    assert tokenizer.decode(tokenizer.encode("Tom eats Jerry")) == "Tom <unk> Jerry"
    assert tokenizer.pieces("Tom eats Jerry")[1] == ("eats", 4, 8)


def test_how_the_text_came_is_saved(tmp_path):
    for text in ("a .", "a."):
        tokenizer = Words.train([text], 100)
        tokenizer.save(tmp_path, "x")
        assert Words.load(tmp_path, "x") == tokenizer
