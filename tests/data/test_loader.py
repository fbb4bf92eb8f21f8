from itertools import chain
from time import perf_counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.loader import SequenceLoader
from regard.data.table import Record
from regard.data.text.codec import Example


def examples(*lengths: tuple[int, int | None]) -> list[Example]:
    """One example for each pair of lengths, its numbers saying which one it is."""
    return [
        Example([place + 4] * source, None if target is None else [place + 4] * target, Record("", None, f"x:{place}"))
        for place, (source, target) in enumerate(lengths)
    ]


def drawn(number: int, longest: int = 60) -> list[Example]:
    """Many examples of lengths like those of sentences."""
    chance = torch.Generator().manual_seed(1)
    sources = (torch.randn(number, generator=chance).abs() * longest / 3).long().clamp(1, longest).tolist()
    others = (torch.randn(number, generator=chance) * 2).round().long().tolist()
    return examples(*((source, max(1, source + other)) for source, other in zip(sources, others, strict=True)))


LENGTHS = st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90)), min_size=1, max_size=60)


@settings(max_examples=60)
@given(LENGTHS, st.integers(1, 300), st.integers(0, 2**40), st.integers(0, 2**40), st.booleans())
def test_an_epoch_has_every_example_once_and_keeps_the_budget(lengths, budget, seed, epoch, shuffle):
    loader = SequenceLoader(examples(*lengths), budget, seed, shuffle)
    batches = loader.epoch(epoch)
    assert len(batches) == loader.steps_per_epoch(epoch)
    assert sorted(chain.from_iterable(batches)) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(max(lengths[index]) for index in batch) <= budget


@settings(max_examples=40)
@given(LENGTHS, st.integers(1, 300), st.lists(st.integers(0, 200), min_size=1, max_size=10))
def test_a_step_has_the_same_batch_in_whatever_order_it_is_asked_for(lengths, budget, steps):
    made = examples(*lengths)
    once = SequenceLoader(made, budget, seed=3)
    for step in steps:
        fresh, again = SequenceLoader(made, budget, seed=3).batch(step), once.batch(step)
        assert torch.equal(fresh.source.data, again.source.data)
        assert torch.equal(fresh.target.data, again.target.data)
        assert fresh.records == again.records


def test_steps_count_on_through_the_epochs():
    loader = SequenceLoader(examples(*[(3, 3)] * 10), batch_tokens=9)
    assert loader.steps_per_epoch() == 4
    for step in range(12):
        expected = [f"x:{index}" for index in loader.epoch(step // 4)[step % 4]]
        assert [record.where for record in loader.batch(step).records] == expected


def test_a_step_far_ahead_is_found_at_once():
    loader = SequenceLoader(drawn(500), 400)
    start = perf_counter()
    loader.batch(10**15)
    assert perf_counter() - start < 1


def test_epochs_and_seeds_differ():
    made = drawn(200)
    loader = SequenceLoader(made, 400, seed=1)
    assert loader.epoch(0) != loader.epoch(1)
    assert loader.epoch(0) == SequenceLoader(made, 400, seed=1).epoch(0)
    assert loader.epoch(0) != SequenceLoader(made, 400, seed=2).epoch(0)
    assert sorted(map(sorted, loader.epoch(0))) != sorted(map(sorted, loader.epoch(1))), "not only the order of batches"


def test_without_shuffling_epochs_are_alike_and_in_order_of_length():
    loader = SequenceLoader(examples((5, 1), (1, 2), (3, 3)), batch_tokens=6, shuffle=False)
    assert loader.epoch(0) == loader.epoch(7) == [[1, 2], [0]]


def test_a_batch_is_padded_and_says_what_is_real():
    loader = SequenceLoader(examples((2, 1), (1, 3)), batch_tokens=100, shuffle=False)
    batch = loader.batch(0)
    assert batch.source.data.tolist() == [[4, 4], [5, 0]]
    assert batch.source.keep.tolist() == [[True, True], [True, False]]
    assert batch.target.data.tolist() == [[4, 0, 0], [5, 5, 5]]
    assert batch.target.keep.tolist() == [[True, False, False], [True, True, True]]
    assert batch.source.data.dtype == torch.long
    assert [record.where for record in batch.records] == ["x:0", "x:1"]


def test_the_budget_counts_padding_on_the_longer_side():
    # 2 x 4 targets fill it; a third of length 4 would not fit, however short the sources
    loader = SequenceLoader(examples((1, 4), (1, 4), (1, 4)), batch_tokens=8, shuffle=False)
    assert loader.epoch(0) == [[0, 1], [2]]


def test_an_example_over_the_budget_goes_alone():
    loader = SequenceLoader(examples((50, 2), (2, 2), (2, 50)), batch_tokens=8)
    assert sorted(map(sorted, loader.epoch(0))) == [[0], [1], [2]]


def test_sources_alone_will_do():
    loader = SequenceLoader(examples((2, None), (1, None)), batch_tokens=100)
    assert loader.batch(0).target is None
    assert [part.batch.target for part in loader.in_order()] == [None]


def test_evaluation_goes_by_length_and_can_be_put_back():
    made = drawn(100)
    answers = {}
    longest = 0
    for part in SequenceLoader(made, 300).in_order():
        size = max(part.batch.source.data.shape[1], part.batch.target.data.shape[1])
        assert size >= longest
        assert len(part.indices) == 1 or size * len(part.indices) <= 300
        longest = size
        answers |= dict(zip(part.indices, part.batch.records, strict=True))
    assert [answers[index] for index in range(100)] == [example.record for example in made]


def test_little_is_padding_and_most_is_random():
    loader = SequenceLoader(drawn(8000), 2048)
    assert loader.padding() < 0.12
    together = [{index: place for place, batch in enumerate(loader.epoch(epoch)) for index in batch} for epoch in (0, 1)]
    pairs = [(batch[0], batch[-1]) for batch in loader.epoch(0) if len(batch) > 1]
    assert sum(together[1][first] == together[1][last] for first, last in pairs) < len(pairs) / 2


def test_an_epoch_of_a_real_data_set_takes_milliseconds():
    loader = SequenceLoader(drawn(29_000), 4096)
    took = []
    for epoch in range(5):
        start = perf_counter()
        loader.epoch(epoch)
        took.append(perf_counter() - start)
    assert min(took) < 0.05


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SequenceLoader([]), "at least one example, got none"),
        (lambda: SequenceLoader(examples((1, 1)), 0), "batch_tokens of at least 1 and a seed of at least 0, got 0 and 0"),
        (lambda: SequenceLoader(examples((1, 1)), 9, seed=-1), "got 9 and -1"),
        (lambda: SequenceLoader(examples((1, 1), (1, None))), "a target for every example or for none, got 1 for 2"),
        (lambda: SequenceLoader(examples((1, 1))).batch(-1), "steps are counted from 0, got -1"),
        (lambda: SequenceLoader(examples((1, 1))).epoch(-1), "epochs are counted from 0, got -1"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
