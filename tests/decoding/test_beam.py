import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.special_tokens import EOS, UNK
from regard.decoding import beam, greedy
from regard.decoding.penalties import penalise_coverage, penalise_length

from .decoders import Recurrent, Table, Transformer, apart, by_hand, random_table, sources, table, together

DECODERS = [Recurrent, Transformer]


def every_target(tables: torch.Tensor, length: int, alpha: float) -> list[tuple[list[int], float, bool]]:
    """All targets of at most `length` tokens under one table, best first: what search would find if it never gave up."""
    logs = tables.log_softmax(-1).double()
    inner = [token for token in range(tables.shape[-1]) if token not in (0, 1, EOS)]
    bodies = [list(body) for size in range(length + 1) for body in product(inner, repeat=size)]
    targets = [[*body, EOS] for body in bodies if len(body) < length] + [body for body in bodies if len(body) == length]
    rated = []
    for target in targets:
        score = sum(float(logs[before, token]) for before, token in zip([1, *target], target, strict=False))
        rated.append((target, score / len(target) ** alpha, target[-1] == EOS))
    return sorted(rated, key=lambda each: (not each[2], -each[1]))


def test_it_finds_what_greedy_search_misses():
    # greedy: 4 (0.6) then at best 0.5; the better target begins with 5: 0.4 * 1
    decoder = table({1: {4: 0.6, 5: 0.4}, 4: {5: 0.5, 6: 0.5}, 5: {EOS: 1.0}, 6: {EOS: 1.0}})
    assert greedy(decoder, decoder.memory, length=9)[0].tokens == [4, 5, EOS]
    ((found,),) = beam(decoder, decoder.memory, beams=2, length=9, length_penalty=0.0)
    assert found.tokens == [5, EOS]
    assert math.exp(found.score) == pytest.approx(0.4)
    assert found.normalised == found.score


def test_the_length_penalty_lets_longer_targets_win():
    # 5 EOS: 0.4; 4 6 EOS: 0.6 * 0.55 = 0.33, the longer one has the better mean
    decoder = table({1: {4: 0.6, 5: 0.4}, 4: {6: 0.55, 5: 0.45}, 5: {EOS: 1.0}, 6: {EOS: 1.0}})
    short, long = (beam(decoder, decoder.memory, beams=2, length=9, length_penalty=alpha)[0][0] for alpha in (0.0, 1.0))
    assert short.tokens == [5, EOS]
    assert long.tokens == [4, 6, EOS]
    assert long.normalised == long.score / 3


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("size", [5, 6])
def test_a_beam_that_is_wide_enough_finds_what_exhaustive_search_finds(size, alpha):
    decoder = random_table(4, size, sharpness=2.0, seed=size)
    for length in range(1, 6):
        found = beam(decoder, decoder.memory, beams=1000, best=1000, length=length, length_penalty=alpha)
        for sentence in range(4):
            expected = every_target(decoder.memory[sentence], length, alpha)
            assert [each.finished for each in found[sentence]] == [finished for _, _, finished in expected]
            assert [each.normalised for each in found[sentence]] == pytest.approx(
                [score for _, score, _ in expected], abs=1e-5
            )
            assert sorted(each.tokens for each in found[sentence]) == sorted(tokens for tokens, _, _ in expected)
            assert found[sentence][0].tokens == expected[0][0]


@pytest.mark.parametrize("kind", DECODERS)
def test_a_wide_beam_finds_the_best_target_of_a_decoder_with_state(kind):
    decoder = kind(vocabulary=5, sharpness=3.0)
    memory = decoder.remember(sources(3))
    found = beam(decoder, memory, beams=40, length=4)
    bodies = [list(body) for size in range(4) for body in product([3, 4], repeat=size)]
    for sentence in range(3):
        scores = {(*body, EOS): sum(by_hand(decoder, memory, sentence, [*body, EOS])) / (len(body) + 1) for body in bodies}
        assert tuple(found[sentence][0].tokens) == max(scores, key=scores.get)
        assert found[sentence][0].normalised == pytest.approx(max(scores.values()), abs=1e-5)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_beam_of_one_is_greedy_search(kind):
    for seed in range(3):
        torch.manual_seed(seed)
        decoder = kind()
        memory = decoder.remember(sources(16, seed=seed))
        assert [each for (each,) in beam(decoder, memory, beams=1, length=10)] == greedy(decoder, memory, length=10)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_beam_of_one_looks_where_greedy_search_looks(kind):
    decoder = kind()
    memory = decoder.remember(sources(6))
    found = beam(decoder, memory, beams=1, length=10, weights=True)
    for (one,), other in zip(found, greedy(decoder, memory, length=10, weights=True), strict=True):
        assert one.weights.keys() == other.weights.keys()
        assert all(weights.equal(other.weights[name]) for name, weights in one.weights.items())


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    beams=st.integers(1, 6),
    size=st.integers(4, 9),
    length=st.integers(1, 12),
    alpha=st.sampled_from([0.0, 0.3, 1.0, 1.7]),
    sharpness=st.sampled_from([0.0, 1.0, 4.0]),
    data=st.data(),
)
def test_the_early_stop_changes_nothing(seed, beams, size, length, alpha, sharpness, data):
    decoder, best = random_table(4, size, sharpness, seed), data.draw(st.integers(1, beams))
    wanted = {"beams": beams, "best": best, "length": length, "length_penalty": alpha}
    early = beam(decoder, decoder.memory, **wanted)
    steps, decoder.rows = sum(decoder.rows), []
    assert early == beam(decoder, decoder.memory, early=False, **wanted)
    assert steps <= sum(decoder.rows)


