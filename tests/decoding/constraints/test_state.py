import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import pad
from regard.data.special_tokens import BOS, EOS
from regard.decoding import beam, greedy, rate, sample
from regard.decoding.constraints.prefix import Prefix
from regard.decoding.constraints.spelling import Spelling
from regard.decoding.constraints.state import Constraints, Guard, unsatisfiable_error

from ..decoders import Recurrent, Transformer, apart, random_table, sources, table, together

DECODERS = [Recurrent, Transformer]
FREE = Constraints()


def guard(*constraints: Constraints, vocabulary: int = 8, block: int = 0) -> Guard:
    return Guard(constraints, Spelling.numbers(vocabulary), block)


def holds(target: list[int], phrase: tuple[int, ...]) -> bool:
    return any(tuple(target[start : start + len(phrase)]) == phrase for start in range(len(target)))


def keeps(target: list[int], prefix: list[int], include: list[tuple[int, ...]], exclude: list[tuple[int, ...]], block: int):
    """Whether a target is as asked, by looking at it whole."""
    inner = [token for token in target if token != EOS]
    groups = [tuple(inner[start : start + block]) for start in range(len(inner) - block + 1)] if block else []
    return (
        inner[: len(prefix)] == prefix
        and all(holds(inner, phrase) for phrase in include)
        and not any(holds(inner, phrase) for phrase in exclude)
        and len(set(groups)) == len(groups)
    )


def every_target(logs: torch.Tensor, length: int) -> list[tuple[list[int], float]]:
    """All targets of at most `length` tokens that end, and what a table thinks of them."""
    inner = [token for token in range(logs.shape[-1]) if token not in (0, 1, EOS)]
    targets = [[*body, EOS] for size in range(length) for body in product(inner, repeat=size)]
    scores = [sum(float(logs[a, b]) for a, b in zip([BOS, *each], each, strict=False)) for each in targets]
    return list(zip(targets, scores, strict=True))


CASES = [
    ([4], [], [], 0),
    ([4, 5], [(3,)], [], 0),
    ([], [(3, 4)], [], 0),
    ([], [(3, 4), (4, 5)], [], 0),
    ([], [(3, 3, 4)], [], 0),
    ([], [(5,), (3, 4)], [(4, 5), (5, 5)], 0),
    ([], [], [(3,), (4, 4)], 0),
    ([], [], [], 1),
    ([5], [(3, 4)], [(4, 3)], 2),
    ([], [(4,), (4, 5)], [], 1),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_wide_beam_finds_the_best_of_all_targets_that_are_as_asked(case):
    prefix, include, exclude, block = case
    decoder = random_table(3, 6, sharpness=2.0, seed=len(str(case)))
    asked = Constraints(Prefix.forced(prefix), tuple(include), tuple(exclude))
    found = beam(decoder, decoder.memory, beams=400, length=6, guard=guard(*[asked] * 3, vocabulary=6, block=block))
    logs = decoder.memory.log_softmax(-1).double()
    for sentence, (best,) in enumerate(found):
        fine = {
            tuple(target): score / len(target) for target, score in every_target(logs[sentence], 6) if keeps(target, *case)
        }
        assert best.finished
        assert fine[tuple(best.tokens)] == pytest.approx(max(fine.values()), abs=1e-6)  # several may be equally good
        assert best.normalised == pytest.approx(max(fine.values()), abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), beams=st.integers(1, 6), seed=st.integers(0, 10_000))
def test_whatever_the_beam_every_target_is_as_asked(data, beams, seed):
    token = st.integers(3, 9)
    phrase = st.lists(token, min_size=1, max_size=3).map(tuple)
    prefix = data.draw(st.lists(token, max_size=3))
    include = data.draw(st.lists(phrase, max_size=3))
    asked = Constraints(Prefix.forced(prefix), tuple(include))
    decoder = random_table(2, 10, sharpness=3.0, seed=seed)
    guarded = guard(asked, FREE, vocabulary=10)
    found = beam(decoder, decoder.memory, beams=beams, best=beams, length=guarded.room[0], guard=guarded)
    assert all(keeps(each.tokens, prefix, include, [], 0) for each in found[0])


