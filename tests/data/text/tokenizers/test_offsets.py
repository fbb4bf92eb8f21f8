import pytest

from regard.data.special_tokens import EOS, UNK
from regard.data.text import tokenizers
from regard.data.text.tokenizers import KINDS
from regard.data.text.tokenizers.offsets import real, spans

TEXTS = ["Tom's cat, a big one.", "汤姆 sieht schläft"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_what_tokens_cover_of_their_text_is_what_the_pieces_of_the_text_are(kind, text):
    tokenizer = tokenizers.train(kind, TEXTS, 400)
    numbers = [*tokenizer.encode(text), EOS]
    found = spans(tokenizer, numbers, tokenizer.decode(numbers))
    assert found[-1] is None
    blank = [text[slice(*span)].strip() for span in found[:-1]]
    assert blank == [piece.text.strip() for piece in tokenizer.pieces(text)]


def test_an_unknown_word_covers_its_name():
    tokenizer = tokenizers.train("words", ["a b"], 10)
    numbers = [tokenizer.encode("a")[0], UNK, UNK, EOS]
    text = tokenizer.decode(numbers)
    assert text == "a <unk> <unk>"
    assert [text[slice(*span)] for span in spans(tokenizer, numbers, text)[:-1]] == ["a", "<unk>", "<unk>"]


def test_an_empty_stretch_is_none():
    assert real(2, 2) is None
    assert real(2, 3) == (2, 3)
