"""Codec of visual questions: preprocessing of pictures, question -> tokens, and answer <-> number."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from regard.config import quoted
from regard.data.axis import Text
from regard.data.batch import Padded, pad_present
from regard.data.codec import SETTINGS, Corpus, OverLong, Report, refuse_unknown_labels
from regard.data.image.augment import Change
from regard.data.image.cache import ImageCache, shared
from regard.data.image.preprocess import ImageCodec, checked, usual
from regard.data.image.reading import present
from regard.data.image.types import ImageExample
from regard.data.modality import WritableFile
from regard.data.records import locate
from regard.data.special_tokens import EOS, NAMES, UNK
from regard.data.table import DataError
from regard.data.text import tokenizers
from regard.data.text.tokenizers import Piece, Tokenizer
from regard.tasks.vqa.batch import SharedPictureLoader, group_by_picture
from regard.tasks.vqa.config import VqaData
from regard.tasks.vqa.data import PictureQuestion, distinct_pictures, parse_input

FORMAT = 1
KIND = "pictures with questions"
KINDS: dict[str, type] = {"answers": list, "lowercase": bool, "max_question_length": int, "over_long": str}
"""Settings saved beside the tokenizer and the preprocessing of pictures, with their types."""


@dataclass(frozen=True)
class QuestionCodec(ImageCodec):
    """Preprocessing of pictures, a tokenizer for questions, and all answers. `max_question_length` counts EOS."""

    kind: ClassVar[str] = KIND
    feedback: ClassVar[None] = None
    settings: ClassVar[tuple[str, ...]] = (
        "tokenizer",
        "vocab_size",
        "min_frequency",
        "lowercase",
        "height",
        "width",
        "channels",
    )
    """The settings of data that the codec depends on."""

    question: Tokenizer
    answers: tuple[str, ...]
    lowercase: bool = True
    max_question_length: int = 64
    over_long: OverLong = "drop"

    @classmethod
    def fit(cls, records: Sequence[PictureQuestion], data: VqaData, stride: int) -> "QuestionCodec":
        """Train the tokenizer on the questions of the records; the answers are all of theirs, in alphabetical order."""
        if data.max_question_length < 2:
            raise ValueError("max_question_length needs at least 2: a token and the end")
        answers = sorted({record.target.strip() for record in records if record.target is not None})
        if len(answers) < 2:
            text = ", ".join(answers) or "none"
            raise DataError(f"visual question answering needs 2 different answers or more, got {text}")
        texts = [record.question.lower() if data.lowercase else record.question for record in records]
        question = tokenizers.train(data.tokenizer, texts, data.vocab_size, data.min_frequency)
        limits = data.max_question_length, data.over_long
        return cls(question, tuple(answers), data.lowercase, *limits, **usual(data, stride))

    def adapt(self, data: VqaData) -> "QuestionCodec":
        """The codec with the same vocabularies and the limits of these settings."""
        return replace(self, max_question_length=data.max_question_length, over_long=data.over_long)

    @property
    def max_source_length(self) -> int:
        """Most tokens of a question, EOS included."""
        return self.max_question_length

    def encode(self, record: PictureQuestion) -> ImageExample:
        """Encode one record; a question that is too long is truncated."""
        example: ImageExample = self.encode_all([record], over_long="truncate").examples[0]
        return example

    def encode_all(
        self,
        records: Iterable[PictureQuestion],
        over_long: OverLong | None = None,
        renderers: Sequence[Callable[[], Tensor]] | None = None,
    ) -> Corpus:
        """Encode records whose pictures are existing files or, with `renderers`, are rendered on access."""
        records = list(records)
        if renderers is None:
            present(distinct_pictures(records))
        pictures: Sequence[Path | Callable[[], Tensor]] = (
            [locate(record.picture) for record in records] if renderers is None else renderers
        )
        numbers = {answer: number for number, answer in enumerate(self.answers)}
        self._check_answers(records, numbers)
        examples: list[ImageExample] = []
        cut = 0
        for record, picture, tokens in zip(records, pictures, self._tokens(records), strict=True):
            long = len(tokens) >= self.max_question_length
            if long and (over_long or self.over_long) == "drop":
                continue
            cut += long
            labels = None if record.target is None else [numbers[record.target.strip()]]
            question = [*tokens[: self.max_question_length - 1], EOS]
            examples.append(ImageExample(picture, record=record, labels=labels, question=question))
        dropped = len(records) - len(examples)
        return Corpus(examples, Report(len(records), len(examples), cut, 0, dropped, unknown(examples)))

    def train_loader(self, cache: ImageCache, budget: int, seed: int, change: Change | None) -> SharedPictureLoader:  # type: ignore[override]
        """Training batches: augmented pictures, each with all of its questions."""
        ones = self.cache_images(group_by_picture(cache.examples, cache.first))
        return SharedPictureLoader(super().train_loader(ones, budget, seed, change))

    def loader(self, examples: Sequence[ImageExample], budget: int) -> SharedPictureLoader:  # type: ignore[override]
        """Evaluation batches of at most `budget` pixels: pictures, each with all of its questions."""
        return SharedPictureLoader(super().loader(group_by_picture(examples, shared(examples)), budget))

    def encode_target(self, record: PictureQuestion) -> list[int] | None:
        """Number of a record's answer; None where it has none."""
        return None if record.target is None else [self.answers.index(record.target.strip())]

    def collate_target(self, examples: Sequence[ImageExample]) -> Padded | None:
        """Answers of examples as rows; None where they have none."""
        return pad_present([example.labels for example in examples])

    def decode(self, output: Sequence[int]) -> list[str]:
        """Answers of their numbers."""
        return [self.answers[number] for number in output]

    def write(self, prediction: Sequence[str], file: WritableFile) -> None:
        """Write answers as one line."""
        file.write(f"{', '.join(prediction)}\n")

    def target_pieces(self, output: Sequence[int]) -> list[str]:
        """Answers of their numbers."""
        return self.decode(output)

    def target_axis(self, output: Sequence[int]) -> Text:
        """Axis of an attention's queries: the answers."""
        return Text.of(self.decode(output))

    def words(self, example: ImageExample) -> list[Piece]:
        """The piece of text of each token of a question; EOS covers none, and has its name."""
        text = self.prepare(example.record.question)
        return [*self.question.pieces(text)[: self.max_question_length - 1], Piece(NAMES[EOS], len(text), len(text))]

    def read(self, text: str, number: int = 1) -> PictureQuestion:
        """Question of an input, PATH TAB QUESTION."""
        return parse_input(text, number)

    def is_known(self, record: Any) -> bool:
        """True where the picture exists, and a token of the question is in the vocabulary."""
        return super().is_known(record.picture) and any(token != UNK for token in self._tokens([record])[0])

    def fits(self, record: Any) -> bool:
        """True if a record is known and its question is not cut."""
        return self.is_known(record) and bool(self.select_fitting([record]))

    def select_fitting(self, records: Sequence[Any]) -> list[int]:
        """Indices of the records whose question fits the model."""
        return [number for number, token in enumerate(self._tokens(records)) if len(token) < self.max_question_length]

    def prepare(self, text: str) -> str:
        """The text that is tokenized: in lower case, when the codec asks for that."""
        return text.lower() if self.lowercase else text

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory, as JSON and the tokenizer's own files; the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        settings = {"format": FORMAT, "reads": KIND, **self.saved(), **{name: getattr(self, name) for name in KINDS}}
        path = directory / SETTINGS
        path.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return [path, *self.question.save(directory, "source")]

    @classmethod
    def load(cls, directory: Traversable) -> "QuestionCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            values = _checked(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a codec of {KIND}, format {FORMAT}: {error}") from error
        return cls(tokenizers.load(directory, "source"), **values)

    def _tokens(self, records: Sequence[PictureQuestion]) -> list[list[int]]:
        return self.question.encode_all([self.prepare(record.question) for record in records])

    def _check_answers(self, records: Sequence[PictureQuestion], numbers: dict[str, int]) -> None:
        unseen = [
            f"{record.where} {quoted(record.target)}"
            for record in records
            if record.target is not None and record.target.strip() not in numbers
        ]
        refuse_unknown_labels(unseen, "answers", self.answers)


def unknown(examples: Sequence[ImageExample]) -> float:
    """Share of UNK among the tokens of questions, without EOS."""
    questions = [example.question or [EOS] for example in examples]
    return sum(question.count(UNK) for question in questions) / max(1, sum(len(question) - 1 for question in questions))


def _checked(settings: Any) -> dict[str, Any]:
    if not isinstance(settings, dict) or settings.get("format") != FORMAT or settings.get("reads") != KIND:
        raise ValueError("it is of another format")
    values = checked(settings, KINDS)
    if not all(isinstance(answer, str) and answer for answer in values["answers"]) or not values["answers"]:
        raise ValueError("answers need to be words")
    if values["over_long"] not in ("truncate", "drop"):
        raise ValueError(f"over_long is {values['over_long']!r}, and needs to be truncate or drop")
    return values
