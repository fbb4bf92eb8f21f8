import math

import pytest
import torch

from regard.data.special_tokens import BOS, EOS
from regard.decoding import beam
from regard.decoding.search_tree import SearchTree

from .decoders import Recurrent, random_table, sources, table


def test_a_small_search_by_hand():
    # 4 (0.6) leads nowhere good; 5 (0.4) ends at once and wins
    decoder = table({1: {4: 0.6, 5: 0.4}, 4: {5: 0.5, 6: 0.5}, 5: {EOS: 1.0}, 6: {EOS: 1.0}})
    tree = SearchTree()
    ((found,),) = beam(decoder, decoder.memory, beams=2, length=9, length_penalty=0.0, tree=tree)
    assert found.tokens == [5, EOS]
    assert [level.tokens for level in tree.levels] == [[4, 5], [5, 6, EOS]]
    assert [level.parents for level in tree.levels] == [[0, 0], [0, 0, 1]]
    assert [level.ended for level in tree.levels] == [[False, False], [False, False, True]]
    chances = [[math.exp(score) for score in level.scores] for level in tree.levels]
    assert chances == [pytest.approx([0.6, 0.4]), pytest.approx([0.3, 0.3, 0.4])]
    assert tree.best == (1, 2)


@pytest.mark.parametrize("seed", range(20))
def test_the_way_back_from_the_best_is_what_was_found(seed):
    decoder = random_table(1, 9, sharpness=2.0, seed=seed)
    tree = SearchTree()
    ((found,),) = beam(decoder, decoder.memory, beams=4, length=7, tree=tree)
    step, place = tree.best
    assert tree.levels[step].scores[place] == pytest.approx(found.score)
    assert tree.levels[step].ended[place] == found.finished
    back = []
    while step >= 0:
        back.append(tree.levels[step].tokens[place])
        place, step = tree.levels[step].parents[place], step - 1
    assert back[::-1] == found.tokens
    assert BOS not in back


def test_a_search_that_is_watched_finds_the_same_and_knows_what_every_branch_looked_at():
    torch.manual_seed(0)
    decoder = Recurrent().eval()
    memory = decoder.remember(sources(1))
    tree = SearchTree()
    plain = beam(decoder, memory, beams=3, length=6, weights=True)
    watched = beam(decoder, memory, beams=3, length=6, weights=True, tree=tree)
    assert [each.tokens for each in plain[0]] == [each.tokens for each in watched[0]]
    step, place = tree.best
    rows = []
    while step >= 0:
        place = tree.levels[step].parents[place]
        [looked] = tree.levels[step].weights.values()
        rows.append(looked[place])
        step -= 1
    [weights] = watched[0][0].weights.values()
    assert torch.equal(torch.stack(rows[::-1], dim=1)[..., : weights.shape[-1]], weights)


def test_a_tree_is_of_one_sentence():
    decoder = random_table(2, 6)
    with pytest.raises(ValueError, match="a tree shows the search for one sentence, got 2; search for one at a time"):
        beam(decoder, decoder.memory, beams=2, length=3, tree=SearchTree())


def test_a_target_that_was_never_followed_is_not_marked():
    decoder, tree = random_table(1, 8), SearchTree()
    beam(decoder, decoder.memory, beams=2, length=3, tree=tree)
    assert tree.best is not None
    tree.follow([7] * 9)
    assert tree.best is None
