"""Protocols of a modality: what loading, training, search, prediction and export ask of a source, a target and a batch.

A modality is a folder of `data/` with a codec: text, images, audio and series. Nothing outside that folder, its
encoders, its tasks, its metrics, the viewer's drawing of its axis and the converters of `interop` imports its classes
(tests/test_modalities.py): all else goes through this file.

    input --read--> record --encode--> example --collate--> Source --encoder--> Encoded
                    record --encode_target, collate_target--> target --loss
                    source --first_input--> decoder.step --> Step.output
                    Step.output --emit--> output --decode--> prediction --write--> file
                                --feedback--> input of the next step, until is_end
"""

from collections.abc import Iterable, Iterator, Sequence
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from regard.data.batch import Padded
from regard.tree import Tree

if TYPE_CHECKING:  # models need no NumPy
    from regard.data.axis import Axis
    from regard.data.codec import Corpus, OverLong


@runtime_checkable
class WritableFile(Protocol):
    """File open for writing, of text or of bytes."""

    def write(self, content: Any, /) -> Any: ...


@runtime_checkable
class Source(Protocol):
    """Collated sources: a named tuple of tensors, one row per source, which an encoder of this modality reads."""

    @property
    def data(self) -> Tensor: ...

    @property
    def keep(self) -> Tensor:
        """Padding mask: True where there is data."""

    @property
    def lengths(self) -> list[int] | None:
        """Lengths that bound those of the targets; None where a source says nothing of them.

        Search asks `decoding.max_length.limit_lengths`, which multiplies them by `search.max_length_ratio`.
        """

    def to(self, device: torch.device | str) -> "Source":
        """Copy on another device."""

    def select_rows(self, rows: Sequence[int]) -> "Source":
        """Batch of these sources, without the padding that none of them needs."""

    def round_shape(self) -> "Source":
        """The sources with more padding, so that few shapes occur."""


@runtime_checkable
class AnyBatch(Protocol):
    """Batch of any modality: a named tuple whose tensors, except in `records`, are what the model and the loss read."""

    @property
    def source(self) -> Any:
        """The collated `Source`."""

    @property
    def target(self) -> Padded | None: ...

    @property
    def records(self) -> tuple[Any, ...]: ...

    @property
    def rows(self) -> int:
        """Number of rows: examples, unless packed rows hold several."""

    def to(self, device: torch.device | str) -> "AnyBatch":
        """Copy on another device."""

    def select_rows(self, rows: Sequence[int]) -> "AnyBatch":
        """Batch of these rows, without the padding that none of them needs: a batch is split where memory is short."""

    def round_shape(self) -> "AnyBatch":
        """The batch with more padding, so that few shapes occur: each shape is captured as a CUDA graph of its own."""

    def unpack(self) -> "AnyBatch":
        """The batch with one example in each row."""


@runtime_checkable
class Batches(Protocol):
    """Endless batches by number: a pure function of the number, so that a training resumes from one integer."""

    def batch(self, step: int) -> AnyBatch: ...


@runtime_checkable
class EpochBatches(Batches, Protocol):
    """Batches whose numbers go through a data set again and again, each epoch with equally many."""

    def steps_per_epoch(self) -> int: ...


@runtime_checkable
class OrderedBatches(Protocol):
    """Batches of an evaluation: every example once, with the indices that put answers back in order."""

    def in_order(self) -> Iterator[tuple[list[int], Any]]: ...


@runtime_checkable
class Example(Protocol):
    """Encoded record: what a codec makes of one and a loader collates."""

    @property
    def record(self) -> Any: ...


@runtime_checkable
class SequenceExample(Example, Protocol):
    """Encoded record whose source, and target where there is one, are token ids."""

    @property
    def source(self) -> list[int]: ...

    @property
    def target(self) -> list[int] | None: ...


