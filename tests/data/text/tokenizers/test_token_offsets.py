from regard.data.text.tokenizers.token_offsets import Piece, clean, cover


def test_parts_cover_the_characters_that_they_hold():
    assert cover([b"ab", b"c", b""]) == [("ab", 0, 2), ("c", 2, 3), ("", 3, 3)]
    assert cover([]) == []


def test_a_part_of_a_character_covers_all_of_it():
    tang = "汤".encode()
    assert cover([b"a" + tang[:1], tang[1:2], tang[2:] + b"b"]) == [("a汤", 0, 2), ("汤", 1, 2), ("汤b", 1, 3)]


def test_what_is_not_utf_8_as_a_whole_is_read_part_by_part():
    assert cover([b"a", b"\xff", "汤".encode()]) == [("a", 0, 1), ("\ufffd", 1, 2), ("汤", 2, 3)]


def test_halves_of_surrogate_pairs_are_replaced_one_for_one():
    assert clean("a\ud800\udfffb") == "a\ufffd\ufffdb"
    assert clean("汤🐭") == "汤🐭"


def test_a_piece_is_a_text_with_its_span():
    assert Piece("a", 0, 1)._asdict() == {"text": "a", "start": 0, "end": 1}
