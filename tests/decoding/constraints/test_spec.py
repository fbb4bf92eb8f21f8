import pytest

from regard.data.lines import Line
from regard.data.text import tokenizers
from regard.decoding import beam
from regard.decoding.constraints.spec import ConstraintSpec, build_guard, expand_specs, parse_spec
from regard.decoding.constraints.spelling import Spelling
from regard.errors import DataError

from ..decoders import random_table

WORDS = Spelling.of(tokenizers.train("words", ["the cat sees the dog"] * 2, 100))


def test_one_value_is_for_all_and_a_list_has_one_for_each():
    assert expand_specs(2, "a", ["b"], None) == [ConstraintSpec("a", ("b",))] * 2
    assert expand_specs(2, ["a", ""], [["b"], []], [[], ["c", "d"]]) == [
        ConstraintSpec("a", ("b",)),
        ConstraintSpec("", (), ("c", "d")),
    ]
    assert expand_specs(0, None, None, None) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((["a"], None, None), "prefix needs one text, or one for each of 2 texts, got 1"),
        ((None, "cat", None), r"include needs a list of phrases, got the text 'cat'; one phrase is \['cat'\]"),
        ((None, None, [["a"]]), "exclude needs a list of phrases, or one list for each of 2 texts, got 1"),
        ((None, [["a"], "b"], None), "include needs lists of phrases throughout, got 'b' among them"),
    ],
)
def test_wishes_that_do_not_fit_the_texts_are_errors(given, message):
    with pytest.raises(ValueError, match=message):
        expand_specs(2, *given)


def test_a_line_of_json_is_a_wish_and_an_empty_one_asks_for_nothing():
    assert parse_spec(Line('{"prefix": "Tom", "include": ["a b"]}', "c:1")) == ConstraintSpec("Tom", ("a b",))
    assert parse_spec(Line("", "c:2")) == parse_spec(Line("{}", "c:3")) == ConstraintSpec()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", r"c:4 is not JSON .*; constraints look like \{"),
        ("[]", "c:4 needs an object with prefix, include and exclude, got list"),
        ('{"begin": "a"}', "c:4 needs an object with prefix, include and exclude, got 'begin'"),
        ('{"prefix": 3}', "c:4 needs a prefix that is a text, got 3"),
        ('{"include": "cat"}', "c:4 needs lists of texts to include and to exclude, got 'cat'"),
        ('{"exclude": [1]}', r"c:4 needs lists of texts to include and to exclude, got a list of 1"),
    ],
)
def test_a_line_that_is_no_wish_is_told_by_its_place(text, message):
    with pytest.raises(DataError, match=message):
        parse_spec(Line(text, "c:4"))


def test_nothing_asked_needs_no_guard():
    assert build_guard([ConstraintSpec(), ConstraintSpec()], WORDS, str, 0, "cpu") is None
    assert build_guard([ConstraintSpec(), ConstraintSpec()], WORDS, str, 2, "cpu") is not None


def test_texts_are_made_what_the_model_writes():
    made = build_guard([ConstraintSpec("THE", ("Cat SEES",), ("DOG", "fish")), ConstraintSpec()], WORDS, str.lower, 0, "cpu")
    assert made.room == [3, 0]
    assert made.exclude.firsts.shape == (2, 1), "what the model cannot write need not be forbidden"


def test_a_phrase_that_cannot_be_written_is_an_error():
    with pytest.raises(ValueError, match="the model cannot write the phrase 'a fish'; include words that it has learnt"):
        build_guard([ConstraintSpec(include=("a fish",))], WORDS, str, 0, "cpu")


@pytest.mark.parametrize("wish", [ConstraintSpec(include=("",)), ConstraintSpec(exclude=(" ",))])
def test_a_phrase_without_a_word_is_an_error(wish):
    with pytest.raises(ValueError, match="a phrase needs a word to look for, got"):
        build_guard([wish], WORDS, str, 0, "cpu")


@pytest.mark.parametrize("kind", tokenizers.KINDS)
def test_however_a_text_is_cut_answers_are_as_wished(kind):
    tokenizer = tokenizers.train(kind, ["the cat sees the catalogue", "a dog chases the cat"] * 3, 300)
    spelling = Spelling.of(tokenizer)
    decoder = random_table(3, tokenizer.size, sharpness=2.0)
    asked = [
        ConstraintSpec("the c", ("dog", "sees the"), ("cat sees",)),
        ConstraintSpec(include=("cat",)),
        ConstraintSpec("a ", (), ("the", "c")),
    ]
    made = build_guard(asked, spelling, str, 4, "cpu")
    found = beam(decoder, decoder.memory, beams=8, length=[20 + room for room in made.room], guard=made)
    for wish, (best,) in zip(asked, found, strict=True):
        text = tokenizer.decode(best.tokens)
        assert text.startswith(wish.prefix.strip())
        assert all(phrase in text for phrase in wish.include)
        assert not any(phrase in (text.split() if kind == "words" else text) for phrase in wish.exclude)
