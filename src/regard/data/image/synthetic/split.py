"""Split of synthetic samples into training and held-out ones."""

from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import TypeVar

Sample = TypeVar("Sample")


def split(samples: Sequence[Sample], of: Callable[[Sample], Hashable], seed: int = 0) -> tuple[list[Sample], list[Sample]]:
    """Samples to train on, and about one in ten to validate with; no key, which `of` computes of a sample, is in both."""
    keys = list(dict.fromkeys(of(sample) for sample in samples))
    if len(keys) < 2:
        raise ValueError(f"holding some out needs at least 2 different samples, got {len(keys)}")
    held_out = set(Random(seed).sample(keys, max(1, len(keys) // 10)))
    return [sample for sample in samples if of(sample) not in held_out], [
        sample for sample in samples if of(sample) in held_out
    ]
