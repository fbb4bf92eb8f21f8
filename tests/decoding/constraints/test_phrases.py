import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.data.text import tokenizers
from regard.decoding.constraints.phrases import UNREACHABLE, Phrases, build_automaton, count_tokens_left
from regard.decoding.constraints.spelling import Spelling

NUMBERS = Spelling.numbers(6)


@given(phrase=st.lists(st.integers(0, 2), min_size=1, max_size=5), written=st.lists(st.integers(0, 2), max_size=12))
def test_the_state_is_the_longest_beginning_that_was_written_last(phrase, written):
    table, state = build_automaton(tuple(phrase), NUMBERS), 0
    for end, token in enumerate(written, 1):
        state = int(table[state, token])
        whole = any(written[start : start + len(phrase)] == phrase for start in range(end - len(phrase) + 1))
        longest = max(size for size in range(len(phrase) + 1) if size <= end and written[end - size : end] == phrase[:size])
        assert state == (len(phrase) if whole else longest)


@given(phrase=st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_token_by_token_a_phrase_takes_as_many_tokens_as_are_missing(phrase):
    assert count_tokens_left(build_automaton(tuple(phrase), NUMBERS)).tolist() == list(range(len(phrase), -1, -1))


def test_what_no_token_leads_to_is_never_reached():
    assert count_tokens_left(torch.tensor([[0, 0], [1, 1]])).tolist() == [UNREACHABLE, 0]


def test_parts_of_words_complete_a_phrase_by_the_fewest_tokens():
    tokenizer = tokenizers.train("bpe", ["the cat sees the cat"] * 9, 300)
    spelling = Spelling.of(tokenizer)
    phrase = spelling.spell("cat sees")
    cat, sees = tokenizer.encode(" cat"), tokenizer.encode(" sees")
    assert len(cat) == len(sees) == 1
    table = build_automaton(phrase, spelling)
    assert count_tokens_left(table)[0] == 2
    assert table[0, cat[0]] == 3, "a token may begin before the phrase does"
    assert table[3, sees[0]] == len(phrase)
    letters = [int(number) for letter in "cat sees" for number in tokenizer.encode(letter)]
    state = 0
    for number in letters:
        state = int(table[state, number])
    assert state == len(phrase), "and letters write it too"


def test_only_one_phrase_is_under_way():
    phrases = Phrases([[(3, 4), (3, 5, 5)], [(4,)]], NUMBERS)
    assert phrases.firsts.shape == (2, 2)
    assert phrases.count_remaining(phrases.firsts).tolist() == [5, 1]
    states = phrases.move(phrases.firsts, torch.tensor([3, 4]))
    assert phrases.count_remaining(states).tolist() == [4, 0], "3 begins both, and only one can go on"
    states = phrases.move(states, torch.tensor([4, 0]))
    assert phrases.count_remaining(states).tolist() == [3, 0]


def test_many_tokens_of_a_row_are_tried_at_once():
    phrases = Phrases([[(3, 4)], [(5,)]], NUMBERS)
    tried = phrases.move(phrases.firsts, torch.tensor([[3, 4], [5, 3]]))
    assert phrases.count_remaining(tried).tolist() == [[1, 2], [0, 1]]


def test_the_likeliest_token_that_goes_on_with_a_phrase_is_found():
    phrases = Phrases([[(3, 4)], []], NUMBERS)
    logs = torch.log_softmax(torch.arange(12.0).view(2, 6), -1)
    values, tokens = phrases.advancing(phrases.firsts, logs)
    assert (tokens[0, 0], values[0, 0]) == (3, logs[0, 3])
    assert values[1, 0] == float("-inf"), "there is nothing to go on with"


def test_what_completes_a_phrase_is_told_before_it_is_written():
    phrases = Phrases([[(3, 4), (5,)], []], NUMBERS)
    assert phrases.completing(phrases.firsts).nonzero().tolist() == [[0, 5]]
    states = phrases.move(phrases.firsts, torch.tensor([3, 3]))
    assert phrases.completing(states).nonzero().tolist() == [[0, 4], [0, 5]]


def test_no_phrases_are_complete():
    phrases = Phrases([[], []], NUMBERS)
    assert phrases.count_remaining(phrases.firsts).tolist() == [0, 0]
    assert not phrases.completing(phrases.firsts).any()
