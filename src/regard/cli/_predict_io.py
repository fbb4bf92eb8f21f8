"""Batched prediction: inputs are answered window by window, sorted by length within one, and written in order."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from regard.cli._bad_inputs import BadInputs, Reason
from regard.cli._journal import Head, Journal, WrittenAnswer
from regard.cli._progress import ProgressLine
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.cli._predict_output import OutputFiles
    from regard.decoding.constraints.spec import ConstraintSpec
    from regard.decoding.logprobs import UndistributedError
    from regard.inference.prediction import Prediction
    from regard.inference.predictor import Predictor

Item = TypeVar("Item")


class ConstraintError(DataError):
    """Constraints that no answer can satisfy; the input itself may be valid."""


class Unanswered(NamedTuple):
    """Number of inputs without a known token or too long for the model, and the first of them, from 1."""

    many: int = 0
    first: int = 0
    inputs: int = 0
    """Number of all inputs; 0 where they are not counted."""


@dataclass(frozen=True)
class AnswerWriter:
    """A model with its prediction options, and the format of its answers.

    With `bad_inputs`, which collects them, inputs that cannot be read or whose scores are not finite have empty answers;
    without, the first is an error.
    """

    model: "Predictor"
    beam: int | None = None
    best: int = 1
    align: bool = False
    unknown: str | None = None
    as_json: bool = False
    bad_inputs: BadInputs | None = None
    outputs: "OutputFiles | None" = None
    """Files that answers are written to, where they are no text."""
    reasons: Counter[Reason] = field(default_factory=Counter)
    """Number of inputs without an answer, by the reason."""
    without_boxes: list[int] = field(default_factory=list)
    """Places of the inputs of a detector that found nothing."""

    def answer_window(
        self,
        window: "list[tuple[str, ConstraintSpec]]",
        noted: Mapping[int, WrittenAnswer] = MappingProxyType({}),
        before: int = 0,
    ) -> Iterator[tuple[int, WrittenAnswer]]:
        """Answers to the inputs of a window, by index, as they are computed; those in `noted` are left out.

        `before` is the number of inputs before the window. Batches are those of the whole window whatever is noted, since
        the composition of a batch changes the last bits of a score. A batch is skipped where all of its inputs are noted
        with an answer. One with an input that has none is computed again, so that it is split as it was before.
        """
        readable = []
        for place, (text, _) in enumerate(window):
            if self.readable(text, before + place + 1):
                readable.append(place)
            elif place not in noted:
                yield place, WrittenAnswer(self.format(text, []), strange=bool(text.strip()))
        done = frozenset(index for index, place in enumerate(readable) if place in noted and not noted[place].strange)
        for index, result in self.answer_or_report([window[place] for place in readable], done):
            place, text = readable[index], window[readable[index]][0]
            answers = [] if isinstance(result, DataError) else result
            if isinstance(result, DataError):
                self.report(before + place + 1, text, result)
            elif answers and answers[0].boxes == []:
                self.without_boxes.append(before + place + 1)
            if self.outputs is not None and answers:
                self.outputs.write(before + place + 1, answers[0])
            if place not in noted:
                yield place, WrittenAnswer(self.format(text, answers), strange=answers is not result)

    def readable(self, text: str, number: int) -> bool:
        """True for an input that is not empty and that the model can read."""
        try:
            if not text.strip():
                return False
            if self.model.fits(text):
                return True
            self.reasons["long" if self.model.is_known(text) else "unknown"] += 1
            return False
        except DataError as error:
            self.report(number, text, error)
            return False

    def report(self, number: int, text: str, error: DataError) -> None:
        """Report a bad input, or raise its error where there is no collector."""
        from regard.decoding.logprobs import UndistributedError

        if self.bad_inputs is None:
            raise error
        self.reasons["unscored" if isinstance(error, UndistributedError) else "unreadable"] += 1
        self.bad_inputs.note(number, text, error)

    def answer_or_report(
        self, inputs: "list[tuple[str, ConstraintSpec]]", done: frozenset[int] = frozenset()
    ) -> "Iterator[tuple[int, list[Prediction] | DataError]]":
        """Answers to inputs, or the error of a bad one, whose batch is split in halves and answered again.

        A batch of nothing but `done` inputs gives an empty list for each.
        """
        remaining = dict.fromkeys(range(len(inputs)))  # in their order
        try:
            for index, answers in self.answers(inputs, done):
                del remaining[index]
                yield index, answers
        except DataError as error:
            if self.bad_inputs is None or isinstance(error, ConstraintError):
                raise
            if len(inputs) == 1:
                yield 0, error
                return
            middle = -(-len(remaining) // 2)
            for half in (list(remaining)[:middle], list(remaining)[middle:]):
                readable = frozenset(place for place, index in enumerate(half) if index in done)
                for place, again in self.answer_or_report([inputs[index] for index in half], readable) if half else ():
                    yield half[place], again

    def answers(
        self, inputs: "list[tuple[str, ConstraintSpec]]", done: frozenset[int] = frozenset()
    ) -> "Iterator[tuple[int, list[Prediction] | UndistributedError]]":
        """Answers to inputs; raises ConstraintError where constraints cannot be satisfied."""
        texts, specs = [text for text, _ in inputs], [spec for _, spec in inputs]
        search = {"beam": self.beam, "unknown": self.unknown}
        options: dict[str, Any] = {name: value for name, value in search.items() if value is not None}
        if any(map(any, specs)):
            options |= {name: [getattr(spec, name) for spec in specs] for name in ("prefix", "include", "exclude")}
        try:
            yield from self.model.outcomes(texts, best=self.best, align=self.align, done=done, **options)
        except ValueError as error:
            if isinstance(error, DataError) or not any(map(any, specs)):
                raise
            raise ConstraintError(str(error)) from error

    def format(self, text: str, answers: "list[Prediction]") -> str:
        """Answers to an input as text."""
        return _json(text, answers) if self.as_json else _plain(answers, self.best, self.align)


def write_to_stream(
    writer: AnswerWriter, inputs: "Iterable[tuple[str, ConstraintSpec]]", stream: Any, size: int
) -> Unanswered:
    """Write the answers window by window."""
    strange, place = list[int](), 0
    for window in windows(inputs, size):
        answers = dict(writer.answer_window(window, before=place))
        for number in range(len(window)):
            place += 1
            strange += [place] * answers[number].strange
            stream.write(answers[number].text)
        stream.flush()
    return Unanswered(len(strange), strange[0] if strange else 0, place)


def write_to_file(
    writer: AnswerWriter, inputs: "Iterable[tuple[str, ConstraintSpec]]", journal: Journal, size: int, progress: ProgressLine
) -> Unanswered:
    """Write the answers that the journal does not have yet, then rename the file."""
    if len(list(islice(inputs := iter(inputs), journal.head.lines))) < journal.head.lines:
        raise DataError(f"{journal.partial} has more answers than there are inputs; remove it, and start again")
    for window in windows(inputs, size):
        journal.answers_of_window = {
            place: answer_window for place, answer_window in journal.answers_of_window.items() if place < len(window)
        }
        for place, answer_window in writer.answer_window(window, dict(journal.answers_of_window), before=journal.head.lines):
            journal.note(place, answer_window)
            progress.advance()
        journal.commit_window()
    progress.end()
    journal.finish()
    head: Head = journal.head
    return Unanswered(head.strange, head.first, head.lines)


def windows(inputs: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Split inputs into windows of `size`; those before an unreadable one come first."""
    window: list[Item] = []
    try:
        for text in inputs:
            window.append(text)
            if len(window) == size:
                yield window
                window = []
    except DataError:
        if window:
            yield window
        raise
    if window:
        yield window


