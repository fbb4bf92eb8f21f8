from regard.data.text.tokenizers.bytes import Bytes


def test_numbers_are_bytes_of_utf_8_behind_the_special_ones():
    assert Bytes().encode("a汤") == [4 + 97, 4 + 0xE6, 4 + 0xB1, 4 + 0xA4]
    assert Bytes().decode([4 + 0xE6, 4 + 0xB1, 4 + 0xA4]) == "汤"
    assert Bytes().size == 260


def test_each_byte_covers_its_character():
    assert Bytes().pieces("é!") == [("é", 0, 1), ("é", 0, 1), ("!", 1, 2)]


def test_there_is_nothing_to_learn():
    assert Bytes.train(["a"], 5) == Bytes()