@settings(max_examples=15, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10_000), block=st.integers(0, 3))
def test_neither_greedy_search_nor_beams_nor_samples_write_what_they_must_not(data, seed, block):
    phrase = st.lists(st.integers(3, 6), min_size=1, max_size=3).map(tuple)
    exclude = data.draw(st.lists(phrase, max_size=3))
    decoder, asked = random_table(3, 7, sharpness=2.0, seed=seed), Constraints(exclude=tuple(exclude))
    wanted = {"length": 9, "guard": guard(*[asked] * 3, vocabulary=7, block=block)}
    generator = torch.Generator().manual_seed(seed)
    found = greedy(decoder, decoder.memory, **wanted) + sample(decoder, decoder.memory, generator=generator, **wanted)
    found += [each for few in beam(decoder, decoder.memory, beams=4, best=4, **wanted) for each in few]
    found += [each for few in beam(decoder, decoder.memory, beams=4, best=4, groups=2, **wanted) for each in few]
    assert all(keeps(each.tokens, [], [], exclude, block) for each in found)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_score_is_what_the_model_thinks_of_the_whole_target(kind):
    decoder = kind()
    memory = decoder.remember(sources(5))
    asked = Constraints(Prefix.forced([7, 5]), ((4, 6), (9,)), ((3,),))
    found = [few[0] for few in beam(decoder, memory, beams=6, length=14, guard=guard(*[asked] * 5, vocabulary=12, block=3))]
    rated = rate(decoder, memory, pad([each.tokens for each in found]))
    assert [each.score for each in found] == pytest.approx(rated.scores.tolist(), abs=1e-5)
    assert all(each.tokens[:2] == [7, 5] for each in found)


@pytest.mark.parametrize("kind", DECODERS)
def test_in_double_precision_a_score_is_the_rating_to_a_millionth(kind):
    decoder = kind().double()
    encoded = sources(4)
    memory = decoder.remember(encoded._replace(data=encoded.data.double()))
    asked = Constraints(Prefix.forced([7]), ((4, 6),), ((3,),))
    found = [few[0] for few in beam(decoder, memory, beams=6, length=14, guard=guard(*[asked] * 4, vocabulary=12))]
    rated = rate(decoder, memory, pad([each.tokens for each in found]))
    assert [each.score for each in found] == pytest.approx(rated.scores.tolist(), abs=1e-6)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_sentence_with_constraints_does_not_see_the_batch_it_is_in(kind):
    decoder = kind()
    each = apart(sources(5))
    asked = [
        FREE,
        Constraints(include=((4, 6), (9,))),
        Constraints(Prefix.forced([8, 8])),
        Constraints(exclude=((5,), (6, 7))),
        Constraints(Prefix.forced([3]), ((10, 11, 10),), ((4,),)),
    ]
    wanted = {"beams": 5, "best": 3, "length": 12}
    found = beam(decoder, decoder.remember(together(each)), guard=guard(*asked, vocabulary=12, block=2), **wanted)
    for place, (source, few) in enumerate(zip(each, found, strict=True)):
        alone = guard(asked[place], vocabulary=12, block=2)
        [expected] = beam(decoder, decoder.remember(together([source])), guard=alone, **wanted)
        assert [one.tokens for one in few] == [one.tokens for one in expected]
        assert [one.score for one in few] == pytest.approx([one.score for one in expected], abs=1e-4)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_guard_that_asks_for_nothing_changes_nothing(kind):
    decoder = kind()
    memory = decoder.remember(sources(6))
    free = guard(*[FREE] * 6, vocabulary=12)
    assert beam(decoder, memory, beams=4, best=3, length=9, guard=free) == beam(decoder, memory, beams=4, best=3, length=9)
    assert greedy(decoder, memory, length=9, guard=free) == greedy(decoder, memory, length=9)


def test_greedy_search_begins_as_it_must_and_then_goes_its_way():
    decoder = table({1: {4: 0.9, 5: 0.1}, 4: {EOS: 1.0}, 5: {6: 0.7, EOS: 0.3}, 6: {EOS: 1.0}})
    (found,) = greedy(decoder, decoder.memory, length=5, guard=guard(Constraints(Prefix.forced([5]))))
    assert found.tokens == [5, 6, EOS]
    assert math.exp(found.score) == pytest.approx(0.1 * 0.7)


