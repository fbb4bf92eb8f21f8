"""Pictures with questions and answers: how a picture is read, question -> token numbers, and answer <-> number."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from regard.config import quoted
from regard.data.codec import SETTINGS, Corpus, OverLong, Report, refuse_unknown_labels
from regard.data.image.augment import Change
from regard.data.image.cache import ImageCache, shared
from regard.data.image.preprocess import ImageCodec, checked, usual
from regard.data.image.reading import present
from regard.data.image.types import ImageExample
from regard.data.records import locate
from regard.data.special_tokens import EOS, NAMES, UNK
from regard.data.table import DataError
from regard.data.text import tokenizers
from regard.data.text.tokenizers import Piece, Tokenizer
from regard.tasks.vqa.batch import Shared, grouped
from regard.tasks.vqa.config import VqaData
from regard.tasks.vqa.data import Inquiry, places, typed

FORMAT = 1
KIND = "pictures with questions"
KINDS: dict[str, type] = {"answers": list, "lowercase": bool, "max_question_length": int, "over_long": str}
"""What is saved beside the tokens and how pictures are read, and as what."""


@dataclass(frozen=True)
class AskedCodec(ImageCodec):
    """How pictures are read, a tokenizer for questions, and all answers. `max_question_length` counts EOS."""

    kind: ClassVar[str] = KIND
    settings: ClassVar[tuple[str, ...]] = (
        "tokenizer",
        "vocab_size",
        "min_frequency",
        "lowercase",
        "height",
        "width",
        "channels",
    )
    """The settings of data that make it."""

    question: Tokenizer
    answers: tuple[str, ...]
    lowercase: bool = True
    max_question_length: int = 64
    over_long: OverLong = "drop"

    @classmethod
    def fit(cls, records: Sequence[Inquiry], data: VqaData, stride: int) -> "AskedCodec":
        """Train the tokenizer on the questions of the records; the answers are all of theirs, in alphabetical order."""
        if data.max_question_length < 2:
            raise ValueError("max_question_length needs at least 2: a token and the end")
        answers = sorted({record.target.strip() for record in records if record.target is not None})
        if len(answers) < 2:
            raise DataError(f"to answer takes 2 different answers or more, got {', '.join(answers) or 'none'}")
        texts = [record.question.lower() if data.lowercase else record.question for record in records]
        question = tokenizers.train(data.tokenizer, texts, data.vocab_size, data.min_frequency)
        limits = data.max_question_length, data.over_long
        return cls(question, tuple(answers), data.lowercase, *limits, **usual(data, stride))

    def adapt(self, data: VqaData) -> "AskedCodec":
        """Codec of the same tokens and answers, with the limits of this config."""
        return replace(self, max_question_length=data.max_question_length, over_long=data.over_long)

    @property
    def max_source_length(self) -> int:
        """The most tokens of a question, EOS among them."""
        return self.max_question_length

    def encode(self, record: Inquiry) -> ImageExample:
        """One record; it is never dropped, and a question that is too long is cut."""
        example: ImageExample = self.encode_all([record], over_long="truncate").examples[0]
        return example

    def encode_all(
        self,
        records: Iterable[Inquiry],
        over_long: OverLong | None = None,
        drawn: Sequence[Callable[[], Tensor]] | None = None,
    ) -> Corpus:
        """Many records, whose pictures are files, and all of them there, unless they are `drawn`."""
        records = list(records)
        if drawn is None:
            present(places(records))
        pictures: Sequence[Path | Callable[[], Tensor]] = (
            [locate(each.picture) for each in records] if drawn is None else drawn
        )
        numbers = {answer: number for number, answer in enumerate(self.answers)}
        self._known(records, numbers)
        examples: list[ImageExample] = []
        cut = 0
        for record, picture, tokens in zip(records, pictures, self._tokens(records), strict=True):
            long = len(tokens) >= self.max_question_length
            if long and (over_long or self.over_long) == "drop":
                continue
            cut += long
            held = None if record.target is None else [numbers[record.target.strip()]]
            asked = [*tokens[: self.max_question_length - 1], EOS]
            examples.append(ImageExample(picture, record=record, labels=held, question=asked))
        dropped = len(records) - len(examples)
        return Corpus(examples, Report(len(records), len(examples), cut, 0, dropped, unknown(examples)))

    def train_loader(self, cache: ImageCache, budget: int, seed: int, change: Change | None) -> Shared:  # type: ignore[override]
        """Batches to train with: pictures that change at random, each with all of its questions."""
        ones = self.cache_images(grouped(cache.examples, cache.first))
        return Shared(super().train_loader(ones, budget, seed, change))

    def loader(self, examples: Sequence[ImageExample], budget: int) -> Shared:  # type: ignore[override]
        """Batches to evaluate with: pictures of at most so many pixels, each with all of its questions."""
        return Shared(super().loader(grouped(examples, shared(examples)), budget))

    def words(self, example: ImageExample) -> list[Piece]:
        """What each token of a question covers of its text; the end covers nothing, and shows its name."""
        text = self.prepare(example.record.question)
        return [*self.question.pieces(text)[: self.max_question_length - 1], Piece(NAMES[EOS], len(text), len(text))]

    def read(self, text: str, number: int = 1) -> Inquiry:
        """Question of an input, PATH TAB QUESTION."""
        return typed(text, number)

    def is_known(self, record: Any) -> bool:
        """True if there is an image, and any token of the question is known."""
        return super().is_known(record.picture) and any(token != UNK for token in self._tokens([record])[0])

    def fits(self, record: Any) -> bool:
        """True if a record is known and its question is not cut."""
        return self.is_known(record) and bool(self.select_fitting([record]))

    def select_fitting(self, records: Sequence[Any]) -> list[int]:
        """Indices of the records whose questions are not cut."""
        return [number for number, each in enumerate(self._tokens(records)) if len(each) < self.max_question_length]

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
    def load(cls, directory: Traversable) -> "AskedCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            values = _checked(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a codec of {KIND}, format {FORMAT}: {error}") from error
        return cls(tokenizers.load(directory, "source"), **values)

    def _tokens(self, records: Sequence[Inquiry]) -> list[list[int]]:
        return self.question.encode_all([self.prepare(each.question) for each in records])

    def _known(self, records: Sequence[Inquiry], numbers: dict[str, int]) -> None:
        strange = [
            f"{each.where} {quoted(each.target)}"
            for each in records
            if each.target is not None and each.target.strip() not in numbers
        ]
        refuse_unknown_labels(strange, "answers", self.answers)


def unknown(examples: Sequence[ImageExample]) -> float:
    """The share of UNK among the tokens of questions, EOS aside."""
    asked = [example.question or [EOS] for example in examples]
    return sum(each.count(UNK) for each in asked) / max(1, sum(len(each) - 1 for each in asked))


def _checked(settings: Any) -> dict[str, Any]:
    if not isinstance(settings, dict) or settings.get("format") != FORMAT or settings.get("reads") != KIND:
        raise ValueError("it is of another format")
    values = checked(settings, KINDS)
    if not all(isinstance(answer, str) and answer for answer in values["answers"]) or not values["answers"]:
        raise ValueError("answers need to be words")
    if values["over_long"] not in ("truncate", "drop"):
        raise ValueError(f"over_long is {values['over_long']!r}, and needs to be truncate or drop")
    return values
