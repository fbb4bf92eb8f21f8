import pytest

from regard.data.text import tokenizers
from regard.decoding.constraints.spelling import NO_LETTER, Spelling

TEXTS = ['Tom\'s cat sees "Tom".', "the cat sees the catalogue", "a cat, a cat and a cat"] * 3


def test_a_token_of_bytes_is_spelt_by_its_bytes_and_a_special_one_by_what_no_text_holds():
    tokenizer = tokenizers.train("bpe", TEXTS, 300)
    spelling = Spelling.of(tokenizer)
    assert spelling.spell("cat") == tuple(b"cat")
    for number, letters in enumerate(spelling.letters.tolist()):
        written = [letter for letter in letters if letter != NO_LETTER]
        assert written == ([256 + number] if number < 4 else list(tokenizer.table[number]))
    assert spelling.size == 260


def test_a_word_is_the_same_letter_joined_or_not():
    tokenizer = tokenizers.train("words", TEXTS, 100)
    spelling = Spelling.of(tokenizer)
    quoted = tokenizer.vocabulary.number("￭Tom")
    assert quoted > 3
    assert spelling.letters[quoted].tolist() == spelling.letters[tokenizer.vocabulary.number("Tom")].tolist()
    assert spelling.spell("Tom") == tuple(spelling.letters[quoted].tolist())


def test_a_word_that_no_token_writes_has_no_spelling():
    assert Spelling.of(tokenizers.train("words", TEXTS, 100)).spell("a dog") is None
    assert Spelling.of(tokenizers.train("characters", TEXTS, 100)).spell("catz") is None


@pytest.mark.parametrize("kind", tokenizers.KINDS)
def test_the_letters_of_a_text_are_those_of_its_tokens(kind):
    tokenizer = tokenizers.train(kind, TEXTS, 300)
    spelling = Spelling.of(tokenizer)
    rows = [spelling.letters[number].tolist() for number in tokenizer.encode("a cat sees the catalogue")]
    assert spelling.spell("a cat sees the catalogue") == tuple(each for row in rows for each in row if each != NO_LETTER)


def test_numbers_spell_no_text():
    with pytest.raises(ValueError, match="a spelling of numbers has no texts; give the phrase as token numbers"):
        Spelling.numbers(8).spell("cat")
