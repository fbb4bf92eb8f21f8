"""One word for what happens to pictures at random: "affine", "light+flip", "none"."""

from importlib import import_module

from regard.data.image.augment import Change, Several

KINDS = ("affine", "light", "flip", "crop", "erase")


def named(words: str) -> Change | None:
    """The changes that are named, in this order, as they are by default; None where there are none."""
    if words == "none":
        return None
    several = words.split("+")
    for word in several:
        if word not in KINDS:
            raise ValueError(
                f"data.augment needs to be none, or one or more of {', '.join(KINDS)} joined by +, got {words!r}"
            )
    made = tuple(getattr(import_module(f"regard.data.image.augment.{word}"), word.capitalize())() for word in several)
    return made[0] if len(made) == 1 else Several(made)
