"""Augmentation of recordings while a model is trained: "none", "speed", "spec_augment", "speed+spec_augment:time=0.1"."""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

Features = Float[Tensor, "frames channels"]


@dataclass(frozen=True)
class Speed:
    """Speed perturbation: each recording is played at one of `steps` speeds from `low` to `high`.

    Sound is resampled, so that pitch and formants change too; of features from files the frames are interpolated.
    Ko et al. 2015, https://www.isca-archive.org/interspeech_2015/ko15_interspeech.html
    """

    low: float = 0.9
    high: float = 1.1
    steps: int = 3

    def __post_init__(self) -> None:
        if not 0.25 <= self.low <= self.high <= 4:
            raise ValueError(
                f"data.augment: speeds need to be from 0.25 to 4, low before high, got {self.low} and {self.high}"
            )
        if not 1 <= self.steps <= 100:
            raise ValueError(f"data.augment: speed needs 1 to 100 steps, got {self.steps}")

    def choose(self, chance: np.random.Generator) -> float:
        """One of the speeds."""
        place = int(chance.integers(self.steps)) / max(1, self.steps - 1)
        return round(self.low + (self.high - self.low) * place, 4)


@dataclass(frozen=True)
class SpecAugment:
    """SpecAugment: stretches of frames and bands of channels are set to 0, the mean of normalised features.

    Each of `times` masks covers up to the share `time` of the frames, each of `bands` masks up to the share `band` of the
    channels. Park et al. 2019, https://arxiv.org/abs/1904.08779, without time warping; widths are shares, as in the adaptive
    variant of Park et al. 2020, https://arxiv.org/abs/1912.05533
    """

    times: int = 2
    time: float = 0.1
    bands: int = 2
    band: float = 0.3

    def __post_init__(self) -> None:
        if not (0 <= self.time <= 1 and 0 <= self.band <= 1):
            raise ValueError(f"data.augment: spec_augment masks shares from 0 to 1, got time={self.time}, band={self.band}")
        if min(self.times, self.bands) < 0 or max(self.times, self.bands) > 1000:
            raise ValueError(f"data.augment: spec_augment has 0 to 1,000 masks, got times={self.times}, bands={self.bands}")

    def __call__(self, features: Features, chance: np.random.Generator) -> Features:
        masked, (frames, channels) = features.clone(), features.shape
        for _ in range(self.times):
            first, last = _choose_span(frames, self.time, chance)
            masked[first:last] = 0.0
        for _ in range(self.bands):
            first, last = _choose_span(channels, self.band, chance)
            masked[:, first:last] = 0.0
        return masked


class Augmentation(NamedTuple):
    """Changes to a recording, in this order."""

    speed: Speed | None = None
    spec_augment: SpecAugment | None = None


KINDS: dict[str, type] = {"speed": Speed, "spec_augment": SpecAugment}


def parse_augmentation(words: str) -> Augmentation:
    """The changes that data.augment names; a name may have numbers behind it, as in speed:low=0.8:high=1.2."""
    changes = dict[str, Any]()
    for part in [] if words == "none" else words.split("+"):
        word, *settings = part.split(":")
        if word not in KINDS or word in changes:
            raise ValueError(
                f"data.augment needs to be none, or {', '.join(KINDS)} or both joined by +, each once, got {words!r}"
            )
        changes[word] = KINDS[word](**_parse_numbers(word, settings))
    return Augmentation(**changes)


def change_frame_rate(features: Features, speed: float) -> Float[Tensor, "resampled channels"]:
    """Features of a recording that is played at another speed: their frames, linearly interpolated."""
    length = max(1, round(len(features) / speed))
    resized: Tensor = functional.interpolate(features.T[None], size=length, mode="linear", align_corners=False)
    return resized[0].T.contiguous()


def _choose_span(length: int, share: float, chance: np.random.Generator) -> tuple[int, int]:
    width = int(chance.integers(int(share * length) + 1))
    first = int(chance.integers(length - width + 1))
    return first, first + width


def _parse_numbers(word: str, settings: list[str]) -> dict[str, Any]:
    kinds, numbers = {field.name: field.type for field in fields(KINDS[word])}, dict[str, Any]()
    for setting in settings:
        name, _, text = setting.partition("=")
        try:
            numbers[name] = (int if kinds[name] is int else float)(text)
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"data.augment: {word} takes NAME=NUMBER behind a colon, of {', '.join(kinds)}, got {setting!r}"
            ) from error
    return numbers
