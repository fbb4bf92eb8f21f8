from regard.data.special_tokens import UNK
from regard.data.text.tokenizers.characters import Characters


def test_characters_are_code_points_the_frequent_first():
    tokenizer = Characters.train(["banana", "e\u0301"], 100)
    assert tokenizer.vocabulary.tokens == ("a", "n", "b", "e", "\u0301")
    assert tokenizer.encode("nab") == [5, 4, 6]
    assert tokenizer.decode([6, 4, 5]) == "ban"


def test_spaces_are_characters():
    tokenizer = Characters.train(["a  b"], 100)
    assert tokenizer.decode(tokenizer.encode(" a  b ")) == " a  b "
    assert tokenizer.pieces("a 🐭") == [("a", 0, 1), (" ", 1, 2), ("🐭", 2, 3)]


def test_rare_ones_are_unknown():
    tokenizer = Characters.train(["aab"], 100, min_frequency=2)
    assert tokenizer.encode("ab") == [4, UNK]
    assert tokenizer.decode([4, UNK]) == "a<unk>"
    assert tokenizer.shown([4, UNK]) == ["a", "<unk>"]


def test_what_is_saved_is_equal(tmp_path):
    tokenizer = Characters.train(["汤姆\n"], 100)
    tokenizer.save(tmp_path, "x")
    assert Characters.load(tmp_path, "x") == tokenizer
