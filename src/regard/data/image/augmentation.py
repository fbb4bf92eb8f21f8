"""One word for what happens to pictures at random: "affine", "light+flip", "none"; or a word and its numbers."""

from dataclasses import fields
from importlib import import_module
from typing import Any

from regard.data.image.augment import Change, Compose

KINDS = ("affine", "light", "flip", "crop", "erase")


def parse_augmentation(words: str) -> Change | None:
    """The changes that are named, in this order; None where there are none.

    A change is as it is by default but for the numbers behind its word: "affine:scale=0.3:turn=0+flip:down=0.5".
    """
    if words == "none":
        return None
    changes = tuple(_build_change(*part.split(":"), words=words) for part in words.split("+"))
    return changes[0] if len(changes) == 1 else Compose(changes)


def _build_change(word: str, *settings: str, words: str) -> Change:
    """One change."""
    if word not in KINDS:
        raise ValueError(f"data.augment needs to be none, or one or more of {', '.join(KINDS)} joined by +, got {words!r}")
    kind: Any = getattr(import_module(f"regard.data.image.augment.{word}"), word.capitalize())
    known, numbers = {field.name: field.type for field in fields(kind)}, dict[str, float]()
    for setting in settings:
        name, _, text = setting.partition("=")
        number = _number(text)
        if name not in known or number is None:
            raise ValueError(
                f"data.augment: {word} takes NAME=NUMBER behind a colon, of {', '.join(known)}, got {setting!r}"
            )
        numbers[name] = bool(number) if known[name] is bool else number
    change: Change = kind(**numbers)
    return change


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
