import pytest

from regard.data.text.tokenizers.pretokenize import bare, chunks, clings, join, mark, split, tokenized


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Tom chases Jerry.", ["Tom", "chases", "Jerry", "."]),
        ("Tom's co-op, 3.5%", ["Tom", "'", "s", "co", "-", "op", ",", "3", ".", "5", "%"]),
        ("汤姆 likes 杰瑞。", ["汤", "姆", "likes", "杰", "瑞", "。"]),
        ("カタカナと漢字", list("カタカナと漢字")),
        ("한국어 문장", ["한국어", "문장"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("I_TURN_LEFT", ["I_TURN_LEFT"]),
        ("t͡ʃ aː ma˥˩ ˈa", ["t͡ʃ", "aː", "ma˥˩", "ˈa"]),
        ("👍🏽ok ❤\ufe0f", ["👍🏽", "ok", "❤\ufe0f"]),
        ("か\u3099", ["か\u3099"]),
        ("𠀀𠀁", ["𠀀", "𠀁"]),
        ("「猫」・々", ["「", "猫", "」", "・", "々"]),
        ("  \t\n", []),
    ],
)
def test_a_text_is_cut_where_its_script_says(text, pieces):
    assert [piece.text for piece in split(text)] == pieces
    assert all(piece.text == text[piece.start : piece.end] for piece in split(text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Tom's cat.", ["Tom", "￭'", "￭s", "cat", "."]),
        ("a man .", ["a", "man", "▁."]),
        ("(a) b", ["(", "a", ")", "b"]),
        ("汤姆 like s 猫", ["汤", "姆", "▁like", "s", "▁猫"]),
        ("汤姆追逐杰瑞。", list("汤姆追逐杰瑞。")),
        ("a￭ ▁b", ["a", "￭￭", "▁", "￭b"]),
    ],
)
def test_unusual_spacing_is_marked_and_undone(text, tokens):
    assert mark(text) == tokens
    assert join(tokens) == text


def test_runs_of_space_become_one():
    assert join(mark("  a \t b\u3000猫\n")) == "a b 猫"


def test_long_texts_are_cut_like_short_ones():
    text = "ab,c" * 50
    assert mark(text) == ["ab", *[",", "￭cab"] * 49, ",", "￭c"]
    assert join(mark(text)) == text


def test_a_mark_is_no_part_of_what_is_shown():
    assert [bare(token) for token in ("￭s", "▁.", "￭", "▁", "a", "￭￭")] == ["s", ".", "￭", "▁", "a", "￭"]


def test_neighbours_cling_by_their_script_and_punctuation():
    assert clings("a", ".")
    assert clings("(", "a")
    assert clings("汤", "姆")
    assert clings("a", "猫")
    assert not clings("a", "b")
    assert not clings(".", "a")
    assert clings("", "a")


def test_chunks_stand_between_spaces():
    assert chunks(" a.b  汤姆\n") == [("a.b", 1, 4), ("汤姆", 6, 8)]


@pytest.mark.parametrize(
    ("texts", "whole"),
    [
        (["a man in a blue shirt ."], True),
        (["a man in a blue shirt."], False),
        (["汤姆 追逐 杰瑞 。"], True),
        (["汤姆追逐杰瑞。"], False),
        (["Tom chases Jerry"], False),
        (["a , b ."] * 10 + ["mr. smith"], True),
        (["a , b ."] * 9 + ["mr. smith"], False),
        ([], False),
    ],
)
def test_text_came_tokenized_when_its_punctuation_stands_alone(texts, whole):
    assert tokenized(texts) is whole