def test_the_early_stop_changes_nothing_with_coverage_either():
    decoder = Recurrent(sharpness=2.0)
    memory = decoder.remember(sources(12))
    wanted = {"beams": 4, "best": 2, "length": 15, "coverage_penalty": 0.5}
    assert beam(decoder, memory, **wanted) == beam(decoder, memory, early=False, **wanted)


def test_the_early_stop_saves_steps():
    # EOS is nearly certain at once: nothing that goes on can catch up
    decoder = table({1: {EOS: 0.98, 4: 0.02}, 4: {4: 0.9, EOS: 0.1}})
    beam(decoder, decoder.memory, beams=2, length=50, length_penalty=0.0)
    assert decoder.rows == [1]
    decoder.rows.clear()
    beam(decoder, decoder.memory, beams=2, length=50, length_penalty=0.0, early=False)
    assert len(decoder.rows) > 1


@pytest.mark.parametrize("kind", DECODERS)
def test_the_best_few_are_sorted_distinct_and_rated_right(kind):
    decoder = kind(sharpness=2.0)
    memory = decoder.remember(sources(8))
    for sentence, few in enumerate(beam(decoder, memory, beams=5, best=5, length=8)):
        assert len(few) == 5
        assert len({tuple(each.tokens) for each in few}) == 5
        assert few == sorted(few, key=lambda each: (not each.finished, -each.normalised))
        for each in few:
            assert each.logprobs == pytest.approx(by_hand(decoder, memory, sentence, each.tokens), abs=1e-5)
            assert each.score == sum(each.logprobs)
            assert each.normalised == penalise_length(each.score, len(each.tokens), 1.0)
            assert each.finished == (each.tokens[-1] == EOS)
            assert not {0, 1, EOS} & set(each.tokens[:-1])


def test_the_memory_is_shared_by_the_beams_and_never_repeated():
    decoder = Recurrent()
    beam(decoder, decoder.remember(sources(6)), beams=5, length=8, early=False)
    assert max(decoder.sources) == 6
    assert decoder.rows[0] == 6, "at first all beams are one"
    assert decoder.rows[1] == 30
    assert all(rows % count == 0 and rows <= 5 * count for rows, count in zip(decoder.rows, decoder.sources, strict=True))


def test_sentences_leave_when_they_are_done():
    logits = torch.full((3, 8, 8), -20.0)
    logits[0, :, EOS], logits[1, :4, 4], logits[1, 4, EOS], logits[2, :, 4] = 0.0, 0.0, 0.0, 0.0
    decoder = Table(logits)
    found = beam(decoder, decoder.memory, beams=2, length=4)
    assert [each.tokens for (each,) in found] == [[EOS], [4, EOS], [4, 4, 4, EOS]]
    assert decoder.sources == [3, 2, 1, 1]
    assert decoder.rows == [3, 4, 2, 2]


def test_each_sentence_may_have_its_own_limit():
    decoder = table({1: {4: 1.0}, 4: {4: 1.0}}, sources=4)
    found = beam(decoder, decoder.memory, beams=2, length=[3, 0, 1, 2])
    assert [each.tokens for (each,) in found] == [[4, 4, 4], [], [4], [4, 4]]
    assert not any(each.finished for (each,) in found)
    assert decoder.sources == [3, 2, 1]


