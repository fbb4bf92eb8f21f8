"""Tables of questions about pictures."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.config import quoted
from regard.data import table
from regard.data.header import table_settings
from regard.data.lines import bounds
from regard.data.records import Record, numbered
from regard.errors import ConfigError, DataError
from regard.inputs import is_pipe
from regard.tasks.vqa.config import VqaData


@dataclass(frozen=True)
class PictureQuestion:
    """A question about a picture, with its answer as the target of the picture where it is known."""

    picture: Record
    question: str

    @property
    def source(self) -> str:
        """The path of the picture and the question."""
        return f"{self.picture.source} {self.question}"

    @property
    def target(self) -> str | None:
        """The answer."""
        return self.picture.target

    @property
    def where(self) -> str:
        """Location in its file."""
        return self.picture.where


def read(data: VqaData, path: str) -> list[PictureQuestion]:
    """The questions of a table, which is read once for the questions and once for the answers."""
    _check_table(data, path)
    questions = table.read(
        path, data.image, data.question, names=("picture", "question"), bounds=bounds(data), settings=table_settings(data)
    )
    answers = table.read(
        path, data.image, data.answer, names=("picture", "answer"), bounds=bounds(data), settings=table_settings(data)
    )
    return [PictureQuestion(answer, question.target or "") for question, answer in zip(questions, answers, strict=True)]


def parse_input(text: str, number: int = 1) -> PictureQuestion:
    """Parse an input, PATH TAB QUESTION."""
    path, _, question = text.partition("\t")
    if not path.strip() or not question.strip():
        raise DataError(
            f"input:{number} needs a picture and a question, PATH TAB QUESTION, got {quoted(text)}; predict "
            "and view have --question for one question about all pictures"
        )
    return PictureQuestion(Record(path, None, f"input:{number}"), question)


def distinct_pictures(questions: Sequence[PictureQuestion]) -> list[Record]:
    """The pictures of questions, each once, in order of first use."""
    records: dict[tuple[str, str], Record] = {}
    for question in questions:
        records.setdefault((question.where.rpartition(":")[0], question.picture.source), question.picture)
    return list(records.values())


def _check_table(data: VqaData, path: str) -> None:
    """Raise where a path cannot be a table of three columns."""
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
