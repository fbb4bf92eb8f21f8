"""Plan of a comparison: every combination of the varied values with every seed, and those that cannot be trained."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from regard.compare.variations import Conditional, Varied
from regard.errors import ConfigError, DataError
from regard.inputs import is_pipe

SAFE = "._-+"
"""Characters of a folder name beside letters and digits."""


class Planned(NamedTuple):
    """One training: its varied values, seed and config, and the reason where its model cannot be built."""

    values: tuple[str, ...]
    seed: int
    config: Any
    refused: str | None = None

    @property
    def folder(self) -> str:
        """The name of its directory."""
        return f"{','.join(map(_safe, self.values))}-{self.seed}"

    def __str__(self) -> str:
        return f"{' · '.join(self.values)}, seed {self.seed}"


def plan(
    read: Callable[[list[str]], Any],
    varied_settings: Sequence[Varied],
    conditional: Sequence[Conditional],
    seeds: int,
    default: Any,
) -> list[Planned]:
    """All trainings, seed by seed within a combination; `read` makes a config of settings, `default` is the task's own.

    Names and values that do not exist are refused here, before anything trains; a combination that cannot be built stays in
    the plan with the reason, unless no combination can.
    """
    settings = [varied_setting.setting for varied_setting in varied_settings]
    configs: dict[tuple[str, ...], Any] = {}
    for values in product(*(varied_setting.values for varied_setting in varied_settings)):
        combination = dict(zip(settings, values, strict=True))
        extra = [setting for more in conditional if more.holds(combination) for setting in more.settings]
        configs[values] = read([*extra, *(f"{setting}={value}" for setting, value in combination.items())])
    check_settings(list(configs.values()), default)
    refused = {values: find_obstacle(config) for values, config in configs.items()}
    if all(refused.values()):
        raise ConfigError(f"none of {len(configs)} combinations can be built: {next(iter(refused.values()))}")
    planned = [
        Planned(values, seed, replace(config, train=replace(config.train, seed=seed)), refused[values])
        for values, config in configs.items()
        for seed in range(seeds)
    ]
    check_folders(planned)
    return planned


def check_settings(configs: Sequence[Any], default: Any) -> None:
    """Raise for errors of all combinations: unknown names, missing data, settings without effect."""
    from regard.tasks._validate import heeded

    for name in {config.model.attention.name for config in configs} - {"none"}:
        check_attention(name)
    for name in {config.model.self_attention for config in configs}:
        check_attention(name)
    for data, config in {config.data: config for config in configs}.items():
        for path in (data.train, data.valid, data.test):
            check_data(path, config)
    heeded(configs, default)


def check_attention(name: str) -> None:
    """Raise for a name that is no attention."""
    from regard.models.attention_factory import split_name

    try:
        split_name(name)
    except ValueError as error:
        raise ConfigError(str(error)) from error


def check_data(path: str | None, config: Any) -> None:
    """Raise for unreadable data: reads the first record, or all of them where these have more than two columns."""
    from regard.data.table import files, read
    from regard.tasks.kinds.types import family

    columns = [getattr(config.data, name) for name in config.data.columns]
    if path == "-":
        raise DataError("compare reads its data once for each training, and standard input can be read once; name a file")
    for file in [] if path is None else files(path):
        if is_pipe(file):
            raise DataError(
                f"compare reads its data once for each training, and {file} is a pipe, which can be read once; name a file"
            )
    if path is not None and len(columns) == 2:
        next(iter(read(path, *columns)))
    elif path is not None:
        family(config).read(config.data, path)


def find_obstacle(config: Any) -> str | None:
    """The reason why a config cannot be trained; None where it can."""
    from regard.tasks._validate import buildable, searchable, trainable

    try:
        trainable(config)
        searchable(config)
        buildable(config)
    except ConfigError as error:
        return str(error)
    return None


def check_folders(planned: Sequence[Planned]) -> None:
    """Raise where two trainings would share a directory."""
    taken: dict[str, Planned] = {}
    for run in planned:
        if (other := taken.setdefault(run.folder, run)) is not run:
            raise ConfigError(f"{other} and {run} would both train in {run.folder}; compare them in two directories")


def _safe(value: str) -> str:
    return "".join(letter if letter.isalnum() or letter in SAFE else "_" for letter in value)