def test_a_limit_of_nothing_finds_nothing_and_asks_nothing():
    decoder = random_table(2, 8)
    assert beam(decoder, decoder.memory, beams=3, length=0) == [[([], 0.0, 0.0, [], False, None, None)]] * 2
    assert decoder.rows == []


def test_a_limit_of_one_finds_one_token():
    decoder = random_table(2, 8)
    found = beam(decoder, decoder.memory, beams=3, best=3, length=1)
    assert [[len(each.tokens) for each in few] for few in found] == [[1, 1, 1]] * 2


def test_an_empty_batch_has_no_targets():
    decoder = random_table(0, 8)
    assert beam(decoder, decoder.memory, beams=3, length=3) == []


def test_beams_may_outnumber_the_vocabulary():
    decoder = random_table(2, 5)
    few = beam(decoder, decoder.memory, beams=50, best=50, length=2)
    assert [len(each) for each in few] == [7, 7]  # EOS; 3 and 4 with EOS; 3 and 4 with 3 and 4
    assert decoder.rows == [2, 4]


def test_fewer_are_found_where_there_are_no_more():
    decoder = table({1: {4: 0.5, EOS: 0.5}})
    assert [each.tokens for each in beam(decoder, decoder.memory, beams=5, best=5, length=9)[0]] == [[4, EOS], [EOS]]


def test_a_finished_target_comes_before_one_that_was_cut_off():
    decoder = table({1: {4: 0.99, EOS: 0.01}, 4: {4: 1.0}})
    few = beam(decoder, decoder.memory, beams=2, best=2, length=3)[0]
    assert [(each.tokens, each.finished) for each in few] == [([EOS], True), ([4, 4, 4], False)]


def test_poor_early_endings_do_not_stop_a_good_hypothesis():
    decoder = table({1: {4: 0.99, EOS: 0.01}, 4: {5: 0.99, EOS: 0.01}, 5: {6: 0.99, EOS: 0.01}})
    few = beam(decoder, decoder.memory, beams=2, best=2, length=9)[0]
    assert few[0].tokens == [4, 5, 6, EOS]


def test_ties_go_to_the_one_that_ended_first_then_to_the_lowest_token():
    decoder = Table(torch.zeros(1, 6, 6))
    few = beam(decoder, decoder.memory, beams=3, best=3, length=9)[0]
    assert [each.tokens for each in few] == [[EOS], [3, EOS], [3, 3, EOS]]
    assert beam(decoder, decoder.memory, beams=3, best=3, length=9)[0] == few


def test_pad_and_bos_never_come_out_even_if_the_model_likes_them_best():
    decoder = random_table(20, 8)
    decoder.memory[..., :2] += 10
    for few in beam(decoder, decoder.memory, beams=4, best=4, length=6):
        assert not any({0, 1} & set(each.tokens) for each in few)


def test_unknown_tokens_come_out_unless_forbidden():
    decoder = table({1: {UNK: 0.6, 4: 0.4}})
    assert beam(decoder, decoder.memory, beams=2, length=9)[0][0].tokens == [UNK, EOS]
    assert beam(decoder, decoder.memory, beams=2, length=9, unknown=False)[0][0].tokens == [4, EOS]


@pytest.mark.parametrize("length", [2, 9])
def test_having_no_way_on_is_an_error_only_if_nothing_was_found(length):
    decoder = table({1: {4: 1.0}, 4: {UNK: 1.0}})
    with pytest.raises(ValueError, match="decoding needs a possible token at step 2"):
        beam(decoder, decoder.memory, beams=3, length=length, unknown=False)
    decoder = table({1: {4: 0.5, EOS: 0.5}, 4: {UNK: 1.0}})
    assert [each.tokens for each in beam(decoder, decoder.memory, beams=3, best=3, length=length, unknown=False)[0]] == [
        [EOS]
    ]


def test_nan_is_an_error():
    decoder = Table(torch.full((1, 8, 8), float("nan")))
    with pytest.raises(ValueError, match="got NaN"):
        beam(decoder, decoder.memory, beams=2, length=9)


@pytest.mark.parametrize("kind", DECODERS)
def test_coverage_is_what_the_weights_add_up_to(kind):
    decoder, beta = kind(sharpness=2.0), 0.7
    memory = decoder.remember(sources(6))
    name = "attention" if kind is Recurrent else "decoder.0.cross"
    for attention in (None, name):
        wanted = {"coverage_penalty": beta, "attention": attention, "weights": True}
        for few in beam(decoder, memory, beams=4, best=4, length=8, **wanted):
            for each in few:
                penalty = penalise_coverage(each.weights[name].mean(0).sum(0)[None]).item()
                assert each.normalised == pytest.approx(each.score / len(each.tokens) + beta * penalty, abs=1e-5)
            ends = [each.normalised for each in few if each.finished]
            assert ends == sorted(ends, reverse=True)


