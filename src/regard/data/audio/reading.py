"""Read sound files: WAV, FLAC, OGG, Opus, MP3 and whatever else libsndfile decodes, of any rate and number of channels.

A file may come from anybody. Its length in its header is checked before anything is decoded, it is decoded block by block,
and what cannot be learned from (no samples, NaN) is an error that names it. Channels are averaged. Samples are numbers from
-1 to 1 whatever the file has, 8 bits or 24; clipped sound and silence are read as they are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.audio.resampling import resample
from regard.data.lines import unreadable
from regard.errors import DataError
from regard.extras import describe_install
from regard.inputs import open_regular

MAX_HOURS = 4.0
"""The most hours of a recording."""
MAX_SAMPLES = int(MAX_HOURS * 3600 * 48_000) * 2
"""The most samples that are decoded: of four hours in stereo at 48 kHz."""
MIN_RATE, MAX_RATE = 1_000, 768_000
"""Sampling rates of sound in hertz; a header with another one is damaged."""
BLOCK = 1 << 20
"""Samples of each channel that are decoded at a time."""


class Recording(NamedTuple):
    """Samples of one channel from -1 to 1, and their rate in hertz."""

    samples: Float[Tensor, " samples"]
    rate: int

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.rate


class SoundHeader(NamedTuple):
    """Length, rate and channels of a sound file by its header."""

    frames: int
    rate: int
    channels: int

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return self.frames / self.rate


def read_sound(path: Path | str, rate: int | None = None, where: str | None = None) -> Recording:
    """Read the sound of a file, at `rate` or else at its own. `where` is the line that names it, for errors."""
    name = describe(path, where)
    with open_sound(path, where) as (file, header):
        samples = torch.cat(list(_blocks(file, name, header)) or [torch.zeros(0)])
    check_samples(samples, header.rate, name)
    if rate is None or rate == header.rate:
        return Recording(samples, header.rate)
    return Recording(resample(samples, header.rate, rate), rate)


def read_header(path: Path | str, where: str | None = None) -> SoundHeader:
    """Read the header of a sound file; nothing is decoded."""
    with open_sound(path, where) as (_, header):
        return header


def describe(path: Path | str, where: str | None) -> str:
    """Name of a file in errors, with the line that names it."""
    return f"{path}" if where is None else f"{where}: {path}"


def check_samples(samples: Float[Tensor, " samples"], rate: int, name: str) -> None:
    """Raise for sound without samples, and for samples that are not finite."""
    if not len(samples):
        raise DataError(f"{name} needs sound, got none: it has a header and no samples; leave it out, or record it again")
    finite = samples.isfinite()
    if not finite.all():
        first = int((~finite).nonzero()[0])
        raise DataError(
            f"{name} needs finite samples, got {int((~finite).sum()):,} of {len(samples):,} that are NaN or infinite, the "
            f"first at {first / rate:.3f} s; write it anew, or leave it out"
        )


@contextmanager
def open_sound(path: Path | str, where: str | None = None) -> Iterator[tuple[Any, SoundHeader]]:
    """Open a sound file, with its header checked."""
    soundfile, name = require_soundfile(), describe(path, where)
    try:
        file = open_regular(path)
    except OSError as error:
        raise DataError(describe(unreadable(str(path), error), where)) from error
    with file, _opened(soundfile, file, name) as sound:
        header = SoundHeader(max(0, sound.frames), sound.samplerate, sound.channels)
        if not MIN_RATE <= header.rate <= MAX_RATE:
            raise DataError(
                f"{name} needs a sampling rate from {MIN_RATE:,} to {MAX_RATE:,} Hz, got {header.rate:,}; its header is "
                "damaged"
            )
        if header.frames * header.channels > MAX_SAMPLES or header.seconds > MAX_HOURS * 3600:
            raise DataError(
                f"{name} needs to be at most {MAX_HOURS:g} hours long, its header says {header.seconds / 3600:,.1f} "
                f"hours in {header.channels} channels; cut it into parts"
            )
        yield sound, header


def require_soundfile() -> Any:
    """The soundfile module; an error that says how to install it where it is missing."""
    try:
        import soundfile  # type: ignore[import-untyped]
    except (ImportError, OSError) as error:  # OSError: libsndfile itself is missing
        raise DataError(
            f"sound files are read by the soundfile package, which is not installed: {describe_install('audio')}; features "
            "in .npy, .npz or .safetensors files need no package"
        ) from error
    return soundfile


def _opened(soundfile: Any, file: BufferedReader, name: str) -> Any:
    head = file.peek(16)[:16]
    try:
        return soundfile.SoundFile(file)
    except (soundfile.LibsndfileError, TypeError, ValueError) as error:  # TypeError: no format that it knows
        raise DataError(
            f"{name} needs to be sound (WAV, FLAC, OGG, Opus, MP3), and {_first_bytes(head)}; convert it to WAV or FLAC, or "
            "leave it out"
        ) from error


def _first_bytes(head: bytes) -> str:
    if not head:
        return "it is empty"
    if head.isascii() and head.decode("ascii").isprintable():
        return f"it begins like a text, with {head.decode('ascii')!r}"
    return f"it is damaged or of another kind: it begins with the bytes {head[:8].hex(' ')}"


def _blocks(file: Any, name: str, header: SoundHeader) -> Iterator[Float[Tensor, " samples"]]:
    """Blocks of the mean of all channels."""
    count, error_type = 0, require_soundfile().LibsndfileError
    while True:
        try:
            block = file.read(BLOCK, dtype="float32", always_2d=True)
        except error_type as error:
            raise DataError(
                f"{name} is damaged: it cannot be decoded after {count / header.rate:.2f} s ({error})"
            ) from error
        if not len(block):
            return
        count += len(block)
        if count * header.channels > MAX_SAMPLES:
            raise DataError(f"{name} decodes to more than its header says, and more than {MAX_HOURS:g} hours; cut it")
        yield torch.from_numpy(block).mean(1)
