from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.image.bucketing import bucket_images

SIZES = st.lists(st.tuples(st.sampled_from([0, 3]), st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=40)


@settings(max_examples=80)
@given(SIZES, st.integers(1, 20_000), st.sampled_from([1, 4, 16]), st.integers(0, 99))
def test_every_batch_keeps_the_budget_however_a_level_is_shuffled(sizes, budget, multiple, seed):
    sizes = np.array(sizes, np.int64)
    before = sizes.copy()
    level, cuts, room = bucket_images(sizes, budget, multiple)
    assert (sizes == before).all()
    drawn = np.random.default_rng(seed).permutation(len(sizes))
    taken = drawn[np.argsort(level[drawn], kind="stable")]
    assert cuts[0] == 0
    assert cuts[-1] == len(sizes)
    for first, last in pairwise(cuts):
        batch = np.maximum(sizes[taken[first:last]], 1)
        frames, height, width = batch.max(0)
        most = room[taken[first:last]].max(0)
        assert (most >= (frames, height, width)).all()
        assert (most[1:] % multiple == 0).all()
        assert len(batch) == 1 or (len(batch) > 1 and len(batch) * most.prod() <= budget)


def test_neighbours_are_alike_where_one_height_ends_and_the_next_begins():
    sizes = np.array([(0, height, width) for height in (8, 16, 32) for width in (10, 20, 40)])
    taken = np.argsort(bucket_images(sizes, 1)[0])
    assert sizes[taken, 1:].tolist() == [
        [8, 10],
        [8, 20],
        [8, 40],
        [16, 40],
        [16, 20],
        [16, 10],
        [32, 10],
        [32, 20],
        [32, 40],
    ]


def test_a_budget_is_filled_as_far_as_it_goes():
    sizes = np.array([(0, 4, 4)] * 7)
    assert bucket_images(sizes, 48).cuts == [0, 3, 6, 7]
    assert bucket_images(sizes, 3 * 8 * 8, multiple=8).cuts == [0, 3, 6, 7]


def test_sizes_that_double_in_two_steps_are_told_apart_and_each_has_the_room_of_the_largest_beside_it():
    sizes = np.array([(0, 8, width) for width in (33, 40, 48, 49, 60, 64, 65)])
    level, _, room = bucket_images(sizes, 1)
    assert level.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert room[:, 2].tolist() == [48, 48, 48, 64, 64, 64, 65]  # not 96: none is so wide