def test_weights_come_only_when_asked_for():
    decoder = Recurrent()
    memory = decoder.remember(sources(2))
    assert beam(decoder, memory, beams=2, length=5, coverage_penalty=0.5)[0][0].weights is None
    assert beam(decoder, memory, beams=2, length=0, weights=True)[0][0].weights == {}


@pytest.mark.parametrize("kind", DECODERS)
def test_weights_are_those_of_the_chosen_hypothesis(kind):
    decoder, encoded = kind(sharpness=2.0), sources(5)
    found = beam(decoder, decoder.remember(encoded), beams=4, best=4, length=7, weights=True)
    for source, few in zip(apart(encoded), found, strict=True):
        alone = decoder.remember(together([source]))
        for each in few:
            taught = decoder(torch.tensor([[1, *each.tokens[:-1]]]), alone, weights=True)
            for name, weights in each.weights.items():
                torch.testing.assert_close(weights, taught.attended[name].weights[0], rtol=0, atol=1e-5)


def needles_in_batches(kind: type, batches: int, needles: int) -> None:
    """N4 for the beam: the same best few alone and in batches of 2 to 64, wherever the sentence stands."""
    generator = torch.Generator().manual_seed(batches)
    decoder, hay = kind(), apart(sources(256, seed=2))
    wanted = {"beams": 4, "best": 2, "length": 8, "coverage_penalty": 0.2}
    for _ in range(batches):
        size = int(torch.randint(2, 65, (), generator=generator))
        batch = [hay[each] for each in torch.randint(0, len(hay), (size,), generator=generator).tolist()]
        found = beam(decoder, decoder.remember(together(batch)), **wanted)
        for place in torch.randint(0, size, (needles,), generator=generator).tolist():
            (alone,) = beam(decoder, decoder.remember(together([batch[place]])), **wanted)
            assert [each.tokens for each in found[place]] == [each.tokens for each in alone]
            assert [each.normalised for each in found[place]] == pytest.approx([each.normalised for each in alone], abs=1e-4)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_sentence_does_not_see_the_batch_it_is_in(kind):
    needles_in_batches(kind, 5, needles=4)


@pytest.mark.soak
@pytest.mark.parametrize("kind", DECODERS)
def test_a_sentence_does_not_see_any_of_many_batches(kind):
    needles_in_batches(kind, 200, needles=1)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"beams": 0}, "beams needs to be 1 or more, got 0; 1 is greedy search"),
        ({"beams": 2, "best": 3}, r"best needs to be from 1 to beams \(2\), got 3; raise beams to find more"),
        ({"beams": 2, "best": 0}, r"best needs to be from 1 to beams \(2\), got 0"),
        ({"beams": 2, "length_penalty": -0.1}, "length_penalty needs to be from 0 to 10, got -0.1; 0 turns it off"),
        ({"beams": 2, "length_penalty": math.nan}, "length_penalty needs to be from 0 to 10, got nan"),
        ({"beams": 2, "coverage_penalty": -1.0}, "coverage_penalty needs to be 0 or more and finite, got -1.0"),
        ({"beams": 2, "coverage_penalty": math.inf}, "coverage_penalty needs to be 0 or more and finite, got inf"),
        ({"beams": 2, "length": -1}, "length needs to be 0 or more tokens, got -1"),
    ],
)
def test_bad_settings_are_errors_before_anything_is_decoded(wanted, message):
    decoder = random_table(1, 8)
    with pytest.raises(ValueError, match=message):
        beam(decoder, decoder.memory, **({"length": 3} | wanted))
    assert decoder.rows == []


def test_a_decoder_without_attention_has_nothing_to_cover():
    decoder = random_table(1, 8)
    with pytest.raises(ValueError, match="coverage_penalty needs an attention over the source"):
        beam(decoder, decoder.memory, beams=2, length=3, coverage_penalty=0.1)


def test_an_attention_that_does_not_exist_is_an_error():
    decoder = Recurrent()
    with pytest.raises(ValueError, match="no attention of this decoder is called 'cross'; there are attention"):
        beam(decoder, decoder.remember(sources(1)), beams=2, length=3, coverage_penalty=0.1, attention="cross")
