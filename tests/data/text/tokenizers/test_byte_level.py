import pytest

from regard.data.text.tokenizers.byte_level import check_size, table_of
from regard.data.text.tokenizers.bytes import Bytes


def test_the_table_starts_with_the_names_of_the_special_ones():
    assert table_of([b"a"]) == (b"<pad>", b"<bos>", b"<eos>", b"<unk>", b"a")


def test_a_size_without_room_for_every_byte_is_refused():
    check_size("bpe", 260)
    with pytest.raises(ValueError, match=r"bpe needs a vocabulary of at least 260 \(4 special tokens, 256 bytes\), got 259"):
        check_size("bpe", 259)


def test_bytes_that_are_no_utf_8_are_replaced():
    assert Bytes().decode([4 + 0xFF, 4 + ord("a")]) == "\ufffda"


def test_special_tokens_between_the_bytes_of_a_character_do_not_break_it():
    first, *rest = Bytes().encode("汤")
    assert Bytes().decode([first, 0, *rest]) == "汤"
    assert Bytes().shown([first, 0, *rest]) == ["汤", "<pad>", "汤", "汤"]
