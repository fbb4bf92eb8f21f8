from dataclasses import replace

import pytest
import torch

from regard.config import Search
from regard.data.special_tokens import EOS
from regard.decoding import beam, greedy
from regard.decoding import search as finders
from regard.decoding.constraints.spelling import Spelling
from regard.decoding.constraints.state import Constraints, Guard
from regard.decoding.search import Searcher
from regard.decoding.search_tree import SearchTree
from regard.errors import ConfigError
from regard.metrics.reward import Reward

from .decoders import Recurrent, random_table, sources, table

PLAIN = Search(max_length=9)


def spelt(tokens):
    return " ".join(str(token) for token in tokens if token != EOS)


def twice(tokens):
    return spelt(4 if token == 5 else token for token in tokens)


def test_by_default_it_is_greedy_search_and_with_beams_it_is_beam_search():
    decoder = Recurrent()
    memory = decoder.remember(sources(4))
    assert Searcher(PLAIN, spelt)(decoder, memory, [9] * 4) == [[each] for each in greedy(decoder, memory, length=9)]
    found = Searcher(replace(PLAIN, beam=4), spelt)(decoder, memory, [9] * 4, best=2)
    assert found == beam(decoder, memory, beams=4, best=2, length=9)
    assert Searcher(PLAIN, spelt)(decoder, memory, [9] * 4, best=3) == beam(decoder, memory, beams=3, best=3, length=9)


def test_no_two_answers_have_one_text_and_the_next_best_fill_the_list():
    # 4 and 5 are two ways to write one thing
    decoder = table({1: {4: 0.5, 5: 0.3, 6: 0.15, 7: 0.05}})
    same = Searcher(replace(PLAIN, beam=4), twice)
    found = same(decoder, decoder.memory, [9], best=2)[0]
    assert [each.tokens for each in found] == [[4, EOS], [6, EOS]]


def test_more_answers_than_beams_widen_the_beam_to_whole_groups():
    decoder = random_table(1, 12)
    found = Searcher(replace(PLAIN, beam=2, beam_groups=2), spelt)(decoder, decoder.memory, [9], best=3)[0]
    assert found == beam(decoder, decoder.memory, beams=4, best=4, groups=2, length=9)[0][:3]


def test_phrases_are_looked_for_with_a_beam_even_where_greedy_search_is_set():
    decoder = random_table(2, 8)
    guard = Guard([Constraints(include=((5, 6),)), Constraints()], Spelling.numbers(8))
    found = Searcher(PLAIN, spelt)(decoder, decoder.memory, [9, 9], guard=guard)
    assert found == beam(decoder, decoder.memory, beams=8, length=9, guard=guard)
    assert "5 6" in spelt(found[0][0].tokens)


@pytest.mark.parametrize("draw", ["beam", "sample"])
def test_the_least_risk_is_what_the_definition_says(draw):
    decoder = random_table(1, 7, sharpness=2.0)
    settings = replace(PLAIN, mbr="edit", mbr_candidates=6, mbr_from=draw)
    utility = Reward("edit", spelt)
    few = Searcher(settings, spelt, utility, seed=3)(decoder, decoder.memory, [5], best=6)[0]
    assert few[0].normalised == max(each.normalised for each in few if each.finished)
    if draw == "beam":
        candidates = beam(decoder, decoder.memory, beams=6, best=6, length=5)[0]
        shares = torch.tensor([each.score for each in candidates]).softmax(0).tolist()
        for each in few:
            pairs = zip(candidates, shares, strict=True)
            assert each.normalised == pytest.approx(
                sum(share * utility(each.tokens, other.tokens) for other, share in pairs)
            )


def test_samples_come_from_the_seed():
    decoder = random_table(3, 9)
    settings = replace(PLAIN, mbr="exact", mbr_candidates=5, mbr_from="sample")
    one, two, other = (
        Searcher(settings, spelt, Reward("exact", spelt), seed)(decoder, decoder.memory, [5] * 3) for seed in (1, 1, 2)
    )
    assert one == two
    assert one != other


def test_the_tree_shows_the_answer_of_least_risk():
    # the likeliest target shares nothing with the other two, which share their first token
    decoder = table({1: {4: 0.4, 5: 0.6}, 4: {EOS: 1.0}, 5: {6: 0.5, 7: 0.5}})
    tree, settings = SearchTree(), replace(PLAIN, mbr="edit", mbr_candidates=3, beam=3)
    [[found]] = Searcher(settings, spelt, Reward("edit", spelt))(decoder, decoder.memory, [9], tree=tree)
    assert found.tokens == [5, 6, EOS]
    level, place = tree.best
    assert (level, tree.levels[level].tokens[place]) == (2, EOS)
    assert tree.levels[1].tokens[tree.levels[2].parents[place]] == 6


@pytest.mark.parametrize("beams", [1, 4])
def test_plain_search_and_the_search_that_knows_all_options_find_the_same(beams):
    decoder = Recurrent()
    memory = decoder.remember(sources(6))
    finder = Searcher(replace(PLAIN, beam=beams, length_penalty=0.5), spelt)
    plain, looking = (finder(decoder.eval(), memory, [9] * 6, weights=weights) for weights in (False, True))
    for (one,), (other,) in zip(plain, looking, strict=True):
        assert one.tokens == other.tokens
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-6)
        assert one.normalised == pytest.approx(other.normalised, abs=1e-6)


@pytest.mark.parametrize(
    "options", [{"beam_groups": 2, "beam": 2}, {"coverage_penalty": 0.1}, {"mbr": "chrf", "mbr_from": "sample"}]
)
def test_int8_is_for_plain_search(options):
    decoder = Recurrent().eval()
    finder = Searcher(replace(PLAIN, precision="int8", **options), spelt, Reward("chrf", spelt))
    with pytest.raises(ConfigError, match=r"search\.precision=int8 is for plain search"):
        finder(decoder, decoder.remember(sources(2)), [9] * 2)


def test_what_is_ready_on_a_gpu_searches_there(monkeypatch):
    asked = []

    def ready(decoder, memory, precision, compiled):
        asked.append((precision, compiled))
        return lambda memory, **options: beam(decoder, memory, **options)

    monkeypatch.setattr(finders, "select_gpu_search", ready)
    decoder = Recurrent().eval()
    memory = decoder.remember(sources(2))
    finder = Searcher(replace(PLAIN, beam=3, precision="bf16"), spelt, compiled=True)
    assert finder(decoder, memory, [9] * 2, best=2) == beam(decoder, memory, beams=3, best=2, length=9)
    assert asked == [("bf16", True)]
    with pytest.raises(ConfigError, match=r"search\.precision=bf16 is for plain search"):
        Searcher(replace(PLAIN, precision="bf16"), spelt)(decoder, memory, [9] * 2, weights=True)


def test_where_nothing_is_compiled_the_search_is_the_usual_one():
    decoder = Recurrent().eval()
    memory, finder = decoder.remember(sources(2)), Searcher(replace(PLAIN, beam=2), spelt, compiled=True)
    for weights in (False, True):
        mine, usual = finder(decoder, memory, [9] * 2, weights=weights), beam(decoder, memory, beams=2, length=9)
        assert [found[0].tokens for found in mine] == [found[0].tokens for found in usual]
