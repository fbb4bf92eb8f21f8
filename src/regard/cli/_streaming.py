"""Streaming output: regard predict --stream, and simultaneous decoding with --listen."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from regard.cli._bad_inputs import BadInputs
from regard.cli._predict_io import ConstraintError, Unanswered
from regard.cli._stdout import OutputError
from regard.data.lines import unreadable
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.cli._stdin_stream import Stream
    from regard.decoding.constraints.spec import ConstraintSpec
    from regard.inference.sequence_predictor import SequencePredictor

STREAM, LISTEN = "--stream", "--listen"
WHOLE_ANSWER_OPTIONS: dict[str, tuple[Any, ...]] = {
    "--nbest": ("nbest", 1),
    "--align": ("align", False),
    "--unknown": ("unknown", None, "keep"),
    "--json": ("as_json", False),
    "--out": ("out", None),
    "--trace": ("trace", None),
    "--compile": ("compile", False),
}
"""Options of whole answers: the parameter of each, and its values that have no effect."""
WHOLE_INPUT_OPTIONS: dict[str, tuple[Any, ...]] = {
    "--file": ("file", None, "-"),
    "--prefix": ("prefix", None),
    "--include": ("include", None, [], ()),
    "--exclude": ("exclude", None, [], ()),
    "--constraints": ("constraints", None),
}
"""Options of whole inputs, likewise."""


def select_streaming(stream: bool, listen: bool, parameters: Mapping[str, Any], text: str | None) -> str | None:
    """The streaming option in use; None for whole answers. Raises for options that exclude each other.

    `parameters` are those of the command, and `text` is its INPUT.
    """
    if stream and listen:
        raise ConfigError("--listen writes as it goes, as --stream does; give one of the two")
    chosen = STREAM if stream else LISTEN if listen else None
    if chosen is not None and (whole := _used_options(WHOLE_ANSWER_OPTIONS, parameters)):
        raise ConfigError(
            f"{chosen} writes an answer before it is whole, and {whole[0]} is about whole answers; leave one of the two out"
        )
    if listen and (others := [*(["INPUT"] * (text is not None)), *_used_options(WHOLE_INPUT_OPTIONS, parameters)]):
        raise ConfigError(
            f"--listen answers standard input while it still arrives, and does not take {others[0]}; leave one of the two "
            "out, or take --stream"
        )
    return chosen


def _used_options(options: Mapping[str, tuple[Any, ...]], parameters: Mapping[str, Any]) -> list[str]:
    """The options that have an effect."""
    return [option for option, (name, *nothing) in options.items() if parameters[name] not in nothing]


def write_streamed(
    model: "SequencePredictor",
    inputs: "Iterable[tuple[str, ConstraintSpec]]",
    stream: Any,
    bad_inputs: BadInputs | None = None,
) -> Unanswered:
    """Write each answer while it is decoded; `bad_inputs` collects unreadable inputs."""
    model.stream("")  # raises for unsuitable models before anything is read
    unanswered = list[int]()
    for number, (text, spec) in enumerate(inputs, 1):
        end = "\n"
        try:
            if text.strip() and model.fits(text):
                for piece in _stream_answer(model, text, spec):
                    _write(stream, [piece])
                    end = "" if piece.endswith("\n") else "\n"  # rows of a table end their lines themselves
            elif text.strip():
                unanswered.append(number)
        except DataError as error:
            if bad_inputs is None or isinstance(error, ConstraintError | OutputError):
                raise
            bad_inputs.note(number, text, error)
            unanswered.append(number)
        _write(stream, [end])
    return Unanswered(len(unanswered), unanswered[0] if unanswered else 0)


def answer_stdin(model: "SequencePredictor", stream: Any, bad_inputs: BadInputs | None = None) -> Unanswered:
    """Simultaneous decoding of standard input: each line is answered while it arrives.

    The beginning of a line that is too long is answered before its length is known; it is counted at its end. `bad_inputs`
    collects lines whose scores are not finite.
    """
    from regard.cli._stdin_stream import read_partial_lines
    from regard.decoding.logprobs import UndistributedError

    model.listen(())  # raises for unsuitable models before anything is read
    unanswered = list[int]()
    for number, line in enumerate(read_partial_lines(_stdin_buffer()), 1):
        text, known = _read_known_prefix(model, line)
        pieces_read = [text]
        try:
            if known:
                _write(stream, model.listen(chain(pieces_read[:], _record_pieces(line, pieces_read))))
        except UndistributedError as error:
            if bad_inputs is None:
                raise
            known = False
            bad_inputs.note(number, "".join([*pieces_read, *line]), error)
        if text.strip() and not (known and model.fits("".join([*pieces_read, *line]))):
            unanswered.append(number)
        _write(stream, ["\n"])
    return Unanswered(len(unanswered), unanswered[0] if unanswered else 0)


def _record_pieces(line: Iterator[str], pieces_read: list[str]) -> Iterator[str]:
    """Pieces of a line, appended to `pieces_read` as they arrive."""
    for piece in line:
        pieces_read.append(piece)
        yield piece


def _read_known_prefix(model: "SequencePredictor", line: Iterator[str]) -> tuple[str, bool]:
    """Text of a line up to its first known token; or the whole line, and whether it has a known token."""
    from regard.data.special_tokens import UNK

    text, room = "", model.codec.max_source_length - 1
    for piece in line:
        text += piece
        if text.strip() and any(number != UNK for number in model.codec.encode_stable(text)[:room]):
            return text, True
    return text, bool(text.strip()) and model.is_known(text)


def _stream_answer(model: "SequencePredictor", text: str, spec: "ConstraintSpec") -> Iterator[str]:
    """Pieces of an answer; raises ConstraintError where constraints cannot be satisfied."""
    try:
        yield from model.stream(text, prefix=spec.prefix, include=spec.include, exclude=spec.exclude)
    except ValueError as error:
        if isinstance(error, DataError) or not any(spec):
            raise
        raise ConstraintError(str(error)) from error


def _write(stream: Any, pieces: Iterable[str]) -> None:
    for piece in pieces:
        stream.write(piece)
        stream.flush()


def _stdin_buffer() -> "Stream":
    """Bytes of standard input; raises where it is closed or missing."""
    try:
        sys.stdin.buffer.readable()
    except (ValueError, AttributeError) as error:
        raise DataError(unreadable("-", error)) from error
    return sys.stdin.buffer  # type: ignore[return-value]
