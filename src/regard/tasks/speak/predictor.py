"""Predictor of speech: sound of a text, the times of its words, and evaluation against recordings."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard import io
from regard.alignment.time_formats import FORMATS, SUFFIXES, format_times
from regard.alignment.times import TimedWord, detect_activity, time_spoken_words
from regard.data.axis import Axis
from regard.decoding.logprobs import UndistributedError
from regard.errors import ConfigError, DataError
from regard.inference.forward_predictor import AxisWeights, ForwardPredictor, ForwardTrace
from regard.inference.prediction import Prediction
from regard.inference.predictor import Input
from regard.metrics.text import Metrics
from regard.tasks.speak.codec import SpeechCodec, SpeechExample, SpokenFrames
from regard.tasks.speak.loss import mean_absolute_error
from regard.tasks.speak.metrics import (
    ReadingFigures,
    best_head,
    mean_of,
    measure_reading,
    mel_cepstral_distortion,
    share_of_words,
)
from regard.tasks.speak.model import Spoken


class SpeakPredictor(ForwardPredictor):
    """An input is a text; its answer is sound, with the times of its words."""

    codec: SpeechCodec
    output_suffix: ClassVar[str | None] = ".wav"
    times_format: str | None = None
    """Format in which the times of the words are printed in place of a line about the sound."""
    times_file: Path | None = None
    """File that the times of the words are written to."""

    def set_times(self, value: str) -> None:
        """Set the file of the word times, or the format in which they are printed."""
        if value.lower() in FORMATS:
            self.times_format = value.lower()
            return
        path = Path(value)
        if path.suffix.lower() not in SUFFIXES:
            raise ConfigError(
                f"--times needs a file called NAME{', NAME'.join(SUFFIXES)}, or one of {', '.join(FORMATS)}, got {value!r}"
            )
        io.check_target(path)
        self.times_file = path

    def limit_steps(self, tokens: Int[Tensor, " batch"]) -> Int[Tensor, " batch"]:
        """The most steps of the decoder for texts of so many tokens."""
        return -(-self.codec.limit_frames(tokens) // self.model.reduction)

    def outcomes(
        self, inputs: Sequence[Input], *, best: int = 1, align: bool = False, done: frozenset[int] = frozenset(), **_: Any
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        """The index of each text with its sound, or with the error of one whose frames are not finite."""
        if best != 1:
            raise ConfigError(f"a text is spoken in one way, got {best} to choose from")
        if self.times_file is not None and len(inputs) > 1:
            raise ConfigError(f"--times={self.times_file} is for one text, got {len(inputs)}; name a format, such as json")
        yield from super().outcomes(inputs, best=best, align=align, done=done)

    def forward(self, batch: Any, weights: bool = False) -> Spoken:
        """Frames of a batch of texts, by free running from a fixed seed: the prenet has its dropout in prediction too."""
        with fixed_seed(batch.source.data.device):
            spoken: Spoken = self.model.speak(batch.source, self.limit_steps(batch.source.keep.sum(1)))
        return spoken

    def scores(self, output: Spoken) -> Float[Tensor, "batch *scores"]:
        """Frames of an output: where one is not finite, there is no sound."""
        return output.refined

    def decode(self, examples: Sequence[SpeechExample], output: Spoken, best: int, align: bool) -> list[list[Prediction]]:
        """The sound of each text, with its words and their times."""
        return [[self._answer(example, output, row, align)] for row, example in enumerate(examples)]

    def _answer(self, example: SpeechExample, output: Spoken, row: int, align: bool) -> Prediction:
        spoken, weights = self.read_row(example, output, row)
        words, reading = self.time_words(example, spoken), measure_reading(weights, self.codec.word_units(example))
        seconds = len(spoken.frames) * self.codec.seconds_per_frame
        fields: dict[str, Any] = {
            "seconds": round(seconds, 3),
            "words": [
                {"word": text, "start": round(start, 3), "end": round(end, 3), "confidence": round(confidence, 3)}
                for text, start, end, confidence in words
            ],
            "diagonality": round(reading.diagonality, 3),
            "skipped": list(reading.skipped),
            "repeated": list(reading.repeated),
            "stopped": bool(output.steps[row].sum() < self.limit_steps(torch.tensor([len(example.source)]))[0]),
        }
        if self.times_file is not None:
            kind = SUFFIXES[self.times_file.suffix.lower()]
            more = {"text": example.record.source} | {name: fields[name] for name in ("skipped", "repeated")}
            content = format_times(words, kind, seconds, **(more if kind == "json" else {}))  # type: ignore[arg-type]
            io.write(self.times_file, content.encode())
        text, printed = describe(seconds, reading, bool(fields["stopped"])), None
        if self.times_format is not None:
            printed = format_times(words, self.times_format, seconds).rstrip("\n")  # type: ignore[arg-type]
        pieces = self.codec.pieces(example) if align else []
        target = self.codec.target_pieces(spoken) if align else []
        sound = self.codec.decode(spoken)
        return Prediction(
            text, 0.0, pieces, target, spoken.weights if align else None, fields=fields, printed=printed, output=sound
        )

    def read_row(
        self, example: SpeechExample, output: Spoken, row: int
    ) -> tuple[SpokenFrames, Float[Tensor, "heads steps keys"]]:
        """Frames and the best head of one text, and the weights of all heads, without padding."""
        frames, steps = int(output.keep[row].sum()), int(output.steps[row].sum())
        weights = output.weights[row, :, :steps, : len(example.source)].float().cpu()
        return SpokenFrames(output.refined[row, :frames].float().cpu(), best_head(weights)), weights

    def time_words(self, example: SpeechExample, spoken: SpokenFrames) -> list[TimedWord]:
        """Times of the words of a text, by the path of the attention, without the silence around them."""
        assert spoken.weights is not None, "a decoder of speech attends to its text"
        reduction, energy = self.model.reduction, self.codec.restore(spoken.frames).mean(1)
        activity = detect_activity(energy)
        by_step = F.pad(activity, (0, -len(activity) % reduction)).view(-1, reduction).any(1)
        step = self.codec.seconds_per_frame * reduction
        return time_spoken_words(spoken.weights, self.codec.word_units(example), step, activity=by_step)

    def evaluate_examples(self, examples: Sequence[SpeechExample], *, beam: int | None = None) -> Metrics:
        """L1 with teacher forcing, and of free running the distortion and how the attention read the text."""
        if missing := [example for example in examples if example.sound is None]:
            raise DataError(f"{missing[0].record.where} has no recording to compare with; give a table with both columns")
        errors, forced = [0.0] * len(examples), [0.0] * len(examples)
        distortion, readings = [0.0] * len(examples), list[ReadingFigures]()
        by_index: dict[int, ReadingFigures] = {}
        for indices, batch in self.batches(examples):
            batch = batch.to(next(self.model.parameters()).device)
            with (
                torch.no_grad(),
                torch.random.fork_rng(devices=[batch.source.data.device] if batch.source.data.is_cuda else []),
            ):
                torch.manual_seed(0)
                taught = self.model(batch.source, batch.target)
            spoken = self.infer(batch, weights=True)
            l1 = mean_absolute_error(taught.refined, batch.target.data, batch.target.keep)
            for row, index in enumerate(indices):
                errors[index] = l1[row]
                units = self.codec.word_units(examples[index])
                forced[index] = measure_reading(self.read_row(examples[index], taught, row)[1], units).diagonality
                answer, weights = self.read_row(examples[index], spoken, row)
                by_index[index] = measure_reading(weights, units)
                true = batch.target.data[row, : int(batch.target.keep[row].sum())].float().cpu()
                distortion[index] = mel_cepstral_distortion(self.codec.restore(answer.frames), self.codec.restore(true))
        readings = [by_index[index] for index in range(len(examples))]
        words = [reading.words for reading in readings]
        misread = [len({*reading.skipped, *reading.repeated}) for reading in readings]
        return {
            "l1": mean_of(errors, "teacher forcing, normalised log mel"),
            "mcd": mean_of(distortion, "dB, 13 coefficients of log mel, DTW, free running"),
            "diagonality": mean_of([reading.diagonality for reading in readings], "free running, 10 % band"),
            "diagonality_forced": mean_of(forced, "teacher forcing, 10 % band"),
            "skipped": share_of_words([len(reading.skipped) for reading in readings], words, "% of words, free running"),
            "repeated": share_of_words([len(reading.repeated) for reading in readings], words, "% of words, free running"),
            "misread": share_of_words(misread, words, "% of words skipped or repeated"),
        }

    def trace_parts(self, example: SpeechExample, output: Spoken) -> ForwardTrace:
        """Each attention from the steps of the decoder, laid over the spectrogram, to the tokens of the text."""
        frames, steps = int(output.keep[0].sum()), int(output.steps[0].sum())
        spoken, _ = self.read_row(example, output, 0)
        axes: dict[str, Axis] = {"speech": self.codec.target_axis(spoken), "text": self.codec.axis(example)}
        assert frames == len(spoken.frames)
        attentions = {
            name: AxisWeights("speech", "text", attended.weights[0, :, :steps, : len(example.source)])
            for name, attended in output.attended.items()
            if attended.weights is not None
        }
        return ForwardTrace(axes, attentions)


@contextmanager
def fixed_seed(device: torch.device) -> Iterator[None]:
    """Inside, random numbers are those of a fixed seed, and outside as if nothing had been drawn."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        yield


def describe(seconds: float, reading: ReadingFigures, stopped: bool) -> str:
    """A line about a sound: its length, and what went wrong in it."""
    parts = [f"{seconds:.2f} s of sound"]
    parts += [f"skipped: {' '.join(reading.skipped)}"] * bool(reading.skipped)
    parts += [f"repeated: {' '.join(reading.repeated)}"] * bool(reading.repeated)
    parts += ["it did not stop by itself"] * (not stopped)
    return "; ".join(parts)
