from regard.data.image.synthetic.scene import COLOURS, SIZES
from regard.data.image.synthetic.shapes import SHAPES
from regard.data.image.synthetic.words import (
    COLOUR_WORDS,
    OPPOSITE,
    RELATION_WORDS,
    SHAPE_WORDS,
    SIZE_WORDS,
    article,
    plural,
)


def test_everything_has_a_chinese_name_of_its_own():
    for names, words in ((SHAPES, SHAPE_WORDS), (COLOURS, COLOUR_WORDS), (SIZES, SIZE_WORDS)):
        assert set(words) == set(names)
        assert len(set(words.values())) == len(words)


def test_opposites_are_opposite():
    assert set(OPPOSITE) == set(RELATION_WORDS)
    assert all(OPPOSITE[OPPOSITE[way]] == way != OPPOSITE[way] for way in OPPOSITE)


def test_english_has_its_irregular_words():
    assert [plural("star"), plural("cross")] == ["stars", "crosses"]
    assert [article("orange"), article("red")] == ["an", "a"]
