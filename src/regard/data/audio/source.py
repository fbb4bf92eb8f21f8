"""Source side of codecs that read sound: the features of recordings, and how they are normalised."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.config import AudioData
from regard.data.audio.arrays import is_array, read_shape, split_name
from regard.data.audio.augment import Augmentation
from regard.data.audio.batch import AudioExample, Frames, Synthesis, collate_frames
from regard.data.audio.cache import FeatureCache
from regard.data.audio.features import LogMel, Mfcc, build_features
from regard.data.audio.loader import AudioLoader
from regard.data.audio.normalise import Normalisation
from regard.data.audio.reading import read_header
from regard.data.records import Record, input_record, locate
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.data.axis import Audio

MEASURED = 1000
"""The most recordings from which the mean of a channel is computed."""
LISTED = 10
"""The most files that an error lists."""
THREADS = 8
Features = Float[Tensor, "frames channels"]
Source = TypeVar("Source", bound="AudioSource")


@dataclass(frozen=True, kw_only=True)
class AudioSource:
    """Features of recordings as a model reads them.

    `front` computes them from sound; with `arrays` they are read from files, of so many channels. The encoder's output has a
    vector for each `stride` frames.
    """

    kind: ClassVar[str] = "sound"
    reads_files: ClassVar[bool] = True

    front: LogMel = field(default_factory=LogMel)
    normalisation: Normalisation = field(default_factory=Normalisation)
    stride: int = 4
    arrays: int | None = None
    hop_ms: float = 10.0
    max_frames: int = 3000

    @property
    def channels(self) -> int:
        """Numbers of a frame."""
        return self.front.channels if self.arrays is None else self.arrays

    @property
    def seconds_per_frame(self) -> float:
        """Time between two frames."""
        return self.front.hop / self.front.rate if self.arrays is None else self.hop_ms / 1000

    def read(self, text: str, number: int = 1) -> Any:
        """Record of the path of a recording."""
        return input_record(text, number)

    def measure(self, record: Record, synthesis: Synthesis | None = None) -> int:
        """Frames of a recording by the header of its file."""
        if synthesis is not None:
            return self.front.count(-(-synthesis.length * self.front.rate // synthesis.rate))
        path, where = locate(record), record.where
        if is_array(path):
            frames, channels = read_shape(path, where)
            if channels != self.arrays:
                needs = f"recordings ({self.describe()})" if self.arrays is None else f"features of {self.arrays} channels"
                raise DataError(f"{where}: {path} has features of {channels} channels, and this model reads {needs}")
            return frames
        if self.arrays is not None:
            raise DataError(
                f"{where}: {path} is no file of features (.npy, .npz, .safetensors), and this model reads features of "
                f"{self.arrays} channels"
            )
        header = read_header(path, where)
        if header.frames == 0:
            raise DataError(f"{where}: {path} needs sound, got none: it has a header and no samples; leave it out")
        return self.front.count(-(-header.frames * self.front.rate // header.rate))

    def measure_all(self, records: Sequence[Record], sounds: Sequence[Synthesis] | None = None) -> list[int]:
        """Frames of several recordings; one error lists those that cannot be read."""
        if sounds is None:
            check_present(records)

        def measure(number: int) -> int | DataError:
            try:
                return self.measure(records[number], None if sounds is None else sounds[number])
            except DataError as error:
                return error

        with ThreadPoolExecutor(THREADS, thread_name_prefix="regard-sound") as pool:
            sizes = list(pool.map(measure, range(len(records))))
        if wrong := [size for size in sizes if isinstance(size, DataError)]:
            many = f"{len(wrong):,} of {len(records):,} recordings cannot be read: " * (len(wrong) > 1)
            more = f"; and {len(wrong) - LISTED:,} more" * (len(wrong) > LISTED)
            raise DataError(f"{many}{'; '.join(map(str, wrong[:LISTED]))}{more}") from wrong[0]
        return [size for size in sizes if isinstance(size, int)]

    def describe(self) -> str:
        """Description of the features, for messages."""
        kind = "MFCC" if isinstance(self.front, Mfcc) else "log mel"
        return f"{self.front.channels} channels of {kind} features at {self.front.rate:,} Hz"

    def cache(self, examples: Sequence[AudioExample]) -> FeatureCache:
        """Cache of the features of examples."""
        return FeatureCache(examples, self.front)

    def standardise(self: Source, cache: FeatureCache) -> Source:
        """Codec with the mean and the deviation of these recordings, or of many of them, where it normalises by those."""
        if self.normalisation.kind != "corpus":
            return self
        numbers = range(0, len(cache), -(-len(cache) // MEASURED))
        return replace(self, normalisation=Normalisation.measure(cache.features(number) for number in numbers))

    def features(self, example: AudioExample) -> Features:
        """Normalised features of one example."""
        return self.normalisation(self.cache([example]).features(0))

    def length(self, example: AudioExample) -> int:
        """Number of frames."""
        return example.frames

    def budget(self, examples: Sequence[AudioExample], count: int) -> int:
        """Frames of a batch of about `count` examples of median length."""
        lengths = sorted(example.frames for example in examples)
        return count * max(1, lengths[len(lengths) // 2])

    def collate(self, examples: Sequence[AudioExample]) -> Frames:
        """Features of examples, padded to one tensor."""
        return collate_frames([self.features(example) for example in examples])

    def loader(self, examples: Sequence[AudioExample], budget: int) -> AudioLoader:
        """Batches of an evaluation, each of at most so many frames."""
        return AudioLoader(self.cache(examples), self.normalisation, budget, shuffle=False)

    def train_loader(self, cache: FeatureCache, budget: int, seed: int, augmentation: Augmentation) -> AudioLoader:
        """Batches of a training, whose recordings are augmented."""
        return AudioLoader(cache, self.normalisation, budget, seed, augmentation=augmentation, prefetch=4)

    def positions(self, example: AudioExample) -> int:
        """Vectors of the encoder's output."""
        return -(-example.frames // self.stride)

    def pieces(self, example: AudioExample) -> list[str]:
        """The second at which each vector of the encoder's output begins."""
        step = self.seconds_per_frame * self.stride
        return [f"{place * step:.2f} s" for place in range(self.positions(example))]

    def grid(self, example: AudioExample) -> None:
        """None: sound is a sequence."""

    def axis(self, example: AudioExample) -> "Audio":
        """Axis of an attention's keys: the vectors of the encoder's output, over the spectrogram, with the sound."""
        from regard.data.axis import Audio  # axes need NumPy

        cache, step = self.cache([example]), self.seconds_per_frame * self.stride
        features = cache.features(0)
        if self.arrays is not None:
            return Audio(self.positions(example), step, features.T.numpy())
        return Audio(self.positions(example), step, features.T.numpy(), cache.samples(0).numpy(), self.front.rate)

    def example_inputs(self, lengths: Sequence[int], generator: torch.Generator) -> Frames:
        """Random features whose encoded lengths are these, to trace a model for export."""
        return collate_frames([torch.randn(length * self.stride, self.channels, generator=generator) for length in lengths])

    @property
    def dynamic_axes(self) -> dict[str, dict[int, str]]:
        """Names of the dimensions of a source that differ from batch to batch."""
        return {"data": {0: "sources", 1: "frames"}, "keep": {0: "sources", 1: "frames"}}

    def is_known(self, record: Any) -> bool:
        """True if there is a recording; a file that is missing or damaged is an error that names it."""
        self.measure(record)
        return True

    def fits(self, record: Any) -> bool:
        """True if there is a recording: what is read is never cut."""
        return self.is_known(record)

    def select_fitting(self, records: Sequence[Any]) -> list[int]:
        """Indices of all records: what is read is never cut."""
        return list(range(len(records)))


def describe_source(records: Iterable[Record], data: AudioData, stride: int) -> dict[str, Any]:
    """Settings of the source side as a config says; the first record decides if features are read from files."""
    first = next(iter(records), None)
    channels = None
    if first is not None and is_array(locate(first)):
        check_present([first])
        channels = read_shape(locate(first), first.where)[1]
    return {
        "front": build_features(data),
        "normalisation": Normalisation(data.normalise),
        "stride": stride,
        "arrays": channels,
        "hop_ms": data.hop_ms,
        "max_frames": data.max_frames,
    }


def check_present(records: Sequence[Record], exists: Callable[[str], bool] = os.path.isfile) -> None:
    """Raise where recordings are missing, and list the first of them with their lines."""
    absent = [record for record in records if not exists(split_name(locate(record))[0])]
    if absent:
        listed = ", ".join(f"{record.where} {record.source[:300]}" for record in absent[:LISTED])
        more = f" and {len(absent) - LISTED:,} more" * (len(absent) > LISTED)
        raise DataError(
            f"{len(absent):,} of {len(records):,} recordings are missing: {listed}{more}; "
            "paths count from the folder of the table that names them"
        )
