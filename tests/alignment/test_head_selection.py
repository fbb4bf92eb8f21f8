import pytest
import torch

from regard.alignment.head import Head
from regard.alignment.head_selection import candidates, choose
from regard.alignment.links import Gold
from regard.alignment.soft import Soft
from regard.alignment.words import Units
from regard.errors import ConfigError


def words(count):
    """So many words of one token each, and the end."""
    return Units(tuple("abcdef"[:count]), torch.eye(count + 1, dtype=torch.bool)[:count])


def looking(*places):
    """Weights that look at one place in each step, and at the end in the last one."""
    return torch.eye(4)[torch.tensor(places)]


def pair():
    """Of two layers with two heads, the second head of the first looks right, one step too late."""
    first = torch.stack((looking(0, 0, 0, 3), looking(3, 2, 0, 1)))
    second = torch.stack((looking(2, 1, 0, 3), looking(2, 2, 1, 3)))
    return Soft(words(3), words(3), {"decoder.0.cross": first, "decoder.0.self": first, "decoder.1.cross": second})


GOLD = Gold({(2, 0), (0, 1), (1, 2)})


def test_candidates_are_all_heads_and_their_means_both_where_a_word_is_written_and_read():
    found = candidates(pair().weights)
    assert len(found) == len(set(found)) == 2 * 3 * 2
    assert {each.attention for each in found} == {"decoder.0.cross", "decoder.1.cross"}
    assert candidates({"decoder.cross": torch.ones(1, 2, 2)}) == [Head("decoder.cross"), Head("decoder.cross", shift=True)]


@pytest.mark.parametrize("by", ["aer", "f1", "accuracy"])
def test_the_best_head_comes_first(by):
    found = choose([pair(), pair()], [GOLD, GOLD], by)
    assert found[0].head == Head("decoder.0.cross", 1, shift=True)
    assert found[0].figures["aer"] == 0
    ranked = [each.figures[by] for each in found]
    assert ranked == sorted(ranked, reverse=by != "aer")


def test_of_equals_the_first_wins():
    even = Soft(words(3), words(3), {"decoder.cross": looking(0, 1, 2, 3)[None].expand(2, -1, -1)})
    assert choose([even], [Gold({(0, 0), (1, 1), (2, 2)})])[0].head == Head("decoder.cross")


def test_a_model_without_attention_has_nothing_to_choose_from():
    with pytest.raises(ConfigError, match="an alignment needs an attention over the source, and this model has none"):
        choose([pair()._replace(weights={})], [GOLD])
