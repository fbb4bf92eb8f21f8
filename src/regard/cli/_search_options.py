"""What commands that ask a model share: settings of the search, and what an answer must hold."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from regard import config as configuration
from regard.cli.train import settings
from regard.config import Search
from regard.config.hints import meant_settings
from regard.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.decoding.constraints.spec import ConstraintSpec
    from regard.inference.predictor import Predictor

PART = "search."
NEEDED = "--search.NAME=VALUE, such as --search.beam=5 (`regard show TASK` lists them)"


def apart(first: str | None, arguments: Sequence[str], command: str) -> tuple[str | None, list[str]]:
    """An INPUT and the settings of a search, which may stand on either side of it: ["search.beam=5"]."""
    inputs, options, rest = list[str](), list[str](), iter([*([] if first is None else [first]), *arguments])
    for each in rest:
        if not each.startswith("--"):
            inputs.append(each)
        elif not each.startswith(f"--{PART}"):
            option = configuration.shortened(each.partition("=")[0])
            meant = meant_settings(option.removeprefix("--"), [PART + field.name for field in dataclasses.fields(Search)])
            hint = f"did you mean --{meant[0]}?" if meant else f"see --help, or give {NEEDED}"
            raise ConfigError(f"{command} has no option {option}; {hint}")
        else:
            options += [each] if "=" in each else [each, *([value] if (value := next(rest, "")) else [])]
    if len(inputs) > 1:
        both = " and ".join(map(configuration.quoted, inputs[:2]))
        raise ConfigError(f"{command} takes one INPUT, got {both}; quote it, or use --file")
    return (inputs[0] if inputs else None), settings(options)


def search_by(model: "Predictor", given: Sequence[str], beam: int | None = None) -> None:
    """Let a model search by other settings than it was trained with."""
    from regard.tasks._validate import heeded, searchable

    if beam is not None and any(each.startswith(f"{PART}beam=") for each in given):
        raise ConfigError(f"--beam is --{PART}beam for short; give one of them")
    kind, now = type(model.config), {"search": configuration.plain(model.config.search)}
    overrides = [*given, *([] if beam is None else [f"{PART}beam={beam}"])]
    search = configuration.read(kind, now, overrides=overrides).search
    config = dataclasses.replace(model.config, search=search)
    searchable(config)
    if given:
        heeded([config], dataclasses.replace(config, search=kind().search))
    model.config = config


def wished(
    inputs: Iterable[str], prefix: str | None, include: Sequence[str], exclude: Sequence[str], constraints: str | None
) -> "Iterator[tuple[str, ConstraintSpec]]":
    """Each input and what is asked of its answer: the same of all, or what its line of a file says."""
    from regard.decoding.constraints.spec import ConstraintSpec

    if constraints is None:
        return ((text, ConstraintSpec(prefix or "", tuple(include), tuple(exclude))) for text in inputs)
    if prefix is not None or include or exclude:
        raise ConfigError("give --constraints, or --prefix, --include and --exclude for all inputs; not both")
    return _by_line(inputs, constraints)


def _by_line(inputs: Iterable[str], path: str) -> "Iterator[tuple[str, ConstraintSpec]]":
    from regard.data.lines import lines
    from regard.decoding.constraints.spec import parse_spec

    asked, text = map(parse_spec, lines(path)), None
    for number, text in enumerate(inputs, 1):
        wish = next(asked, None)
        if wish is None:
            raise DataError(
                f"{path} needs a line for each input, and ends before line {number}; an empty line asks for nothing"
            )
        yield text, wish
    if text is not None and next(asked, None) is not None:
        raise DataError(f"{path} needs a line for each input, and has more lines than there are inputs")