@runtime_checkable
class SourceCodec(Protocol):
    """Source side of a codec: reads inputs, encodes records, collates examples, and is saved with a run."""

    kind: ClassVar[str]
    """Name of what it reads, for messages and for the saved file: "text", "pictures"."""
    reads_files: ClassVar[bool]
    """True if inputs are paths of files, which may be missing or damaged."""
    settings: ClassVar[tuple[str, ...]]
    """Settings of `data` that are fixed once it is fitted."""

    def read(self, text: str, number: int = 1) -> Any:
        """Record of an input as it was typed (predict, serve): a text, or the path of a file. `number` is its line."""

    def adapt(self, data: Any) -> "SourceCodec":
        """Codec with what the settings of another run may change: limits, and nothing that weights depend on."""

    def is_known(self, record: Any) -> bool:
        """False where nothing in a source was in the training data, so that an answer would be a guess.

        A file that is missing, damaged or larger than its cap is a DataError that names it.
        """

    def fits(self, record: Any) -> bool:
        """True if a source is known and the model reads all of it: it is not cut at its maximum length."""

    def select_fitting(self, records: Sequence[Any]) -> list[int]:
        """Indices of the records whose sources are not cut."""

    def encode(self, record: Any) -> Any:
        """Example of one record; it is never dropped, and one that is too long is cut."""

    def encode_all(self, records: Iterable[Any], over_long: "OverLong | None" = None) -> "Corpus":
        """Examples of records, and the report on them; `over_long` overrides the codec's rule for those too long."""

    def length(self, example: Any) -> int:
        """Size that a batch budget counts: tokens, or pixels."""

    def budget(self, examples: Sequence[Any], count: int) -> int:
        """Size of a batch of about `count` examples."""

    def collate(self, examples: Sequence[Any]) -> Source:
        """Sources of examples, padded to one tensor."""

    def loader(self, examples: Sequence[Any], budget: int) -> OrderedBatches:
        """Batches of an evaluation, each of at most this size."""

    def axis(self, example: Any) -> "Axis":
        """Axis of an attention's keys over this source: tokens, a grid over a picture, frames, steps of a series."""

    def pieces(self, example: Any) -> list[str]:
        """Labels of the positions of that axis, computed without what the axis shows of the source."""

    def grid(self, example: Any) -> tuple[int, int] | None:
        """Rows and columns of that axis; None for a sequence."""

    def example_inputs(self, lengths: Sequence[int], generator: torch.Generator) -> Source:
        """Random sources of these lengths, to trace a model for export; the lengths of an image are sides of its map."""

    @property
    def dynamic_axes(self) -> dict[str, dict[int, str]]:
        """Names of the dimensions of `data` and `keep` that differ from batch to batch, for export."""

    def save(self, directory: Path) -> list[Path]:
        """Write it into a run directory; returns the files written."""

    @classmethod
    def load(cls, directory: Traversable) -> "SourceCodec":
        """Read what `save` wrote."""


@runtime_checkable
class TargetCodec(Protocol):
    """Target side of a codec: what a model learns to output, and what its output means.

    A target is a sequence of tokens, of frames of a spectrogram or of values of a series, or a set such as labels or boxes.
    """

    def encode_target(self, record: Any) -> Any:
        """Target of a record as numbers; None where the record has none."""

    def collate_target(self, examples: Sequence[Any]) -> Any:
        """Targets of examples as a tree of tensors with a mask (`Padded` for a sequence); None where they have none."""

    @property
    def feedback(self) -> "Feedback | None":
        """Feedback of the decoder; None where a target is predicted in one forward."""

    def decode(self, output: Any) -> Any:
        """Prediction of one example: the text of token ids, the sound of frames, labels of their numbers."""

    def target_pieces(self, output: Any) -> list[str]:
        """Labels of the positions of an output: its tokens, or its steps."""

    def target_axis(self, output: Any) -> "Axis":
        """Axis of an attention's queries over an output."""

    def write(self, prediction: Any, file: WritableFile) -> None:
        """Write a prediction to an open file, as text or as bytes."""


@runtime_checkable
class Feedback(Protocol):
    """Feedback of a decoder that predicts step by step: the input of its next step, and when it stops.

    Rows come first in every tensor. A token decoder outputs logits and reads a token; one whose output is numbers (frames,
    values) reads numbers. Sets are predicted in one forward and need none of this.
    """

    def first_input(self, source: Any) -> Shaped[Tensor, "rows *input"]:
        """Input of the first step after collated sources: BOS, a frame of silence, the last observed value."""

    def decoder_input(self, source: Any, target: Padded) -> Shaped[Tensor, "rows time *input"]:
        """Input with teacher forcing: the first input, and the one that follows from each position of the target."""

    def emit(self, output: Tree) -> Shaped[Tensor, "rows *output"]:
        """Part of a step's output that becomes the prediction: the token of the highest logit, frames, values."""

    def feedback(self, output: Tree) -> Shaped[Tensor, "rows *input"]:
        """Input of the next step from the output of this one: the token, the last of several frames, the value."""

    def is_end(self, output: Tree) -> Bool[Tensor, " rows"]:
        """True in rows that end with this step: EOS, a stop probability above one half; never, for a fixed horizon."""


@runtime_checkable
class Codec(SourceCodec, TargetCodec, Protocol):
    """Both sides of a task: what a run directory holds beside its weights."""
