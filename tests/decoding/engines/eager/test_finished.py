import numpy as np

from regard.decoding.engines.eager.beam import Candidates, Pool

IMPOSSIBLE = -np.inf


def candidates(*scores: list[float]) -> Candidates:
    """Sentences with these scores each; tokens count from 10, so that each can be told from the others."""
    table = np.array(scores)
    numbers = np.arange(table.size).reshape(table.shape)
    return Candidates(table, table / 2, numbers + 10, numbers)


def add(pool: Pool, sentences: list[int], step: int, *scores: list[float]) -> None:
    ended = candidates(*scores)
    pool.add(np.array(sentences), ended.scores, ended, step)


def test_the_best_few_are_kept_best_first():
    pool = Pool(1, 2)
    add(pool, [0], 3, [-1.0, -2.0])
    add(pool, [0], 4, [-1.5, -3.0])
    assert [(step, token, normalised) for step, _, token, _, _, normalised, _ in pool.of(0)] == [
        (3, 10, -1.0),
        (4, 10, -1.5),
    ]


def test_of_equals_the_earlier_stands_first():
    pool = Pool(1, 3)
    add(pool, [0], 1, [-1.0])
    add(pool, [0], 2, [-1.0, -1.0])
    assert [(step, token) for step, _, token, *_ in pool.of(0)] == [(1, 10), (2, 10), (2, 11)]


def test_an_ending_says_where_it_ended_and_what_it_is_worth():
    pool = Pool(2, 1)
    pool.add(np.array([1]), np.array([[-0.5]]), candidates([-2.0]), step=7)
    assert pool.of(1) == [(7, 0, 10, -1.0, -2.0, -0.5, True)]
    assert pool.of(0) == []


def test_what_is_cut_off_stands_behind_all_that_finished_however_good():
    pool = Pool(1, 3)
    add(pool, [0], 1, [-5.0])
    pool.close(np.array([0]), candidates([-1.0, IMPOSSIBLE]), share=2.0, step=2)
    assert [(normalised, finished) for *_, normalised, finished in pool.of(0)] == [(-5.0, True), (-0.5, False)]


def test_a_full_pool_has_no_room_for_what_is_cut_off():
    pool = Pool(1, 1)
    add(pool, [0], 1, [-5.0])
    pool.close(np.array([0]), candidates([-1.0]), share=1.0, step=2)
    assert [finished for *_, finished in pool.of(0)] == [True]


def test_sentences_do_not_meddle_and_empty_room_is_worth_nothing():
    pool = Pool(3, 2)
    add(pool, [2, 0], 1, [-1.0, -4.0], [-3.0, IMPOSSIBLE])
    everybody = np.arange(3)
    assert pool.any(everybody).tolist() == [True, False, True]
    assert pool.worst(everybody, 1).tolist() == [-3.0, IMPOSSIBLE, -1.0]
    assert pool.worst(everybody, 2).tolist() == [IMPOSSIBLE, IMPOSSIBLE, -4.0]
