import pytest
import torch

from regard.data.special_tokens import BOS, EOS, UNK
from regard.decoding.constraints.language import CONSTANT, PrefixTree, parse_grammar
from regard.decoding.constraints.spelling import Spelling
from regard.decoding.constraints.state import Constraints, Guard
from regard.errors import DataError

WORDS = {word: number for number, word in enumerate(("get", "put", "all", ";", "and", '"', "zoe", "leo"), 4)}


def encode(text):
    return [WORDS.get(word, UNK) for word in text.split()]


def read(text, constants=()):
    return parse_grammar(text, "g.txt", encode, constants)


def follow(language, words):
    """State after some words."""
    state = language.after(0, BOS)
    for token in encode(words):
        assert token in language.allowed(state), words
        state = language.after(state, token)
    return state


def names(language, state):
    texts = {number: word for word, number in WORDS.items()} | {UNK: "<unk>", EOS: "<eos>"}
    return {texts[token] for token in language.allowed(state)}


def test_a_tree_follows_its_targets_and_leaves_constants_open():
    get, put, zoe = WORDS["get"], WORDS["put"], WORDS["zoe"]
    tree = PrefixTree([[get, CONSTANT, EOS], [get, put, EOS], [put, zoe, EOS]], constants=[zoe])
    assert names(tree, 0) == {"get", "put"}
    assert names(tree, follow(tree, "get")) == {"<unk>", "zoe", "put"}
    assert names(tree, follow(tree, "get zoe")) == {"<eos>"}
    assert names(tree, tree.after(follow(tree, "get"), UNK)) == {"<eos>"}
    assert names(tree, follow(tree, "put")) == {"zoe"}


def test_a_grammar_has_alternatives_options_repetitions_and_groups():
    grammar = read(
        'query = ( "get" | "put" ) thing { "and" thing } [ ";" ]\nthing = "all"\n  | \'"\' CONSTANT \'"\'', [WORDS["zoe"]]
    )
    assert names(grammar, 0) == {"get", "put"}
    assert names(grammar, follow(grammar, "put")) == {"all", '"'}
    assert names(grammar, follow(grammar, 'put "')) == {"zoe", "<unk>"}
    for words in ("put all", 'get " zoe " and all'):
        assert names(grammar, follow(grammar, words)) == {"and", ";", "<eos>"}
    assert names(grammar, follow(grammar, "get all ;")) == {"<eos>"}


def test_a_grammar_may_be_recursive_and_have_rules_of_nothing():
    grammar = read('first = "get" rest more\nrest = | "and" rest\nmore = ";" | "put" first more\n')
    assert names(grammar, follow(grammar, "get")) == {"and", ";", "put"}
    assert names(grammar, follow(grammar, "get and and put get ;")) == {";", "put"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", r"g\.txt needs a rule, as NAME = SYMBOLS, and has none"),
        ("query get", r"g\.txt:1 needs a rule as NAME = SYMBOLS, got 'query get'"),
        ("query = other", r"g\.txt has no rule for other; write one"),
        ('# names\nquery = "never"', r"g\.txt:2 has the text \"never\", which the model cannot write"),
        ('query = [ "get"', r"g\.txt:1 opens \[ and does not close it"),
        ('query = "get" ]', r"g\.txt:1 closes a bracket that it has not opened: \]"),
        ("query = %", r"g\.txt:1 has '%', which is no text in quotes, name or bracket"),
        ('query = "get', r"g\.txt:1 has '\"get', which is no text"),
    ],
)
def test_a_wrong_grammar_says_where(text, wanted):
    with pytest.raises(DataError, match=wanted):
        read(text)


def test_a_guard_keeps_rows_to_the_language_and_copied_words_to_its_constants():
    size, get, zoe = 12, WORDS["get"], WORDS["zoe"]
    guard = Guard([Constraints()] * 2, Spelling.numbers(size), language=PrefixTree([[get, CONSTANT, EOS]], [zoe]))
    state = guard.after(guard.start([0, 1]), torch.tensor([BOS, BOS]))
    logs = torch.zeros(2, size + 3)
    assert guard.forbid(state, logs)[0].isfinite().nonzero()[:, 0].tolist() == [get]
    state = guard.after(state, torch.tensor([get, get]))
    assert guard.forbid(state, logs)[1].isfinite().nonzero()[:, 0].tolist() == [zoe, size, size + 1, size + 2]
    state = guard.after(state, torch.tensor([zoe, size + 2]))
    assert [row.isfinite().nonzero()[:, 0].tolist() for row in guard.forbid(state, logs)] == [[EOS], [EOS]]
