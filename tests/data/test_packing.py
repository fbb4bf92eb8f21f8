from itertools import chain
from time import perf_counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.packing import Packed

from .test_loader import drawn, examples

LENGTHS = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=60)


def random(number: int) -> list:
    lengths = torch.randint(5, 41, (number, 2), generator=torch.Generator().manual_seed(0)).tolist()
    return examples(*map(tuple, lengths))


@settings(max_examples=60)
@given(LENGTHS, st.integers(20, 50), st.integers(1, 300), st.integers(0, 2**40), st.integers(0, 2**40))
def test_an_epoch_has_every_example_once_in_rows_that_hold_them_and_batches_of_one_size(
    lengths, places, budget, seed, epoch
):
    packed = Packed(examples(*lengths), places, budget, seed)
    batches = packed.epoch(epoch)
    assert len(batches) == packed.steps_per_epoch(epoch)
    rows = list(chain.from_iterable(batches))
    assert sorted(chain.from_iterable(rows)) == list(range(len(lengths)))
    assert all(sum(lengths[index][side] for index in row) <= places for row in rows for side in (0, 1))
    assert all(len(batch) == packed.rows for batch in batches[:-1])
    assert packed.rows == max(1, budget // places)


def test_rows_hold_sources_and_targets_end_to_end_with_their_numbers():
    packed = Packed(examples((2, 1), (1, 3), (4, 4)), places=5, batch_tokens=15)
    batch = packed.batch(0)
    assert batch.source.data.shape == batch.target.data.shape == (3, 5)
    by_records = dict(zip((tuple(each.where for each in row) for row in batch.records), range(3), strict=True))
    [both] = [row for names, row in by_records.items() if len(names) == 2]
    first = [4, 5] if batch.records[both][0].where == "x:0" else [5, 4]
    lengths = {4: (2, 1), 5: (1, 3)}
    for side, padded in ((0, batch.source), (1, batch.target)):
        wanted = list(chain.from_iterable([token] * lengths[token][side] for token in first))
        numbers = list(chain.from_iterable([place] * lengths[token][side] for place, token in enumerate(first, 1)))
        assert padded.data[both].tolist() == wanted + [0] * (5 - len(wanted))
        assert padded.documents[both].tolist() == numbers + [0] * (5 - len(wanted))
    empty = by_records[()]
    assert batch.source.documents[empty].tolist() == batch.target.documents[empty].tolist() == [0] * 5
    assert torch.equal(batch.source.keep, batch.source.documents > 0)


def test_batches_have_one_shape_and_little_is_padding():
    packed = Packed(random(4000), 256, 4096)
    shapes = {packed.batch(step).source.data.shape for step in range(packed.steps_per_epoch())}
    assert shapes == {(16, 256)}
    assert 1 - packed.padding() > 0.9
    kept = sum(int(packed.batch(step).target.keep.sum()) for step in range(packed.steps_per_epoch()))
    assert kept == sum(len(example.target) for example in packed.examples)


def test_sentences_whose_sides_are_alike_fill_nearly_all():
    assert Packed(drawn(8000), 256, 4096).padding() < 0.05


def test_equal_seeds_give_equal_batches_and_epochs_differ():
    made = random(300)
    packed = Packed(made, 64, 640, seed=1)
    assert packed.epoch(0) == Packed(made, 64, 640, seed=1).epoch(0)
    assert packed.epoch(0) != packed.epoch(1)
    assert packed.epoch(0) != Packed(made, 64, 640, seed=2).epoch(0)
    assert sorted(chain.from_iterable(packed.epoch(0))) == sorted(chain.from_iterable(packed.epoch(1))), "rows stay"


def test_a_step_is_found_without_those_before_it():
    made = random(200)
    packed = Packed(made, 64, 640, seed=3)
    for step in (31, 0, 7, 31):
        fresh, again = Packed(made, 64, 640, seed=3).batch(step), packed.batch(step)
        assert torch.equal(fresh.source.data, again.source.data)
        assert torch.equal(fresh.target.documents, again.target.documents)
        assert fresh.records == again.records
    start = perf_counter()
    packed.batch(10**15)
    assert perf_counter() - start < 1


def test_steps_count_on_through_the_epochs():
    packed = Packed(examples(*[(3, 3)] * 10), places=6, batch_tokens=12)
    assert packed.steps_per_epoch() == 3
    for step in range(9):
        expected = [[f"x:{index}" for index in row] for row in packed.epoch(step // 3)[step % 3]]
        assert [[each.where for each in row] for row in packed.batch(step).records if row] == expected


def test_taken_apart_a_batch_has_a_row_for_each_example():
    batch = Packed(random(20), 64, 640).batch(0)
    alone = batch.unpack()
    assert alone.rows == len(alone.records) == sum(map(len, batch.records))
    assert alone.source.documents is None
    for row, record in enumerate(alone.records):
        number = int(record.where[2:]) + 4  # which all of its tokens are
        for side in (alone.source, alone.target):
            assert set(side.data[row][side.keep[row]].tolist()) == {number}
    assert int(alone.target.keep.sum()) == int(batch.target.keep.sum())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Packed([], 8), "at least one example, got none"),
        (lambda: Packed(examples((1, 1)), 0), "at least 1 place.* got 0, 4096 and 0"),
        (lambda: Packed(examples((1, 1)), 8, 0), "got 8, 0 and 0"),
        (lambda: Packed(examples((1, 1)), 8, seed=-1), "got 8, 4096 and -1"),
        (lambda: Packed(examples((1, 1), (1, None)), 8), "a target for every example, and 1 of 2 have none"),
        (
            lambda: Packed(examples((3, 1), (1, 9)), 8),
            r"rows of 8 places do not hold the longest example, which has 9 tokens; set train\.packing_length=9 or more",
        ),
        (lambda: Packed(examples((1, 1)), 8).batch(-1), "steps are counted from 0, got -1"),
        (lambda: Packed(examples((1, 1)), 8).epoch(-1), "epochs are counted from 0, got -1"),
    ],
)
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
