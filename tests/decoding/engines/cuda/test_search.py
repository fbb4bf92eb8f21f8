import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.batch import pad
from regard.decoding import beam as reference
from regard.decoding.engines.cuda import search as file
from regard.decoding.engines.cuda.search import split_sentences
from regard.decoding.engines.cuda.select import find_search
from regard.kernels.runtime import capability

from .small import POST, PRE, SOURCE, alike, model

OPTIONS = {
    "gelu": {"activation": "gelu"},
    "normed": {"embedding_norm": True, "scale_embedding": False},
    "deeper": {"layers": 1, "decoder_layers": 3},
    "set beside": {"join": "concat"},
    "learned": {"positions": "learned"},
    "no positions": {"positions": "none"},
    "narrow": {"embedding_size": 6},
    "tied": {"tie_embeddings": True, "embedding_size": 6},
}
FEW = [
    (PRE, "transformer"),
    (POST, "transformer"),
    ("recurrent, transformer, gru", "transformer"),
    ("recurrent, recurrent, lstm, luong", "bilinear"),
    ("recurrent, recurrent, gru, bahdanau", "additive"),
    ("recurrent, recurrent, tanh, luong without feeding", "transformer"),
    ("recurrent, recurrent, lstm, luong", "none"),
    ("convolution, convolution", "dot"),
]
WAYS = ((1, 1, 1.0), (3, 3, 0.6))


def both(built, source, **options):
    """What the engine finds, and the reference."""
    with torch.no_grad():
        memory = built.encode(source)
    search = find_search(built.decoder, memory)
    assert search is not None
    return search(memory, **options), reference(built.decoder, memory, **options)


@pytest.mark.parametrize(("kind", "attention"), FEW)
def test_every_model_is_searched_as_the_reference_searches_it(kind, attention):
    built = model(kind, attention, ends=2.0)
    for beams, best, alpha in WAYS:
        alike(*both(built, SOURCE, beams=beams, best=best, length=[5, 9, 0, 7], length_penalty=alpha))


def test_targets_that_become_longer_than_there_was_room_for_get_more():
    built = model(ends=-100.0)
    for beams in (1, 2):
        alike(*both(built, SOURCE, beams=beams, length=[5, 35, 0, 33]))


@pytest.mark.parametrize("name", OPTIONS)
def test_so_is_every_kind_of_transformer(name):
    torch.manual_seed(0)
    built = model(PRE, **{"ends": 1.0} | OPTIONS[name]) if name != "tied" else tied()
    for beams, best, alpha in WAYS:
        alike(*both(built, SOURCE, beams=beams, best=best, length=6, length_penalty=alpha))


def tied():
    """Its output shares the table of its embeddings, through a matrix that fits it."""
    from ....models.small import KINDS, made

    return made("transformer", target=60, **KINDS[PRE], **OPTIONS["tied"]).eval()


@settings(max_examples=5)
@given(
    ends=st.floats(0.0, 6.0),
    lengths=st.lists(st.integers(0, 14), min_size=1, max_size=11),
    way=st.tuples(st.integers(1, 5), st.integers(1, 5), st.floats(0.0, 2.0)).filter(lambda way: way[1] <= way[0]),
)
def test_sentences_that_end_when_they_like_end_as_in_the_reference(ends, lengths, way):
    beams, best, alpha = way
    built = model(ends=ends)
    source = pad([[4 + (place * step) % 7 for step in range(1 + place % 5)] + [2] for place in range(len(lengths))])
    alike(*both(built, source, beams=beams, best=best, length=lengths, length_penalty=alpha))


def test_a_vocabulary_smaller_than_the_beam_is_no_obstacle():
    built = model(target=5, ends=0.5)
    alike(*both(built, SOURCE, beams=7, best=7, length=6, length_penalty=0.8))


def test_those_that_are_done_leave_when_they_are_half_of_all_and_the_rest_moves_on():
    built = model(ends=-100.0)
    source = pad([[4 + place % 6, 2] for place in range(9)])
    lengths = [3] * 7 + [10, 12]
    with torch.no_grad():
        memory = built.encode(source)
    search = find_search(built.decoder, memory)
    for beams in (1, 2):
        search.boards.clear()
        alike(
            search(memory, beams=beams, length=lengths, length_penalty=0.0),
            reference(built.decoder, memory, beams=beams, length=lengths, length_penalty=0.0),
        )
        shapes = [key[:2] for key in search.boards]
        assert shapes[0] == (10, 16)
        assert shapes[1] == (2, 16)


def test_boards_that_are_used_again_start_anew():
    built = model(ends=1.0)
    for source in (SOURCE, pad([[9, 2], [4, 4, 4, 2], [5, 2], [6, 10, 9, 8, 3, 3, 2]])):
        for beams in (1, 3):
            alike(*both(built, source, beams=beams, length=9))


def test_only_so_many_boards_are_kept(monkeypatch):
    monkeypatch.setattr(file, "MAX_SHAPES", 2)
    built = model()
    with torch.no_grad():
        memory = built.encode(SOURCE)
    search = find_search(built.decoder, memory)
    for beams in (1, 2, 3):
        search(memory, beams=beams, length=3)
    assert [key[2] for key in search.boards] == [2, 3]


