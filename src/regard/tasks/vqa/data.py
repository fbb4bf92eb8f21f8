"""Questions about pictures, as a table has them."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.config import quoted
from regard.data import table
from regard.data.lines import bounds
from regard.data.records import Record, numbered
from regard.errors import ConfigError, DataError
from regard.inputs import is_pipe
from regard.tasks.vqa.config import VqaData


@dataclass(frozen=True)
class Inquiry:
    """A picture, with the right answer for a target where it is known, and what is asked of it."""

    picture: Record
    question: str

    @property
    def source(self) -> str:
        """What it is called: the picture and the question."""
        return f"{self.picture.source} {self.question}"

    @property
    def target(self) -> str | None:
        """The answer."""
        return self.picture.target

    @property
    def where(self) -> str:
        """Its place in its file."""
        return self.picture.where


def read(data: VqaData, path: str) -> list[Inquiry]:
    """The questions of a table: it is read once for the questions, and once for the answers."""
    _readable(data, path)
    asked = table.read(path, data.image, data.question, names=("picture", "question"), bounds=bounds(data))
    answered = table.read(path, data.image, data.answer, names=("picture", "answer"), bounds=bounds(data))
    return [Inquiry(right, one.target or "") for one, right in zip(asked, answered, strict=True)]


def typed(text: str, number: int = 1) -> Inquiry:
    """An input, PATH TAB QUESTION."""
    path, _, question = text.partition("\t")
    if not path.strip() or not question.strip():
        raise DataError(
            f"input:{number} needs a picture and what is asked of it, PATH TAB QUESTION, got {quoted(text)}; predict "
            "and view have --question for one that all are asked"
        )
    return Inquiry(Record(path, None, f"input:{number}"), question)


def places(inquiries: Sequence[Inquiry]) -> list[Record]:
    """The pictures that are asked about, each once and at its first place."""
    found: dict[tuple[str, str], Record] = {}
    for each in inquiries:
        found.setdefault((each.where.rpartition(":")[0], each.picture.source), each.picture)
    return list(found.values())


def _readable(data: VqaData, path: str) -> None:
    """Raise for what cannot be read as a table of three columns."""
    pipe = next((file for file in table.files(path) if is_pipe(file)), None)
    if table.BETWEEN in path or path == "-" or pipe is not None:
        once = "standard input is read once" if path == "-" else f"{pipe} is a pipe, which is read once"
        what = "parallel files have two" if table.BETWEEN in path else once
        raise DataError(f"{path!r} needs to be a table with an image, a question and an answer on each line: {what}")
    named = [column for column in (data.image, data.question, data.answer) if numbered(column) is None]
    if len(named) in (1, 2):
        raise ConfigError(
            f"data.image={data.image}, data.question={data.question} and data.answer={data.answer} need to be all names or "
            "all numbers: a table has a header or has none"
        )
