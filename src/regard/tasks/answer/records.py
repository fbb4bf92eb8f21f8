"""Records of question answering: a story, a question about it, its answer and the supporting facts."""

import re
from dataclasses import dataclass, replace

from regard.config import quoted
from regard.errors import DataError

SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+|(?<=[。！？])")
"""Boundaries of sentences in a text: behind an end mark, and at the end of a line."""


@dataclass(frozen=True)
class StoryQuestion:
    """A question about the sentences of a story. `facts` are the places of the sentences that the answer follows from."""

    story: tuple[str, ...]
    question: str
    answer: str | None = None
    facts: tuple[int, ...] | None = None
    task: str = ""
    where: str = "input:1"

    @property
    def source(self) -> str:
        """The story and the question, as an input of predict has them."""
        return f"{' '.join(self.story)}\t{self.question}"

    @property
    def target(self) -> str | None:
        """The answer."""
        return self.answer

    @property
    def text(self) -> str:
        """The sentences of the story, one on each line: stories are told apart by it."""
        return "\n".join(self.story)

    def without_answer(self) -> "StoryQuestion":
        """The question without its answer and its facts, which its prediction must not read."""
        return replace(self, answer=None, facts=None)


def split_sentences(text: str) -> tuple[str, ...]:
    """Sentences of a text."""
    return tuple(sentence.strip() for sentence in SENTENCE.split(text) if sentence.strip())


def build_record(record: StoryQuestion) -> StoryQuestion:
    """A record whose parts were checked: it has a sentence, a question of words, and facts inside the story."""
    where = record.where
    if not record.story:
        raise DataError(f"{where} has a story with no sentence; write one sentence or more in front of the question")
    if not re.search(r"\w", record.question):
        raise DataError(f"{where} has a question without a word, {quoted(record.question)}; ask about the story")
    if record.answer is not None and not record.answer.strip():
        raise DataError(f"{where} has an empty answer; fill it in, or leave the record out")
    if bad := [fact for fact in record.facts or () if not 0 <= fact < len(record.story)]:
        raise DataError(
            f"{where} has the supporting fact {bad[0]}, and its story has the sentences 0 to {len(record.story) - 1}; facts "
            "are places of sentences, counted from 0"
        )
    for text in (*record.story, record.question, record.answer or ""):
        if "\0" in text:
            raise DataError(f"{where} has a NUL byte, which is no text; convert the file to UTF-8, or remove it")
    return record


def parse_input(text: str, number: int = 1) -> StoryQuestion:
    """Parse an input: the sentences of a story, a tab, and a question about it."""
    story, tab, question = text.rpartition("\t")
    if not tab:
        raise DataError(
            f"input:{number} needs a story and a question, STORY TAB QUESTION, got {quoted(text)}; predict and view have "
            "--question for one question about all stories"
        )
    return build_record(StoryQuestion(split_sentences(story), question.strip(), where=f"input:{number}"))