def test_a_step_beyond_the_last_position_is_refused_as_the_decoder_refuses_it():
    built = model(positions="learned", ends=-100.0)
    built.decoder.embedding.positions.limit = 11
    with torch.no_grad():
        memory = built.encode(SOURCE)
    search = find_search(built.decoder, memory)
    assert [len(each[0].tokens) for each in search(memory, beams=2, length=11)] == [11] * 4
    for run in (search, lambda memory, **options: reference(built.decoder, memory, **options)):
        with pytest.raises(ValueError, match="Learned has vectors for 11 positions, and met position 12"):
            run(memory, beams=2, length=12)


@pytest.mark.parametrize("beams", [1, 3])
def test_an_output_that_is_no_distribution_is_an_error(beams):
    built = model()
    with torch.no_grad():
        built.decoder.output.bias[7] = float("nan")
        memory = built.encode(SOURCE)
    with pytest.raises(ValueError, match="decoding needs an output that gives some token a probability"):
        find_search(built.decoder, memory)(memory, beams=beams, length=4)


@pytest.mark.parametrize("beams", [1, 3])
def test_a_sentence_that_has_no_way_on_is_an_error_that_says_where(beams):
    built = model()
    with torch.no_grad():
        built.decoder.output.bias.fill_(-torch.inf)
        built.decoder.output.bias[:2] = 0.0
        memory = built.encode(SOURCE)
    with pytest.raises(ValueError, match="decoding needs a possible token at step 1"):
        find_search(built.decoder, memory)(memory, beams=beams, length=4)


@pytest.mark.parametrize("beams", [1, 2])
def test_who_may_look_at_nothing_finds_zero(beams):
    built = model(ends=1.0)
    with torch.no_grad():
        memory = built.encode(SOURCE)
        for each in memory.memories.values():
            each.keep[1] = False
    search = find_search(built.decoder, memory)
    alike(search(memory, beams=beams, length=9), reference(built.decoder, memory, beams=beams, length=9))


def test_many_rows_are_searched_group_by_group(monkeypatch):
    assert [each.tolist() for each in split_sentences(np.arange(5), 2)] == [[0, 1], [2, 3], [4]]
    assert [each.tolist() for each in split_sentences(np.arange(2), 0)] == [[0], [1]]
    monkeypatch.setattr(file, "MAX_ROWS", 7)
    built = model(ends=1.0)
    alike(*both(built, SOURCE, beams=3, length=[6, 4, 0, 9]))
    assert {key[0] for key in find_search(built.decoder, built.encode(SOURCE)).boards} == {2, 1}


def test_the_answers_of_a_group_are_written_while_the_next_is_searched(monkeypatch):
    order, start, write = [], file.SearchBuffers.start, file.SearchResults.collect
    monkeypatch.setattr(file, "MAX_ROWS", 2)
    monkeypatch.setattr(file.SearchBuffers, "start", lambda board, *place: order.append("start") or start(board, *place))
    monkeypatch.setattr(file.SearchResults, "collect", lambda results: order.append("write") or write(results))
    built = model(ends=-100.0)
    alike(*both(built, SOURCE, beams=1, length=3))
    assert order == ["start", "start", "write", "write"]


def test_no_sentence_and_no_length_find_nothing():
    built = model()
    for count, length in product((0, 2), (0, 3)):
        with torch.no_grad():
            memory = built.encode(SOURCE._replace(data=SOURCE.data[:count], keep=SOURCE.keep[:count]))
        found = find_search(built.decoder, memory)(memory, beams=2, length=length)
        assert [bool(each[0].tokens) for each in found] == [length > 0] * count


def test_each_new_board_is_prepared_before_its_first_step(monkeypatch):
    happened = []
    monkeypatch.setattr(file.SearchBuffers, "prepare", lambda board: happened.append((board, "prepared")))
    monkeypatch.setattr(
        file.SearchBuffers, "start", lambda board, *turns: happened.append((board, "started")) or start(board, *turns)
    )
    built = model(ends=-100.0)
    both(built, SOURCE, beams=2, length=[5, 35, 0, 33])
    boards = list(dict.fromkeys(board for board, _ in happened))
    assert len(boards) > 1
    for board in boards:
        seen = [what for each, what in happened if each is board]
        assert seen[:2] == ["prepared", "started"]
        assert seen.count("prepared") == 1


start = file.SearchBuffers.start


@pytest.mark.unhooked
@pytest.mark.timeout(300)
@pytest.mark.skipif(not capability.INSTALLED, reason="Triton is for Linux")
def test_what_is_prepared_is_all_that_a_step_starts():
    told = [sys.executable, "-m", "tests.decoding.engines.cuda.counted"]
    done = subprocess.run(told, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[4])
    assert done.returncode == 0, done.stdout + done.stderr
    cases = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(cases) == 9
    for case in cases:
        assert not case["late"], case
        assert case["prepared"] == case["started"], case
    few, many = ({*case["started"]} for case in cases[:3:2])
    assert {"matmul_kernel", "attend_kernel", "update_kernel"} <= few
    assert "matmul_kernel" not in many
    assert "follow_kernel" in cases[1]["started"]
