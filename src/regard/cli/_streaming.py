"""Answers that are written as they are decided: regard predict --stream and --listen."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from regard.cli._bad_inputs import Unread
from regard.cli._predict_io import Strange, WishError
from regard.cli._stdout import OutputError
from regard.data.lines import unreadable
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.cli._stdin_stream import Stream
    from regard.decoding.constraints.spec import ConstraintSpec
    from regard.inference.sequence_predictor import SequencePredictor

STREAM, LISTEN = "--stream", "--listen"
WHOLE: dict[str, tuple[Any, ...]] = {
    "--nbest": ("nbest", 1),
    "--align": ("align", False),
    "--unknown": ("unknown", None, "keep"),
    "--json": ("as_json", False),
    "--out": ("out", None),
    "--trace": ("trace", None),
    "--compile": ("compile", False),
}
"""Options that are about whole answers: the name of each parameter, and the values of it that ask for nothing."""
INPUTS: dict[str, tuple[Any, ...]] = {
    "--file": ("file", None, "-"),
    "--prefix": ("prefix", None),
    "--include": ("include", None, [], ()),
    "--exclude": ("exclude", None, [], ()),
    "--constraints": ("constraints", None),
}
"""Likewise what is not for a source that still arrives."""


def way(stream: bool, listen: bool, given: Mapping[str, Any], text: str | None) -> str | None:
    """How answers are written piece by piece; None: whole. Raises for an option that does not go with it.

    `given` are the parameters of the command, and `text` is its INPUT.
    """
    if stream and listen:
        raise ConfigError("--listen writes as it goes, as --stream does; give one of the two")
    chosen = STREAM if stream else LISTEN if listen else None
    if chosen is not None and (whole := _asked(WHOLE, given)):
        raise ConfigError(
            f"{chosen} writes an answer before it is whole, and {whole[0]} is about whole answers; leave one of the two out"
        )
    if listen and (others := [*(["INPUT"] * (text is not None)), *_asked(INPUTS, given)]):
        raise ConfigError(
            f"--listen answers standard input while it still arrives, and does not take {others[0]}; leave one of the two "
            "out, or take --stream"
        )
    return chosen


def _asked(options: Mapping[str, tuple[Any, ...]], given: Mapping[str, Any]) -> list[str]:
    """The options that ask for something."""
    return [option for option, (name, *nothing) in options.items() if given[name] not in nothing]


def streamed(
    model: "SequencePredictor", asked: "Iterable[tuple[str, ConstraintSpec]]", stream: Any, missed: Unread | None = None
) -> Strange:
    """Write the answers, one after the other, each as it is decided; `missed` takes note of what cannot be read."""
    model.stream("")  # refused, if so, before anything is read
    strange = list[int]()
    for number, (text, wish) in enumerate(asked, 1):
        try:
            if text.strip() and model.fits(text):
                _write(stream, _wished(model, text, wish))
            elif text.strip():
                strange.append(number)
        except DataError as error:
            if missed is None or isinstance(error, WishError | OutputError):
                raise
            missed.note(number, text, error)
            strange.append(number)
        _write(stream, ["\n"])
    return Strange(len(strange), strange[0] if strange else 0)


def listened(model: "SequencePredictor", stream: Any, missed: Unread | None = None) -> Strange:
    """Answer standard input, each line while it still arrives.

    Of a line that is too long the beginning is answered before anybody knows; it is counted when its end has come. `missed`
    takes note of a line whose scores are not finite.
    """
    from regard.cli._stdin_stream import spoken
    from regard.decoding.logprobs import UndistributedError

    model.listen(())  # refused, if so, before anything is read
    strange = list[int]()
    for number, line in enumerate(spoken(_standard()), 1):
        text, known = _recognised(model, line)
        heard = [text]
        try:
            if known:
                _write(stream, model.listen(chain(heard[:], _noted(line, heard))))
        except UndistributedError as error:
            if missed is None:
                raise
            known = False
            missed.note(number, "".join([*heard, *line]), error)
        if text.strip() and not (known and model.fits("".join([*heard, *line]))):
            strange.append(number)
        _write(stream, ["\n"])
    return Strange(len(strange), strange[0] if strange else 0)


def _noted(line: Iterator[str], heard: list[str]) -> Iterator[str]:
    """The pieces of a line, which are noted as they come."""
    for piece in line:
        heard.append(piece)
        yield piece


def _recognised(model: "SequencePredictor", line: Iterator[str]) -> tuple[str, bool]:
    """What has come of a line when the model knows some of it for certain; or all of it, and whether it knows any."""
    from regard.data.special_tokens import UNK
    from regard.decoding.streaming.source import encode_stable_tokens

    text, room = "", model.codec.max_source_length - 1
    for piece in line:
        text += piece
        if text.strip() and any(number != UNK for number in encode_stable_tokens(model.codec, text)[:room]):
            return text, True
    return text, bool(text.strip()) and model.is_known(text)


def _wished(model: "SequencePredictor", text: str, wish: "ConstraintSpec") -> Iterator[str]:
    """The pieces of an answer; one that cannot be had as it is wished is the user's to mend."""
    try:
        yield from model.stream(text, prefix=wish.prefix, include=wish.include, exclude=wish.exclude)
    except ValueError as error:
        if isinstance(error, DataError) or not any(wish):
            raise
        raise WishError(str(error)) from error


def _write(stream: Any, pieces: Iterable[str]) -> None:
    for piece in pieces:
        stream.write(piece)
        stream.flush()


def _standard() -> "Stream":
    """Standard input, which may be closed, or none."""
    try:
        sys.stdin.buffer.readable()
    except (ValueError, AttributeError) as error:
        raise DataError(unreadable("-", error)) from error
    return sys.stdin.buffer  # type: ignore[return-value]
