import numpy as np
import pytest
import torch

from regard.data.audio.augment import Augmentation, SpecAugment, Speed, change_frame_rate, parse_augmentation


def chance(seed=0):
    return np.random.default_rng(seed)


def test_words_name_changes_and_their_numbers():
    assert parse_augmentation("none") == Augmentation()
    assert parse_augmentation("speed:low=0.8:steps=5+spec_augment:time=0.2") == Augmentation(
        Speed(0.8, steps=5), SpecAugment(time=0.2)
    )
    for words, message in (
        ("sped", "speed, spec_augment or both"),
        ("speed+speed", "each once"),
        ("speed:fast=2", "takes NAME=NUMBER behind a colon, of low, high, steps, got 'fast=2'"),
        ("speed:low=2", "low before high, got 2"),
        ("speed:steps=0", "1 to 100 steps"),
        ("spec_augment:band=1.5", "shares from 0 to 1"),
        ("spec_augment:bands=-1", "0 to 1,000 masks"),
    ):
        with pytest.raises(ValueError, match=message):
            parse_augmentation(words)


def test_speeds_are_those_between_the_ends():
    assert {Speed().choose(chance(seed)) for seed in range(30)} == {0.9, 1.0, 1.1}
    assert {Speed(low=0.5, high=2.0, steps=1).choose(chance(seed)) for seed in range(3)} == {0.5}


def test_masks_cover_stretches_and_bands_and_no_more_than_they_may():
    features = torch.ones(100, 20)
    masked = SpecAugment(times=1, time=0.1, bands=1, band=0.5)(features, chance())
    assert features.all()
    silent, empty = (masked == 0).all(1), (masked == 0).all(0)
    assert silent.sum() <= 10
    assert empty.sum() <= 10
    assert ((masked == 0) == (silent[:, None] | empty)).all()
    assert torch.equal(masked, SpecAugment(times=1, time=0.1, bands=1, band=0.5)(features, chance()))
    assert (SpecAugment(times=0, bands=0)(features, chance()) == 1).all()


def test_the_frame_rate_of_features_changes():
    ramp = torch.arange(100.0)[:, None].expand(100, 2)
    fast = change_frame_rate(ramp, 1.25)
    assert fast.shape == (80, 2)
    assert fast[40, 0] == pytest.approx(1.25 * 40 + 0.125, abs=0.01)
    assert len(change_frame_rate(ramp[:1], 4.0)) == 1
