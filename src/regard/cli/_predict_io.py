"""Answer inputs, a window of them at a time: within it they are sorted by length, and written in their order."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from regard.cli._bad_inputs import Unread
from regard.cli._journal import Head, Journal, Written
from regard.cli._progress import Pace
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.decoding.constraints.spec import ConstraintSpec
    from regard.decoding.logprobs import UndistributedError
    from regard.inference.prediction import Prediction
    from regard.inference.predictor import Predictor

Each = TypeVar("Each")


class WishError(DataError):
    """An answer that cannot be had as it is wished; its input may be read well."""


class Strange(NamedTuple):
    """How many inputs have nothing in them that the model knows, or are too long for it, and the first's number, from 1."""

    many: int = 0
    first: int = 0


@dataclass(frozen=True)
class Asking:
    """A model, what is asked of it, and how its answers are written.

    With `unread`, which takes note of them, inputs that cannot be read, and those whose scores are not finite, are left
    empty; without, the first is an error.
    """

    model: "Predictor"
    beam: int | None = None
    best: int = 1
    align: bool = False
    unknown: str | None = None
    as_json: bool = False
    unread: Unread | None = None

    def written(
        self,
        window: "list[tuple[str, ConstraintSpec]]",
        noted: Mapping[int, Written] = MappingProxyType({}),
        before: int = 0,
    ) -> Iterator[tuple[int, Written]]:
        """What is written for each input of a window, by its place there, as it is found; what is `noted` is left out.

        `before` is how many inputs there were before the window. The batches are those of the whole window, whatever is
        noted, since what shares a batch changes the last bits of a score. A batch is left out where all of its inputs are
        noted with an answer. One with an input that has none is computed again, so that it is cut up as it was before.
        """
        known = []
        for place, (text, _) in enumerate(window):
            if self.known(text, before + place + 1):
                known.append(place)
            elif place not in noted:
                yield place, Written(self.form(text, []), strange=bool(text.strip()))
        done = frozenset(index for index, place in enumerate(known) if place in noted and not noted[place].strange)
        for index, found in self.found([window[place] for place in known], done):
            place, text = known[index], window[known[index]][0]
            answers = [] if isinstance(found, DataError) else found
            if isinstance(found, DataError):
                self.missed(before + place + 1, text, found)
            if place not in noted:
                yield place, Written(self.form(text, answers), strange=answers is not found)

    def known(self, text: str, number: int) -> bool:
        """Whether there is anything in an input that the model can answer."""
        try:
            return bool(text.strip()) and self.model.fits(text)
        except DataError as error:
            self.missed(number, text, error)
            return False

    def missed(self, number: int, text: str, error: DataError) -> None:
        """Take note of an input that cannot be read, or raise where nobody does."""
        if self.unread is None:
            raise error
        self.unread.note(number, text, error)

    def found(
        self, asked: "list[tuple[str, ConstraintSpec]]", done: frozenset[int] = frozenset()
    ) -> "Iterator[tuple[int, list[Prediction] | DataError]]":
        """The answers to inputs, or why one cannot be read: what it kept from being answered is asked again, by halves.

        What is answered for a batch of nothing but `done` is an empty list for each.
        """
        left = dict.fromkeys(range(len(asked)))  # in their order
        try:
            for index, answers in self.answers(asked, done):
                del left[index]
                yield index, answers
        except DataError as error:
            if self.unread is None or isinstance(error, WishError):
                raise
            if len(asked) == 1:
                yield 0, error
                return
            middle = -(-len(left) // 2)
            for half in (list(left)[:middle], list(left)[middle:]):
                known = frozenset(place for place, index in enumerate(half) if index in done)
                for place, again in self.found([asked[index] for index in half], known) if half else ():
                    yield half[place], again

    def answers(
        self, asked: "list[tuple[str, ConstraintSpec]]", done: frozenset[int] = frozenset()
    ) -> "Iterator[tuple[int, list[Prediction] | UndistributedError]]":
        """The answers to inputs; one that cannot be had as it is wished is the user's to mend."""
        from regard.inference.forward_predictor import ForwardPredictor

        texts, wishes = [text for text, _ in asked], [wish for _, wish in asked]
        if isinstance(self.model, ForwardPredictor):
            yield from self.model.outcomes(texts, best=self.best, align=self.align, done=done)
            return
        try:
            yield from self.model.outcomes(
                texts,
                beam=self.beam,
                best=self.best,
                align=self.align,
                unknown=self.unknown,
                prefix=[wish.prefix for wish in wishes],
                include=[wish.include for wish in wishes],
                exclude=[wish.exclude for wish in wishes],
                done=done,
            )
        except ValueError as error:
            if isinstance(error, DataError) or not any(map(any, wishes)):
                raise
            raise WishError(str(error)) from error

    def form(self, text: str, answers: "list[Prediction]") -> str:
        """The answers to an input as they are written."""
        return _json(text, answers) if self.as_json else _plain(answers, self.best, self.align)


def to_stream(asking: Asking, inputs: "Iterable[tuple[str, ConstraintSpec]]", stream: Any, size: int) -> Strange:
    """Write the answers, window by window."""
    strange, place = list[int](), 0
    for window in windows(inputs, size):
        found = dict(asking.written(window, before=place))
        for number in range(len(window)):
            place += 1
            strange += [place] * found[number].strange
            stream.write(found[number].text)
        stream.flush()
    return Strange(len(strange), strange[0] if strange else 0)


def to_file(
    asking: Asking, inputs: "Iterable[tuple[str, ConstraintSpec]]", journal: Journal, size: int, pace: Pace
) -> Strange:
    """Write the answers that the journal does not have yet, and give them their name when all are there."""
    if len(list(islice(inputs := iter(inputs), journal.head.lines))) < journal.head.lines:
        raise DataError(f"{journal.partial} has more answers than there are inputs; remove it, and start again")
    for window in windows(inputs, size):
        journal.noted = {place: written for place, written in journal.noted.items() if place < len(window)}
        for place, written in asking.written(window, dict(journal.noted), before=journal.head.lines):
            journal.note(place, written)
            pace.advance()
        journal.turn()
    pace.end()
    journal.finish()
    head: Head = journal.head
    return Strange(head.strange, head.first)


def windows(inputs: Iterable[Each], size: int) -> Iterator[list[Each]]:
    """So many inputs at a time; those before one that cannot be read are answered first."""
    window: list[Each] = []
    try:
        for each in inputs:
            window.append(each)
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
        lines.append(f"{answer.score:.4f}\t{answer.text}" if nbest > 1 else answer.text)
        if align and answer.weights is None:
            lines.append("(this model has no attention over its source, so there is nothing to show)")
        elif align and answer.target:
            lines += ["", _shown(answer), ""]
    return "\n".join(lines) + ("\n\n" if nbest > 1 else "\n")


def _shown(answer: "Prediction") -> str:
    """What each piece of an answer looked at: places of a text in one table, those of a picture on a map each."""
    from regard.cli.show.heatmap import heat, places

    assert answer.weights is not None
    if answer.grid is None:
        return heat(answer.weights, answer.target, answer.source)
    rows, columns = answer.grid
    return places(answer.weights[:, -rows * columns :], answer.target, answer.grid)  # what stands for the whole is no place


def _boxes(answer: "Prediction") -> dict[str, Any]:
    """What was found, the box of each, and how likely it is."""
    return {} if answer.boxes is None else {"target": answer.target, "boxes": answer.boxes, "scores": answer.scores}


def _looked(answer: "Prediction") -> dict[str, Any]:
    """The pieces of an answer and of its source, what each was linked to, and how many rows and columns a map has."""
    if answer.links is None:
        return {}
    table = {"source": answer.source, "target": answer.target, "links": answer.links}
    return table if answer.grid is None else {**table, "grid": answer.grid}


def _json(text: str, answers: "list[Prediction]") -> str:
    table = [{"text": each.text, "score": each.score} | _boxes(each) | _looked(each) for each in answers]
    return json.dumps({"input": text, "answers": table}, ensure_ascii=False) + "\n"
