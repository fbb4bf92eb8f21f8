"""Search settings and output constraints on the command line, for predict and evaluate."""

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


def split_arguments(first: str | None, arguments: Sequence[str], command: str) -> tuple[str | None, list[str]]:
    """Split arguments into INPUT and search settings, which may come on either side of it: ["search.beam=5"]."""
    inputs, options, rest = list[str](), list[str](), iter([*([] if first is None else [first]), *arguments])
    for argument in rest:
        if not argument.startswith("--"):
            inputs.append(argument)
        elif not argument.startswith(f"--{PART}"):
            option = configuration.shortened(argument.partition("=")[0])
            meant = meant_settings(option.removeprefix("--"), [PART + field.name for field in dataclasses.fields(Search)])
            hint = f"did you mean --{meant[0]}?" if meant else f"see --help, or give {NEEDED}"
            raise ConfigError(f"{command} has no option {option}; {hint}")
        else:
            options += [argument] if "=" in argument else [argument, *([value] if (value := next(rest, "")) else [])]
    if len(inputs) > 1:
        both = " and ".join(map(configuration.quoted, inputs[:2]))
        raise ConfigError(f"{command} takes one INPUT, got {both}; quote it, or use --file")
    return (inputs[0] if inputs else None), settings(options)


def override_search(model: "Predictor", changed: Sequence[str], beam: int | None = None) -> None:
    """Override the search settings of a model."""
    from regard.tasks._validate import heeded, searchable

    if beam is not None and any(option.startswith(f"{PART}beam=") for option in changed):
        raise ConfigError(f"--beam is --{PART}beam for short; give one of them")
    kind, current = type(model.config), {"search": configuration.plain(model.config.search)}
    overrides = [*changed, *([] if beam is None else [f"{PART}beam={beam}"])]
    search = configuration.read(kind, current, overrides=overrides).search
    config = dataclasses.replace(model.config, search=search)
    searchable(config)
    if changed:
        heeded([config], dataclasses.replace(config, search=kind().search))
    model.config = config


def read_constraints(
    inputs: Iterable[str], prefix: str | None, include: Sequence[str], exclude: Sequence[str], constraints: str | None
) -> "Iterator[tuple[str, ConstraintSpec]]":
    """Inputs with their output constraints: the same for all, or from their lines of a file."""
    from regard.decoding.constraints.spec import ConstraintSpec

    if constraints is None:
        return ((text, ConstraintSpec(prefix or "", tuple(include), tuple(exclude))) for text in inputs)
    if prefix is not None or include or exclude:
        raise ConfigError("give --constraints, or --prefix, --include and --exclude for all inputs; not both")
    return _by_line(inputs, constraints)


def _by_line(inputs: Iterable[str], path: str) -> "Iterator[tuple[str, ConstraintSpec]]":
    from regard.data.lines import lines
    from regard.decoding.constraints.spec import parse_spec

    specs, text = map(parse_spec, lines(path)), None
    for number, text in enumerate(inputs, 1):
        spec = next(specs, None)
        if spec is None:
            raise DataError(
                f"{path} needs a line for each input, and ends before line {number}; an empty line has no constraints"
            )
        yield text, spec
    if text is not None and next(specs, None) is not None:
        raise DataError(f"{path} needs a line for each input, and has more lines than there are inputs")
