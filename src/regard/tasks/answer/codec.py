"""Codec of stories: sentences and questions -> word ids, and answer <-> number."""

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar

import torch

from regard.data.axis import Text
from regard.data.batch import Padded, pad_present
from regard.data.codec import SETTINGS, Corpus, OverLong, Report
from regard.data.modality import WritableFile
from regard.data.special_tokens import UNK
from regard.data.text import tokenizers
from regard.data.text.tokenizers import Tokenizer
from regard.errors import DataError, DataWarning
from regard.tasks.answer.batch import UNKNOWN, Stories, StoryExample, StoryLoader
from regard.tasks.answer.config import StoryData
from regard.tasks.answer.records import StoryQuestion, parse_input

FORMAT = 1
KIND = "stories with questions"
KINDS: dict[str, type] = {"answers": list, "lowercase": bool, "max_sentences": int, "max_words": int}
"""Settings saved beside the tokenizer, with their types."""
MARKS = ".?!。？！ "
"""Marks at the end of a sentence, which are no words of it."""


@dataclass(frozen=True)
class StoryCodec:
    """A tokenizer of words for stories and questions, and all answers, each a class."""

    kind: ClassVar[str] = KIND
    reads_files: ClassVar[bool] = False
    feedback: ClassVar[None] = None
    settings: ClassVar[tuple[str, ...]] = ("vocab_size", "min_frequency", "lowercase")
    """Settings of `data` that are fixed once it is fitted."""

    words: Tokenizer
    answers: tuple[str, ...]
    lowercase: bool = True
    max_sentences: int = 128
    max_words: int = 48

    @classmethod
    def fit(cls, records: Sequence[StoryQuestion], data: StoryData) -> "StoryCodec":
        """Train the tokenizer on the stories and questions; the answers are all of theirs, in alphabetical order."""
        answers = sorted({record.answer.strip() for record in records if record.answer is not None})
        if len(answers) < 2:
            text = ", ".join(answers) or "none"
            raise DataError(f"question answering needs 2 different answers or more, got {text}")
        codec = cls(tokenizers.train("words", (), 8), tuple(answers), data.lowercase, data.max_sentences, data.max_words)
        texts = [codec.prepare(text) for record in records for text in (*record.story, record.question)]
        return replace(codec, words=tokenizers.train("words", texts, data.vocab_size, data.min_frequency))

    def adapt(self, data: StoryData) -> "StoryCodec":
        """The codec with the same vocabularies and the limits of these settings."""
        return replace(self, max_sentences=data.max_sentences, max_words=data.max_words)

    @property
    def max_source_length(self) -> int:
        """Most sentences of a story that are read, and one."""
        return self.max_sentences + 1

    def prepare(self, text: str) -> str:
        """The text that is tokenized: without the mark at its end, in lower case when the codec asks for that."""
        text = text.strip(MARKS) or text
        return text.lower() if self.lowercase else text

    def read(self, text: str, number: int = 1) -> StoryQuestion:
        """Question of an input, STORY TAB QUESTION."""
        return parse_input(text, number)

    def encode(self, record: StoryQuestion) -> StoryExample:
        """Example of one record."""
        example: StoryExample = self.encode_all([record]).examples[0]
        return example

    def encode_all(self, records: Iterable[StoryQuestion], over_long: OverLong | None = None) -> Corpus:
        """Examples of records: of a story that is too long the last sentences, of a long sentence its first words."""
        records = list(records)
        texts = dict.fromkeys(text for record in records for text in (*self.last(record), record.question))
        encoded = self.words.encode_all([self.prepare(text) for text in texts])
        tokens = {text: tuple(ids[: self.max_words]) or (UNK,) for text, ids in zip(texts, encoded, strict=True)}
        numbers = {answer: number for number, answer in enumerate(self.answers)}
        examples = [self._example(record, tokens, numbers) for record in records]
        long_words = sum(len(ids) > self.max_words for ids in encoded)
        self._warn_of_cuts(examples, long_words)
        unknown = sum(ids.count(UNK) for ids in encoded) / max(1, sum(map(len, encoded)))
        cut = sum(example.cut > 0 for example in examples)
        return Corpus(examples, Report(len(records), len(examples), cut, 0, 0, unknown))

    def last(self, record: StoryQuestion) -> tuple[str, ...]:
        """The sentences of a story that are read: the last."""
        return record.story[-self.max_sentences :]

    def _example(self, record: StoryQuestion, tokens: dict[str, tuple[int, ...]], numbers: dict[str, int]) -> StoryExample:
        story = self.last(record)
        cut = len(record.story) - len(story)
        label = None if record.answer is None else numbers.get(record.answer.strip(), UNKNOWN)
        facts = tuple(fact - cut for fact in record.facts or () if fact >= cut)
        return StoryExample(
            tuple(tokens[sentence] for sentence in story), tokens[record.question], label, facts, record, cut
        )

    def _warn_of_cuts(self, examples: Sequence[StoryExample], long_words: int) -> None:
        """Warn of what is not read: sentences in front of the last ones, words behind the first ones."""
        if stories := [example for example in examples if example.cut]:
            first = stories[0]
            more = f" ({len(stories):,} such stories)" * (len(stories) > 1)
            text = f"{first.record.where} has a story of {len(first.record.story):,} sentences, and the last "
            text += (
                f"{self.max_sentences:,} are read (data.max_sentences): {first.cut:,} at its beginning are left out{more}"
            )
            warnings.warn(text, DataWarning, stacklevel=3)
        if long_words:
            which = "one sentence or question has" if long_words == 1 else f"{long_words:,} sentences or questions have"
            text = f"{which} more than {self.max_words} words (data.max_words), and the words after these are left out"
            warnings.warn(text, DataWarning, stacklevel=3)

    def encode_target(self, record: StoryQuestion) -> list[int] | None:
        """Number of a record's answer; None where it has none."""
        return None if record.answer is None else [self.answers.index(record.answer.strip())]

    def length(self, example: StoryExample) -> int:
        """Number of sentences."""
        return len(example.story)

    def budget(self, examples: Sequence[StoryExample], count: int) -> int:
        """Size of a batch of `count` questions: that number."""
        return count

    def loader(self, examples: Sequence[StoryExample], budget: int) -> StoryLoader:
        """Batches of an evaluation, each of at most so many questions."""
        return StoryLoader(examples, budget, shuffle=False)

    def collate(self, examples: Sequence[StoryExample]) -> Stories:
        """Stories and questions of examples."""
        return StoryLoader(examples, len(examples), shuffle=False).collate(range(len(examples))).source

    def collate_target(self, examples: Sequence[StoryExample]) -> Padded | None:
        """Answers of examples as rows; None where they have none."""
        return pad_present([None if example.label is None else [example.label] for example in examples])

    def decode(self, output: Sequence[int]) -> str:
        """Answer of its number."""
        return self.answers[output[0]]

    def write(self, prediction: str, file: WritableFile) -> None:
        """Write an answer as one line."""
        file.write(f"{prediction}\n")

    def pieces(self, example: StoryExample) -> list[str]:
        """Sentences that are read."""
        return list(self.last(example.record))

    def axis(self, example: StoryExample) -> Text:
        """Axis of an attention's keys: the sentences."""
        return Text.of(self.pieces(example))

    def grid(self, example: StoryExample) -> None:
        """Rows and columns of that axis; None: a story is a sequence."""
        return

    def target_pieces(self, output: Sequence[int]) -> list[str]:
        """The answer, one piece."""
        return [self.decode(output)]

    def target_axis(self, output: Sequence[int]) -> Text:
        """Axis of an attention's queries: the answer."""
        return Text.of(self.target_pieces(output))

    def is_known(self, record: StoryQuestion) -> bool:
        """True where a word of the question and a word of the story are in the vocabulary."""
        example = self._quietly(record)
        return any(word != UNK for word in example.question) and any(
            word != UNK for sentence in example.story for word in sentence
        )

    def _quietly(self, record: StoryQuestion) -> StoryExample:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            return self.encode(record)

    def fits(self, record: StoryQuestion) -> bool:
        """True if a record is known; of a story that is too long the last sentences are read, and a warning says so."""
        return self.is_known(record)

    def select_fitting(self, records: Sequence[StoryQuestion]) -> list[int]:
        """Indices of all records: each is answered."""
        return list(range(len(records)))

    def example_inputs(self, lengths: Sequence[int], generator: torch.Generator) -> Stories:
        """Random stories of so many sentences, to trace a model for export."""
        keep = torch.arange(max(lengths))[None] < torch.tensor(list(lengths))[:, None]
        first = UNK + 1 if self.words.size > UNK + 1 else UNK
        data = torch.randint(first, max(first + 1, self.words.size), (*keep.shape, 6), generator=generator)
        question = torch.randint(first, max(first + 1, self.words.size), (len(lengths), 4), generator=generator)
        return Stories(data.masked_fill(~keep[..., None], 0), question, keep)

    @property
    def dynamic_axes(self) -> dict[str, dict[int, str]]:
        """Names of the dimensions that differ from batch to batch, for export."""
        return {
            "data": {0: "batch", 1: "sentences", 2: "words"},
            "question": {0: "batch", 1: "question_words"},
            "keep": {0: "batch", 1: "sentences"},
        }

    def save(self, directory: Path) -> list[Path]:
        """Write it into a directory, as JSON and the tokenizer's own files; the files written."""
        directory.mkdir(parents=True, exist_ok=True)
        settings = {"format": FORMAT, "reads": KIND, **{name: getattr(self, name) for name in KINDS}}
        path = directory / SETTINGS
        path.write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        return [path, *self.words.save(directory, "source")]

    @classmethod
    def load(cls, directory: Traversable) -> "StoryCodec":
        """Read what `save` wrote."""
        path = directory / SETTINGS
        try:
            values = check_settings(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} needs to be the settings of a codec of {KIND}, format {FORMAT}: {error}") from error
        return cls(tokenizers.load(directory, "source"), **values)


def check_settings(settings: Any) -> dict[str, Any]:
    """Settings of a saved codec, each of its type; raises for those that no codec can have."""
    if not isinstance(settings, dict) or settings.get("format") != FORMAT or settings.get("reads") != KIND:
        raise ValueError("it is of another format")
    for name, kind in KINDS.items():
        if type(settings.get(name)) is not kind:
            raise ValueError(f"{name} is missing or of the wrong kind")
    answers = settings["answers"]
    if not answers or not all(isinstance(answer, str) and answer for answer in answers):
        raise ValueError("answers need to be words")
    if min(settings["max_sentences"], settings["max_words"]) < 1:
        raise ValueError("max_sentences and max_words need to be 1 or more")
    return {name: tuple(settings[name]) if kind is list else settings[name] for name, kind in KINDS.items()}
