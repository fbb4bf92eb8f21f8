"""Part what was drawn into what is trained on and what is held out."""

from collections.abc import Callable, Hashable, Sequence
from random import Random
from typing import TypeVar

Drawn = TypeVar("Drawn")


def split(drawn: Sequence[Drawn], of: Callable[[Drawn], Hashable], seed: int = 0) -> tuple[list[Drawn], list[Drawn]]:
    """Examples to train on, and about one in ten to validate with, such that what `of` tells of one is not in both."""
    keys = list(dict.fromkeys(of(each) for each in drawn))
    if len(keys) < 2:
        raise ValueError(f"holding some out needs at least 2 different samples, got {len(keys)}")
    held = set(Random(seed).sample(keys, max(1, len(keys) // 10)))
    return [each for each in drawn if of(each) not in held], [each for each in drawn if of(each) in held]
