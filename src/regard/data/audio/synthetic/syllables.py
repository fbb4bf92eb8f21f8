"""Synthetic speech: sentences of words that are spelt as they sound, each letter a vowel's formants or a consonant's noise.

A letter is an excitation, pulses of a voice or noise, filtered by resonances of the vocal tract (the source-filter model:
Fant 1960). Pitch, speed, loudness, pauses and background noise differ from sentence to sentence. The times of every word are
known exactly, so that word times can be measured.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from regard.data.records import Record

MOST = 100_000
"""The most sentences."""
LEAST_RATE = 8_000
"""Lowest sampling rate in hertz that has room for every letter."""
WORDS = (
    "kala", "mino", "sotu", "peli", "tuka", "nemo", "lisa", "fopi", "mata", "kisu", "pona", "tile", "sane", "luko", "fime",
    "nopu", "kesa", "tamo", "milu", "sipo",
)  # fmt: skip
VOWELS = {"a": (800.0, 1250.0), "e": (480.0, 1900.0), "i": (290.0, 2300.0), "o": (480.0, 900.0), "u": (320.0, 650.0)}
"""First and second formant in hertz."""
VOICED = {"m": (250.0, 1000.0), "n": (280.0, 1600.0), "l": (380.0, 1300.0)}
"""Resonances of nasals and of l."""
NOISES = {"s": (2800.0, 3800.0), "f": (1100.0, 3600.0), "t": (2200.0, 3400.0), "k": (1300.0, 2100.0), "p": (300.0, 900.0)}
"""Band in hertz of fricatives and of the bursts of stops."""
STOPS = frozenset("tkp")
BANDWIDTH = 110.0
Samples = NDArray[np.float64]


class SpokenWord(NamedTuple):
    """A word, with the seconds at which it begins and ends."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Utterance:
    """A sentence that is synthesised on each call, the same each time."""

    words: tuple[SpokenWord, ...]
    letters: tuple[SpokenWord, ...]
    seconds: float
    pitch: float
    loudness: float
    noise: float
    seed: int
    rate: int = 16_000

    @property
    def length(self) -> int:
        """Number of samples."""
        return round(self.seconds * self.rate)

    @property
    def text(self) -> str:
        """Text of the recording."""
        return " ".join(word.text for word in self.words)

    @property
    def record(self) -> Record:
        """The text as a target, and a name for the sound as its source."""
        return Record(f"synthetic/{self.seed}.wav", self.text, f"synthetic:{self.seed}")

    def __call__(self) -> Float[Tensor, " samples"]:
        chance = np.random.Generator(np.random.Philox(self.seed))
        sound = chance.standard_normal(self.length) * self.noise
        for letter in self.letters:
            first, last = (round(second * self.rate) for second in (letter.start, letter.end))
            part = synthesise_letter(letter.text, last - first, self.rate, self.pitch, chance)
            sound[first:last] += self.loudness * part[: max(0, self.length - first)]
        return torch.from_numpy(sound.clip(-1, 1).astype(np.float32))


def synthesise(samples: int, seed: int, rate: int = 16_000, words: Sequence[str] = WORDS) -> list[Utterance]:
    """So many sentences of 1 to 5 words."""
    if not 1 <= samples <= MOST:
        raise ValueError(f"data.samples needs to be from 1 to {MOST:,}, got {samples:,}")
    if rate < LEAST_RATE:
        raise ValueError(f"synthetic speech needs data.rate={LEAST_RATE} or more, got {rate}")
    chance = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 1])))
    return [
        plan_utterance(chance.choice(words, int(chance.integers(1, 6))).tolist(), seed * MOST + number, rate)
        for number in range(samples)
    ]


