"""Features of recordings by number, each computed once while there is room to keep them."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock

from jaxtyping import Float
from torch import Tensor

from regard.data.audio.arrays import is_array, read_array
from regard.data.audio.augment import change_frame_rate
from regard.data.audio.batch import AudioExample
from regard.data.audio.excerpts import Excerpt
from regard.data.audio.features import LogMel
from regard.data.audio.reading import read_sound
from regard.data.audio.resampling import resample

Features = Float[Tensor, "frames channels"]


class FeatureCache:
    """Features of examples at any speed; `room` is the most bytes that are kept."""

    def __init__(self, examples: Sequence[AudioExample], front: LogMel, room: int = 1 << 30):
        self.examples, self.front = examples, front
        self._room, self._lock = room, Lock()
        self._cached: dict[tuple[int, float], Tensor] = {}

    def __len__(self) -> int:
        return len(self.examples)

    def features(self, number: int, speed: float = 1.0) -> Features:
        """Features of one example, played at this speed."""
        cached = self._cached.get((number, speed))
        if cached is None:
            cached = self._compute(number, speed)
            size = cached.numel() * cached.element_size()
            with self._lock:
                if (number, speed) not in self._cached and size <= self._room:
                    self._room -= size
                    self._cached[number, speed] = cached
        return cached

    def _compute(self, number: int, speed: float) -> Features:
        example = self.examples[number]
        if isinstance(example.sound, Excerpt):
            return self._take(example, example.sound, speed)
        if isinstance(example.sound, Path) and is_array(example.sound):
            features = read_array(example.sound, self._where(example))
            return features if speed == 1 else change_frame_rate(features, speed)
        samples = self.samples(number)
        if speed != 1:
            samples = resample(samples, round(1000 * speed), 1000)
        return self.front(samples)

    def _take(self, example: AudioExample, excerpt: Excerpt, speed: float) -> Features:
        """Features of an excerpt; those of the whole recording are computed once."""
        key = repr(self.front)
        with self._lock:
            if key not in excerpt.whole:
                excerpt.whole[key] = FeatureCache([example._replace(sound=excerpt.sound)], self.front).features(0)
            features = excerpt.whole[key][excerpt.first : excerpt.first + excerpt.frames].clone()
        return features if speed == 1 else change_frame_rate(features, speed)

    def samples(self, number: int) -> Float[Tensor, " samples"]:
        """Sound of one example, at the rate of its features."""
        example = self.examples[number]
        if isinstance(example.sound, Excerpt):
            whole = FeatureCache([example._replace(sound=example.sound.sound)], self.front).samples(0)
            first = example.sound.first * self.front.hop
            return whole[first : first + example.sound.frames * self.front.hop]
        if isinstance(example.sound, Path):
            return read_sound(example.sound, self.front.rate, self._where(example)).samples
        samples = example.sound()
        return samples if example.sound.rate == self.front.rate else resample(samples, example.sound.rate, self.front.rate)

    def _where(self, example: AudioExample) -> str | None:
        return getattr(example.record, "where", None)
