"""Files of answers that are no text, such as sound: one for each input."""

from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from regard import io
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.inference.prediction import Prediction
    from regard.inference.predictor import Predictor


@dataclass(frozen=True)
class OutputFiles:
    """The file of one answer, or a folder with a file for each input, called by its number."""

    model: "Predictor"
    path: Path
    several: bool

    def write(self, number: int, answer: "Prediction") -> None:
        """Write the answer to the input of this number, from 1."""
        buffer = BytesIO()
        self.model.codec.write(answer.output, buffer)
        io.write(self.locate(number), buffer.getvalue())

    def locate(self, number: int) -> Path:
        """Path of the answer to the input of this number."""
        return self.path / f"{number}{self.model.output_suffix}" if self.several else self.path


def build_output_files(model: "Predictor", out: Path | None, several: bool) -> OutputFiles | None:
    """The files of `--out`, checked before anything is computed; None for a model that writes text, or without `--out`."""
    suffix = model.output_suffix
    if out is None or suffix is None:
        return None
    if not several and out.suffix.lower() != suffix:
        raise DataError(
            f"--out needs a file called NAME{suffix} for the answer of this model ({model.name}), got {out.name!r}"
        )
    if several and (out.suffix.lower() == suffix or out.is_file()):
        raise DataError(f"--out needs a folder for the answers to several inputs, one file for each, got {str(out)!r}")
    if several:
        with io.room(out):
            out.mkdir(parents=True, exist_ok=True)
    io.check_target(out / f"1{suffix}" if several else out)
    return OutputFiles(model, out, several)
