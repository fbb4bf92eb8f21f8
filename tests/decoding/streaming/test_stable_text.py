import pytest

from regard.decoding.streaming.stable_text import StableText

WORDS = {1: "a", 2: " b", 3: " ", 4: "\ufffd"}


def text(tokens):
    return "".join(WORDS[each] for each in tokens)


def test_each_token_adds_what_it_says():
    written = StableText(text)
    assert [written.more([1]), written.more([1, 2]), written.rest([1, 2])] == ["a", " b", ""]


def test_the_space_at_the_end_waits_for_what_follows_or_for_the_end():
    written = StableText(text)
    assert written.more([1, 3]) == "a"
    assert written.more([1, 3, 3]) == ""
    assert written.more([1, 3, 3, 1]) == "  a"
    assert written.rest([1, 3, 3, 1, 3]) == " "


def test_half_a_character_waits_for_the_other_half():
    halves = [b"\xe4", b"\xbd", b"\xa0", b"!"]
    written = StableText(lambda tokens: b"".join(halves[each] for each in tokens).decode("utf-8", "replace"))
    assert [written.more(range(count)) for count in range(1, 5)] == ["", "", "你", "!"]


def test_bytes_that_never_become_a_character_are_shown_at_the_end():
    written = StableText(text)
    assert (written.more([1, 4]), written.rest([1, 4])) == ("a", "\ufffd")


def test_a_text_that_does_not_only_grow_is_an_error():
    written = StableText(lambda tokens: "ab"[len(tokens) - 1 :])
    assert written.more([1]) == "ab"
    with pytest.raises(ValueError, match="needs a text that only grows: 'ab' has become 'b'; ask for the whole answer"):
        written.rest([1, 1])
