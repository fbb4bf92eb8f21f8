"""Commands and models that tell what they see: what is only for models that write text is refused in words."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regard.config import ConfigError

if TYPE_CHECKING:
    from regard.seeing import Seeing
    from regard.trained import Trained

WRITING = ("beam", "unknown", "prefix", "include", "exclude", "constraints", "stream", "listen")
"""Options of predict that say how a text is looked for."""


def sees(model: "Trained | Seeing", options: Mapping[str, Any], settings: Sequence[str]) -> None:
    """Raise where a model that writes nothing is told how to write."""
    from regard.seeing import Seeing

    if not isinstance(model, Seeing):
        return
    given = [f"--{name}" for name in WRITING if options.get(name)]
    given += [f"--{each.partition('=')[0]}" for each in settings if each.partition("=")[0] != "search.batch"]
    if given:
        raise ConfigError(f"{given[0]} is for models that write text, and this one ({model.name}) writes none; leave it out")
