import numpy as np
import pytest
import torch

from regard.data.special_tokens import PAD
from regard.tasks.answer.batch import StoryLoader, cut_levels, round_sentences


@pytest.fixture(scope="module")
def examples(codec, stories):
    return codec.encode_all(stories).examples


def test_a_batch_has_the_words_answers_and_facts_of_its_questions(examples):
    loader = StoryLoader(examples, 7, shuffle=False)
    places = []
    for indices, batch in loader.in_order():
        for row, index in enumerate(indices):
            example, source = examples[index], batch.source
            words = [tuple(sentence[sentence != PAD].tolist()) for sentence in source.data[row][source.keep[row]]]
            assert words == list(example.story)
            assert tuple(source.question[row][source.question[row] != PAD].tolist()) == example.question
            assert int(batch.target.data[row, 0]) == example.label
            assert tuple(batch.facts[row].nonzero()[:, 0].tolist()) == example.facts
            assert batch.records[row] is example.record
        assert not batch.linear.any()
        places += indices
    assert sorted(places) == list(range(len(examples)))


def test_a_batch_is_a_function_of_seed_and_step_and_knows_a_linear_start(examples):
    first, again = (StoryLoader(examples, 8, seed=3, linear_start=2) for _ in range(2))
    for step in (4, 1):
        assert torch.equal(first.batch(step).source.data, again.batch(step).source.data)
    assert [bool(first.batch(step).linear.all()) for step in range(4)] == [True, True, False, False]


def test_rounding_and_selecting_rows_change_padding_alone(examples):
    batch = StoryLoader(examples, 4).batch(0)
    rounded = batch.round_shape()
    assert rounded.source.data.shape[1] == rounded.facts.shape[1] == 16
    again = rounded.select_rows([0, 1, 2, 3])
    assert torch.equal(again.source.data, batch.source.data)
    assert torch.equal(again.source.question, batch.source.question)
    assert torch.equal(again.facts, batch.facts)
    assert batch.unpack() is batch
    assert batch.source.lengths is None


def test_short_stories_share_a_bucket_and_long_ones_have_smaller_batches():
    assert [round_sentences(length) for length in (1, 16, 17, 33)] == [16, 16, 32, 64]
    assert cut_levels(np.array([16] * 5 + [32] * 3), 4) == [0, 4, 5, 8]
    assert cut_levels(np.array([1 << 15] * 3), 4) == [0, 1, 2, 3]


def test_a_loader_needs_a_question():
    with pytest.raises(ValueError, match="a loader needs at least one question"):
        StoryLoader([], 4)