def plan_utterance(texts: Sequence[str], seed: int, rate: int = 16_000) -> Utterance:
    """Choose the times of words and letters, the pitch, the loudness and the noise of a sentence.

    A word that begins with a stop begins with its burst: the closure before it is silent, as the pause is.
    """
    chance = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 2])))
    speed, now = float(chance.uniform(0.8, 1.25)), float(chance.uniform(0.1, 0.3))
    words, letters = list[SpokenWord](), list[SpokenWord]()
    for text in texts:
        start, first = now, True
        for letter in text:
            usual = 0.11 if letter in VOWELS else 0.07
            length = usual * speed * float(chance.uniform(0.8, 1.2))
            letters.append(SpokenWord(letter, now, now + length))
            start += length / 2 if first and letter in STOPS else 0.0  # nobody hears where a closure after a pause begins
            now, first = now + length, False
        words.append(SpokenWord(text, start, now))
        now += float(chance.choice([0.04, 0.1, 0.25])) * speed * float(chance.uniform(0.8, 1.2))
    return Utterance(
        tuple(words),
        tuple(letters),
        now + float(chance.uniform(0.1, 0.3)),
        pitch=float(chance.uniform(90, 220)),
        loudness=float(chance.uniform(0.3, 0.9)),
        noise=float(10 ** chance.uniform(-3.5, -2)),
        seed=seed,
        rate=rate,
    )


def synthesise_letter(letter: str, length: int, rate: int, pitch: float, chance: np.random.Generator) -> Samples:
    """Samples of one letter, from -1 to 1; a stop is closed for the first half and then a burst."""
    if letter in NOISES:
        sound = _filter(chance.standard_normal(length), band_response(length, rate, *NOISES[letter]))
        envelope = build_fade(length, rate)
        if letter in STOPS:
            time = np.arange(length) / rate - 0.5 * length / rate
            envelope = np.where(time < 0, 0.0, np.exp(-time / 0.012))
        return 0.35 * _scale(sound * envelope)
    if letter not in VOWELS and letter not in VOICED:
        raise ValueError(
            f"letters that can be synthesised are {''.join(sorted({*VOWELS, *VOICED, *NOISES}))}, got {letter!r}"
        )
    phase = np.cumsum(pitch * (1 + 0.02 * np.sin(np.arange(length) / rate * 30)) / rate) + chance.random()
    pulses = np.diff(np.floor(phase), prepend=math.floor(phase[0]) if length else 0.0)
    formants = VOWELS.get(letter) or VOICED[letter]
    sound = _filter(pulses, formant_response(length, rate, formants))
    return (0.6 if letter in VOWELS else 0.3) * _scale(sound * build_fade(length, rate))


def build_fade(length: int, rate: int) -> Samples:
    """Envelope that rises and falls within 10 ms."""
    return np.asarray(np.minimum(1, np.minimum(np.arange(length), np.arange(length)[::-1]) / (0.01 * rate)))


def formant_response(length: int, rate: int, formants: Sequence[float]) -> NDArray[np.complex128]:
    """Frequency response of the sum of second-order resonances."""
    s = 2j * np.pi * np.fft.rfftfreq(length, 1 / rate)
    response = np.zeros(len(s), np.complex128)
    for number, formant in enumerate(formants):
        pole = 2 * np.pi * formant
        response += pole**2 / (s**2 + 2 * np.pi * BANDWIDTH * s + pole**2) * 0.6**number
    return response


def band_response(length: int, rate: int, low: float, high: float) -> NDArray[np.float64]:
    """Frequency response of a band with soft edges."""
    frequencies = np.fft.rfftfreq(length, 1 / rate)
    middle, width = (low + high) / 2, (high - low) / 2
    return np.asarray(np.exp(-(((frequencies - middle) / width) ** 4)))


def _filter(sound: Samples, response: NDArray[np.complex128] | NDArray[np.float64]) -> Samples:
    return np.asarray(np.fft.irfft(np.fft.rfft(sound) * response, len(sound)))


def _scale(sound: Samples) -> Samples:
    return np.asarray(sound / max(1e-9, float(np.abs(sound).max(initial=0.0))))