def _plain(answers: "list[Prediction]", nbest: int, align: bool) -> str:
    if not answers:
        return "\n"
    lines = []
    for answer in answers:
        if answer.printed is not None:
            lines.append(answer.printed)
            continue
        lines.append(f"{answer.score:.4f}\t{answer.text}" if nbest > 1 else answer.text)
        if align and answer.weights is None:
            lines.append("(this model has no attention over its source, so there is nothing to show)")
        elif align and answer.target:
            lines += ["", _format_weights(answer), ""]
    return "\n".join(lines) + ("\n\n" if nbest > 1 else "\n")


def _format_weights(answer: "Prediction") -> str:
    """Attention weights of an answer: a table over a text, or a map over a picture for each piece."""
    from regard.cli.show.heatmap import heat, places

    assert answer.weights is not None
    if answer.grid is None:
        return heat(answer.weights, answer.target, answer.source)
    rows, columns = answer.grid
    return places(answer.weights[:, -rows * columns :], answer.target, answer.grid)  # class tokens are no places


def _box_fields(answer: "Prediction") -> dict[str, Any]:
    """JSON fields of detections: labels, boxes and scores."""
    return {} if answer.boxes is None else {"target": answer.target, "boxes": answer.boxes, "scores": answer.scores}


def _link_fields(answer: "Prediction") -> dict[str, Any]:
    """JSON fields of an alignment: pieces of source and answer, their links, and the size of the grid."""
    if answer.links is None:
        return {}
    table = {"source": answer.source, "target": answer.target, "links": answer.links}
    return table if answer.grid is None else {**table, "grid": answer.grid}


def _json(text: str, answers: "list[Prediction]") -> str:
    table = [
        {"text": answer.text, "score": answer.score, **_box_fields(answer), **_link_fields(answer), **(answer.fields or {})}
        for answer in answers
    ]
    return json.dumps({"input": text, "answers": table}, ensure_ascii=False) + "\n"
