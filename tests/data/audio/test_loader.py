import numpy as np
import pytest
import torch
from torch.testing import assert_close

from regard.data.audio.augment import Augmentation, SpecAugment, Speed
from regard.data.audio.batch import AudioExample
from regard.data.audio.cache import FeatureCache
from regard.data.audio.features import LogMel
from regard.data.audio.loader import AudioLoader
from regard.data.audio.normalise import Normalisation

LENGTHS = (5, 9, 3, 7)
NONE = Normalisation("none")


@pytest.fixture
def cache(tmp_path):
    """Features of four recordings, all numbers of which are the number of the recording, from 1."""
    examples = []
    for number, frames in enumerate(LENGTHS, 1):
        np.save(tmp_path / f"{number}.npy", np.full((frames, 2), float(number)))
        examples.append(AudioExample(tmp_path / f"{number}.npy", frames, [10 + number, 2], f"record {number}"))
    return FeatureCache(examples, LogMel())


def build(cache, budget=14, **options):
    return AudioLoader(cache, NONE, budget, prefetch=0, **options)


def test_batches_hold_neighbours_by_length_within_the_budget(cache):
    parts = list(build(cache, shuffle=False).in_order())
    assert [list(part.indices) for part in parts] == [[2, 0], [3], [1]]
    batch = parts[0].batch
    assert batch.source.keep.tolist() == [[True] * 3 + [False] * 2, [True] * 5]
    assert batch.source.data[0, :, 0].tolist() == [3.0, 3.0, 3.0, 0.0, 0.0]
    assert batch.target.data.tolist() == [[13, 2], [11, 2]]
    assert batch.records == ("record 3", "record 1")


def test_a_recording_that_is_longer_than_the_budget_goes_alone(cache):
    assert [len(part.indices) for part in build(cache, 1, shuffle=False).in_order()] == [1] * 4


def test_an_epoch_has_every_recording_once_in_another_order(cache):
    loader = build(cache, 9)
    epochs = [[list(indices) for indices in loader.epoch(number)] for number in range(6)]
    assert all(sorted(index for indices in epoch for index in indices) == [0, 1, 2, 3] for epoch in epochs)
    assert len({str(epoch) for epoch in epochs}) > 1


def test_slower_recordings_are_longer_and_their_batches_have_fewer(cache):
    slow = build(cache, 14, augmentation=Augmentation(Speed(0.5, 0.5, 1)))
    for step in range(slow.steps_per_epoch()):
        frames = slow.batch(step).source.keep
        assert frames.numel() <= 18 * (len(frames) == 1) + 14 * (len(frames) > 1)
    assert slow.steps_per_epoch() > build(cache, 14).steps_per_epoch()
    assert [batch.source.lengths for _, batch in slow.in_order()] == [[3, 5], [7], [9]]


def test_masks_are_of_training_and_a_function_of_seed_and_step(cache):
    masks = Augmentation(spec_augment=SpecAugment(1, 0.5, 0))
    first, again, other = (build(cache, 14, seed=seed, augmentation=masks) for seed in (1, 1, 2))
    data = [torch.cat([loader.batch(step).source.data.flatten() for step in range(3)]) for loader in (first, again, other)]
    assert_close(data[0], data[1])
    assert data[0].shape != data[2].shape or not torch.equal(data[0], data[2])
    for _, batch in first.in_order():
        assert (batch.source.data[batch.source.keep] > 0).all()
    assert (first.collate([1], 3).source.data == 0).any()
    assert (first.collate([1]).source.data == 2).all()


def test_recordings_without_texts_have_no_target(cache):
    cache.examples = [example._replace(target=None) for example in cache.examples]
    assert build(cache).batch(0).target is None
    cache.examples[0] = cache.examples[0]._replace(target=[4])
    with pytest.raises(ValueError, match="a loader needs a text for every recording or for none, got 1 for 4"):
        build(cache)


def test_a_loader_needs_a_recording_and_a_budget(cache):
    with pytest.raises(ValueError, match="at least one recording, got none; were all dropped as too long"):
        build(FeatureCache([], LogMel()))
    with pytest.raises(ValueError, match="a budget of at least 1 and a seed of at least 0, got 0 and 0"):
        build(cache, 0)
