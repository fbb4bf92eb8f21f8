"""Loader of recordings: batches of similar lengths, augmented as a pure function of the seed and the number of the step."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from torch import Tensor

from regard.data.audio.augment import Augmentation
from regard.data.audio.batch import collate_frames
from regard.data.audio.cache import FeatureCache
from regard.data.audio.normalise import Normalisation
from regard.data.batch import Batch, pad_present
from regard.data.bucketing import round_lengths
from regard.data.loader import Buckets, Loader, cut_by_budget, longest_of_levels


class AudioLoader(Loader):
    """Batches of at most `budget` frames, padding included; a longer recording goes alone.

    `augmentation` changes the recordings of `batch`, and not those of `in_order`; where it makes them longer, so are the
    batches.
    """

    def __init__(
        self,
        cache: FeatureCache,
        normalisation: Normalisation,
        budget: int,
        seed: int = 0,
        shuffle: bool = True,
        *,
        augmentation: Augmentation = Augmentation(),
        prefetch: int = 2,
    ):
        if not len(cache):
            raise ValueError("a loader needs at least one recording, got none; were all dropped as too long?")
        if budget < 1 or seed < 0:
            raise ValueError(f"a loader needs a budget of at least 1 and a seed of at least 0, got {budget} and {seed}")
        texts = sum(example.target is not None for example in cache.examples)
        if texts not in (0, len(cache)):
            raise ValueError(f"a loader needs a text for every recording or for none, got {texts} for {len(cache)}")
        self.cache, self.normalisation, self.augmentation = cache, normalisation, augmentation
        lengths = np.array([example.frames for example in cache.examples], np.int64)
        levels, ordered = round_lengths(lengths, 16), np.argsort(lengths, kind="stable")
        slowest = 1.0 if augmentation.speed is None else min(1.0, augmentation.speed.low)
        exact = cut_by_budget(lengths[ordered], budget)
        cuts = cut_by_budget(longest_of_levels(lengths, levels), max(1, int(budget * slowest))) if shuffle else exact
        super().__init__(Buckets(levels, cuts, ordered, exact), seed, shuffle, prefetch)

    def collate(self, indices: Sequence[int], step: int | None = None) -> Batch:
        """Features and texts of the examples with these indices, augmented where a training step needs them."""
        examples = [self.cache.examples[index] for index in indices]
        features = [self._features(index, step, row) for row, index in enumerate(indices)]
        target = pad_present([example.target for example in examples])
        return Batch(collate_frames(features), target, tuple(example.record for example in examples))

    def _features(self, index: int, step: int | None, row: int) -> Float[Tensor, "frames channels"]:
        speed, masks = self.augmentation
        if step is None or (speed is None and masks is None):
            return self.normalisation(self.cache.features(index))
        chance = np.random.Generator(np.random.Philox(np.random.SeedSequence(self.seed, spawn_key=(step, row))))
        features = self.normalisation(self.cache.features(index, 1.0 if speed is None else speed.choose(chance)))
        return features if masks is None else masks(features, chance)
