"""Tokens as the text they cover: pieces of characters merge, names of bytes are never shown."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE, WordPiece
from transformers import PreTrainedTokenizerFast

from regard.viewer.huggingface.pieces import covered, named, shown
from regard.viewer.io.check import TraceError
from regard.viewer.io.check_axes import check_axis


def ids(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def test_words_are_shown_without_their_blanks(tokenizer):
    axis = covered([*ids(tokenizer, "Tom chases Jerry"), tokenizer.eos_token_id], tokenizer, "en")
    assert axis.text == "Tom chases Jerry"
    assert axis.labels == ["Tom", "chases", "Jerry", "</s>"]
    assert axis.pieces == ("Tom", "Ġchases", "ĠJerry", "</s>")
    assert (axis.special, axis.spans[3], axis.lang) == ((3,), None, "en")


def test_a_character_in_several_tokens_is_covered_by_each_of_them(tokenizer):
    axis = covered(ids(tokenizer, "姆 ok"), tokenizer)
    assert axis.text == "姆 ok"
    assert axis.spans[:3] == ((0, 1), (0, 1), (0, 1))
    assert axis.labels[:3] == ["姆", "姆", "姆"]
    assert axis.pieces[:3] == ("⟨E5⟩", "⟨A7⟩", "⟨86⟩")


def test_a_character_in_one_token_is_called_by_itself(tokenizer):
    [whole] = ids(tokenizer, "汤")
    assert tokenizer.convert_ids_to_tokens(whole) == "æ±¤"
    assert (named(whole, tokenizer), shown(whole, tokenizer)) == ("汤", "汤")


def test_a_token_that_ends_one_character_and_begins_the_next_covers_both():
    class Halves:
        all_special_ids = ()
        parts = ("é".encode()[:1], "é".encode()[1:] + "汤".encode()[:2], "汤".encode()[2:], b" x")

        def convert_ids_to_tokens(self, number):
            return "xyzw"[number]

        def decode(self, numbers, **options):
            return b"".join(self.parts[number] for number in numbers).decode(errors="replace")

    axis = covered([0, 1, 2, 3], Halves())
    assert axis.text == "é汤 x"
    assert axis.spans == ((0, 1), (0, 2), (1, 2), (3, 4))


@pytest.mark.parametrize(
    "text", ["汤姆追逐杰瑞", "مرحبا بالعالم", "👩‍👩‍👧 🇨🇳!", "naïve  café\n\tx", "ﬃ 杰瑞 Tom�", " lead", "x"]
)
def test_the_text_comes_back_whole_and_every_token_covers_some_of_it(tokenizer, text):
    axis = covered(ids(tokenizer, text), tokenizer)
    assert axis.text == text
    check_axis(axis, "axis")
    assert all(label in text for label in axis.labels)
    reached = {place for first, end in axis.spans for place in range(first, end)}
    assert {place for place, letter in enumerate(text) if not letter.isspace()} <= reached
    assert all(end > first for first, end in axis.spans)
    assert sorted(axis.spans) == list(axis.spans)


@settings(max_examples=50)
@given(text=st.text(max_size=20))
def test_any_text_is_covered_in_order(tokenizer, text):
    axis = covered(ids(tokenizer, text), tokenizer)
    assert axis.text == text
    assert [first for first, _ in axis.spans] == sorted(first for first, _ in axis.spans)
    assert not any("\ufffd" in label for label in axis.labels if "\ufffd" not in text)


def test_bytes_that_are_no_character_stay_what_they_are(tokenizer):
    [first, *_] = ids(tokenizer, "姆")
    axis = covered([first, *ids(tokenizer, "Tom")], tokenizer)
    assert axis.text == "\ufffdTom"
    assert axis.labels[1:] == ["Tom"]
    assert shown(first, tokenizer) == "⟨E5⟩"


def test_a_blank_of_several_bytes_is_called_by_its_bytes(tokenizer):
    numbers = ids(tokenizer, "a\u00a0b")
    axis = covered(numbers, tokenizer)
    assert axis.text == "a\u00a0b"
    assert axis.pieces == ("a", "⟨C2⟩", "⟨A0⟩", "b")
    assert shown(numbers[1], tokenizer) == "⟨C2⟩"


def wrapped(model, decoder):
    inner = Tokenizer(model)
    inner.decoder = decoder
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]", clean_up_tokenization_spaces=False)


def test_word_pieces_join_to_words():
    vocabulary = {"[UNK]": 0, "Tom": 1, "chase": 2, "##s": 3, "汤": 4, ",": 5}
    axis = covered([1, 2, 3, 5, 4], wrapped(WordPiece(vocabulary, unk_token="[UNK]"), decoders.WordPiece()))
    assert axis.labels == ["Tom", "chase", "s", ",", "汤"]
    assert axis.text == "Tom chases, 汤"


def test_pieces_with_a_mark_for_blanks_and_bytes_for_the_unknown_join_too():
    pieces = ["[UNK]", "▁Tom", "▁chase", "s", "<0xE6>", "<0xB1>", "<0xA4>"]
    decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(content=" ", left=1)]
    )
    tokenizer = wrapped(BPE({piece: place for place, piece in enumerate(pieces)}, [], unk_token="[UNK]"), decoder)
    axis = covered([1, 2, 3, 4, 5, 6], tokenizer)
    assert axis.text == "Tom chases汤"
    assert axis.labels == ["Tom", "chase", "s", "汤", "汤", "汤"]
    assert axis.pieces == ("▁Tom", "▁chase", "s", "<0xE6>", "<0xB1>", "<0xA4>")
    assert shown(4, tokenizer) == "<0xE6>"


def test_special_tokens_between_words_cover_nothing(tokenizer):
    words = ids(tokenizer, "Tom chases")
    axis = covered([tokenizer.bos_token_id, words[0], tokenizer.pad_token_id, words[1]], tokenizer)
    assert axis.text == "Tom chases"
    assert axis.labels == ["<s>", "Tom", "<pad>", "chases"]
    assert axis.special == (0, 2)


def test_without_a_tokenizer_tokens_are_numbers():
    assert covered([7, 12]).labels == ["7", "12"]
    assert shown(7) == "7"


def test_a_decoder_that_rewrites_what_it_wrote_before_is_followed_token_by_token():
    class Rewriting:
        all_special_ids = ()

        def convert_ids_to_tokens(self, number):
            return ["do", "n't", "x"][number]

        def decode(self, numbers, **options):
            text = " ".join(["do", "n't", "x"][number] for number in numbers)
            return text.replace("do n't", "DON'T")

    assert covered([0, 1, 2], Rewriting()).labels == ["do", "n't", "x"]


def test_a_word_piece_keeps_its_letters():
    class Plain:
        all_special_ids = ()

        def convert_ids_to_tokens(self, number):
            return ["##é", None][number]

        def decode(self, numbers, **options):
            return "é"

    assert named(0, Plain()) == "##é"
    assert named(1, Plain()) == "⟨1⟩"


def test_a_number_beyond_the_vocabulary_is_shown_as_that(tokenizer):
    assert shown(5000, tokenizer) == "⟨5000⟩"


def test_a_processor_is_asked_for_its_tokenizer(tokenizer):
    class Processor:
        pass

    processor = Processor()
    processor.tokenizer = tokenizer
    assert covered(ids(tokenizer, "Tom"), processor).labels == ["Tom"]
    with pytest.raises(TraceError, match="needs the tokenizer of a transformers model, as AutoTokenizer gives it, got int"):
        covered([1], 3)
