import math

import pytest
import torch

from regard.data.special_tokens import EOS
from regard.decoding import beam
from regard.decoding.backpointers import Ending
from regard.decoding.diverse import merge_groups
from regard.decoding.search_tree import SearchTree

from .decoders import Recurrent, Transformer, apart, by_hand, random_table, sources, table, together

DECODERS = [Recurrent, Transformer]


@pytest.mark.parametrize("kind", DECODERS)
def test_one_group_is_plain_beam_search_bit_for_bit(kind):
    decoder = kind()
    memory = decoder.remember(sources(6))
    wanted = {"beams": 4, "best": 4, "length": 9}
    assert beam(decoder, memory, groups=1, diversity=3.0, **wanted) == beam(decoder, memory, **wanted)


@pytest.mark.parametrize("kind", DECODERS)
def test_the_first_group_is_a_beam_of_its_own_and_without_a_fine_all_are_the_same(kind):
    decoder = kind()
    memory = decoder.remember(sources(6))
    plain = beam(decoder, memory, beams=2, best=2, length=9)
    apart_ = beam(decoder, memory, beams=6, best=6, length=9, groups=3, diversity=2.0)
    alike = beam(decoder, memory, beams=6, best=6, length=9, groups=3, diversity=0.0)
    for expected, several, same in zip(plain, apart_, alike, strict=True):
        assert {tuple(each.tokens) for each in expected} <= {tuple(each.tokens) for each in several}
        assert [each.tokens for each in same] == [each.tokens for each in expected]


def test_a_group_keeps_away_from_what_the_one_before_it_writes():
    # 4 is likeliest by log 0.5 - log 0.3 = 0.51; a fine of 0.6 makes the second group take 5
    decoder = table({1: {4: 0.5, 5: 0.3, 6: 0.2}})
    few = beam(decoder, decoder.memory, beams=2, best=2, groups=2, diversity=0.6, length=4)[0]
    assert [each.tokens for each in few] == [[4, EOS], [5, EOS]]
    assert [math.exp(each.score) for each in few] == pytest.approx([0.5, 0.3]), "the fine is not in the score"
    few = beam(decoder, decoder.memory, beams=2, best=2, groups=2, diversity=0.4, length=4)[0]
    assert [each.tokens for each in few] == [[4, EOS]], "the same of both"


def test_fines_add_up_over_the_groups():
    # after two groups have written 4 it costs 1.2, more than log 0.6 - log 0.25
    decoder = table({1: {4: 0.6, 5: 0.25, 6: 0.15}})
    few = beam(decoder, decoder.memory, beams=3, best=3, groups=3, diversity=0.6, length=4)[0]
    assert [each.tokens for each in few] == [[4, EOS], [5, EOS]]
    assert len(beam(decoder, decoder.memory, beams=3, best=3, groups=3, diversity=2.0, length=4)[0]) == 3


@pytest.mark.parametrize("kind", DECODERS)
def test_what_is_found_is_sorted_distinct_and_rated_right(kind):
    decoder = kind(sharpness=2.0)
    memory = decoder.remember(sources(5))
    for sentence, few in enumerate(beam(decoder, memory, beams=6, best=6, groups=3, length=8)):
        assert len({tuple(each.tokens) for each in few}) == len(few) > 2
        assert few == sorted(few, key=lambda each: (not each.finished, -each.normalised))
        for each in few:
            assert each.logprobs == pytest.approx(by_hand(decoder, memory, sentence, each.tokens), abs=1e-5)
            assert each.score == sum(each.logprobs)


@pytest.mark.parametrize("kind", DECODERS)
def test_groups_make_the_list_more_diverse(kind):
    decoder = kind(sharpness=2.0)
    memory = decoder.remember(sources(12))

    def firsts(**more):
        found = beam(decoder, memory, beams=6, best=6, length=8, **more)
        return sum(len({each.tokens[0] for each in few}) for few in found)

    assert firsts(groups=6, diversity=2.0) > firsts()


@pytest.mark.parametrize("kind", DECODERS)
def test_a_sentence_searched_by_groups_does_not_see_its_batch(kind):
    decoder = kind()
    each = apart(sources(7))
    wanted = {"beams": 6, "best": 4, "length": 8, "groups": 3, "coverage_penalty": 0.2}
    found = beam(decoder, decoder.remember(together(each)), **wanted)
    for source, few in zip(each, found, strict=True):
        [alone] = beam(decoder, decoder.remember(together([source])), **wanted)
        assert [one.tokens for one in few] == [one.tokens for one in alone]


def test_a_tree_shows_the_groups_and_where_the_answer_ends():
    decoder, tree = random_table(1, 8, sharpness=2.0), SearchTree()
    [[found]] = beam(decoder, decoder.memory, beams=4, groups=2, length=6, tree=tree)
    level, place = tree.best
    tokens = []
    for number in range(level, -1, -1):
        tokens.append(tree.levels[number].tokens[place])
        place = tree.levels[number].parents[place]
    assert tokens[::-1] == found.tokens


def test_the_best_of_every_group_comes_before_the_second_of_any():
    def ending(value, token):
        return Ending(0, 0, 0, token, value, value, value, True)

    pools = [[ending(-1.0, 4), ending(-2.0, 5)], [ending(-1.0, 4), ending(-6.0, 7)], [ending(-5.0, 6)]]
    assert [each.token for each in merge_groups(pools, 2, lambda each: each.token)] == [4, 6]
    assert [each.token for each in merge_groups(pools, 9, lambda each: each.token)] == [4, 5, 6, 7]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"beams": 4, "groups": 3}, r"groups needs to be a number that beams \(4\) can be shared out to, got 3; 4 groups"),
        ({"beams": 4, "groups": 0}, "can be shared out to, got 0"),
        ({"beams": 4, "groups": 2, "diversity": -1.0}, "diversity needs to be 0 or more and finite, got -1.0; 0 lets"),
    ],
)
def test_bad_groups_are_errors(wanted, message):
    decoder = random_table(1, 8)
    with pytest.raises(ValueError, match=message):
        beam(decoder, decoder.memory, length=3, **wanted)


def test_sentences_that_end_at_different_times_leave():
    logits = torch.full((2, 8, 8), -20.0)
    logits[0, :, EOS], logits[1, :, 4] = 0.0, 0.0
    decoder = random_table(2, 8)
    decoder.memory = logits
    found = beam(decoder, decoder.memory, beams=2, groups=2, length=5)
    assert found[0][0].tokens == [EOS]
    assert decoder.sources[-1] == 1
