"""What the queries and keys of an attention stand for, guessed from where it stands in a model."""

from collections.abc import Mapping

from torch import nn

from regard.attention.visual import Visual
from regard.viewer.record.assemble import Between, Run


def between(model: nn.Module, attentions: Mapping[str, nn.Module], run: Run, itself: Mapping[str, bool]) -> Between:
    """The query axis and the key axis of every attention that was heard in a run.

    An encoder looks from source to source. A decoder looks from the target, the token that it writes at a place, to what is
    written so far, which begins with BOS, and to the source. Elsewhere an axis is named after the part of the model.
    """
    found: dict[str, tuple[str, str]] = {}
    for name in run.calls:
        module, top = attentions[name], name.partition(".")[0]
        if isinstance(module, Visual):
            _, query, key = module.axes
            found[name] = query or "map", key
        elif (part := half(model, name)) is not None:
            query = "source" if part == "encoder" else "target"
            own = "source" if part == "encoder" else "written"
            found[name] = query, own if itself.get(name) else "source"
        elif itself.get(name):
            found[name] = top, top
        else:
            found[name] = f"{top} queries", f"{top} keys"
    return found


def half(model: nn.Module | None, name: str) -> str | None:
    """Which half of an encoder and a decoder an attention stands in, also where a model holds several such pairs."""
    for part in name.split("."):
        pair = all(isinstance(getattr(model, each, None), nn.Module) for each in ("encoder", "decoder"))
        if pair and part in ("encoder", "decoder"):
            return part
        model = getattr(model, part, None)
    return None