def test_a_prefix_may_repeat_itself_but_not_be_repeated():
    decoder = table({token: {4: 0.9, 5: 0.06, EOS: 0.04} for token in (1, 4, 5)})
    asked = guard(Constraints(Prefix.forced([4, 4, 4])), block=2)
    (found,) = greedy(decoder, decoder.memory, length=9, guard=asked)
    assert found.tokens == [4, 4, 4, 5, 4, EOS]  # then neither 4 4 nor 4 5 is new


def test_phrases_go_where_they_cost_least():
    # 4 is nearly certain at first and 6 after it; 5 is likelier as the second word than as the first
    decoder = table({1: {4: 0.98, 5: 0.02}, 4: {6: 0.7, 5: 0.3}, 5: {6: 1.0}, 6: {EOS: 0.99, 5: 0.01}})
    [[found]] = beam(decoder, decoder.memory, beams=4, length=9, guard=guard(Constraints(include=((5,),))))
    assert found.tokens == [4, 5, 6, EOS]


def test_an_unfinished_phrase_starts_again():
    # after 4 4 the phrase 4 5 is still half written
    decoder = table({1: {4: 1.0}, 4: {4: 0.9, 5: 0.1}, 5: {EOS: 1.0}})
    [[found]] = beam(
        decoder, decoder.memory, beams=4, length=4, length_penalty=0.0, guard=guard(Constraints(include=((4, 4, 5),)))
    )
    assert found.tokens == [4, 4, 5, EOS]


@pytest.mark.parametrize("search", [greedy, lambda *each, **more: beam(*each, beams=3, **more)])
def test_what_contradicts_itself_is_an_error(search):
    decoder = random_table(1, 8)
    asked = guard(Constraints(Prefix.forced([4, 5]), exclude=((4, 5),)))
    with pytest.raises(ValueError, match="no target keeps to the constraints: at step 2 nothing is possible"):
        search(decoder, decoder.memory, length=9, guard=asked)


def test_a_phrase_that_the_model_cannot_write_is_an_error():
    decoder = table({1: {4: 0.5, EOS: 0.5}, 4: {4: 0.5, EOS: 0.5}})
    with pytest.raises(ValueError, match="no target keeps to the constraints"):
        beam(decoder, decoder.memory, beams=3, length=4, guard=guard(Constraints(include=((5,),))))


@pytest.mark.parametrize("search", [greedy, lambda *each, **more: beam(*each, beams=3, **more)])
def test_a_target_must_have_room_for_what_it_holds(search):
    decoder = random_table(2, 8)
    asked = guard(FREE, Constraints(Prefix.forced([4, 5, 6])))
    with pytest.raises(ValueError, match="length needs to be 3 or more for all that sentence 1 must hold, got 2; allow"):
        search(decoder, decoder.memory, length=2, guard=asked)
    assert decoder.rows == []


def test_phrases_need_beam_search():
    decoder = random_table(1, 8)
    with pytest.raises(ValueError, match="a target that must hold phrases needs beam search"):
        greedy(decoder, decoder.memory, length=4, guard=guard(Constraints(include=((5,),))))


def test_phrases_and_groups_do_not_go_together():
    decoder = random_table(1, 8)
    with pytest.raises(ValueError, match="groups needs to be 1 where a target must hold phrases, got 2"):
        beam(decoder, decoder.memory, beams=4, groups=2, length=4, guard=guard(Constraints(include=((5,),))))


def test_each_sentence_needs_its_constraints():
    decoder = random_table(2, 8)
    with pytest.raises(ValueError, match="a guard needs constraints for each of 2 sentences, got 1"):
        greedy(decoder, decoder.memory, length=4, guard=guard(FREE))


def test_bad_guards_are_errors():
    with pytest.raises(ValueError, match="block needs to be 0 or more tokens, got -1; 0 lets a target repeat itself"):
        guard(FREE, block=-1)
    with pytest.raises(ValueError, match="a phrase needs at least one token, got one of none; leave it out"):
        guard(Constraints(exclude=((),)))


def test_having_no_way_on_says_what_may_be_in_the_way():
    with pytest.raises(ValueError, match=r"at step 3 nothing is possible that they allow.*ask for less"):
        raise unsatisfiable_error(3)
