from regard.data.special_tokens import UNK
from regard.data.tokenizers.characters import Characters


def test_characters_are_code_points_the_frequent_first():
    tokeniser = Characters.train(["banana", "e\u0301"], 100)
    assert tokeniser.vocabulary.tokens == ("a", "n", "b", "e", "\u0301")
    assert tokeniser.encode("nab") == [5, 4, 6]
    assert tokeniser.decode([6, 4, 5]) == "ban"


def test_spaces_are_characters():
    tokeniser = Characters.train(["a  b"], 100)
    assert tokeniser.decode(tokeniser.encode(" a  b ")) == " a  b "
    assert tokeniser.pieces("a 🐭") == [("a", 0, 1), (" ", 1, 2), ("🐭", 2, 3)]


def test_rare_ones_are_unknown():
    tokeniser = Characters.train(["aab"], 100, least=2)
    assert tokeniser.encode("ab") == [4, UNK]
    assert tokeniser.decode([4, UNK]) == "a<unk>"
    assert tokeniser.shown([4, UNK]) == ["a", "<unk>"]


def test_what_is_saved_is_equal(tmp_path):
    tokeniser = Characters.train(["汤姆\n"], 100)
    tokeniser.save(tmp_path, "x")
    assert Characters.load(tmp_path, "x") == tokeniser
