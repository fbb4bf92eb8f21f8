"""Static figures of a trace, for print: `figure(trace, "heatmap").savefig("map.pdf")`.

Nothing here shows a window, imports pyplot or changes matplotlib's settings. matplotlib itself is an extra, imported when a
figure is asked for.
"""

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from regard.errors import MissingExtraError
from regard.extras import describe_install
from regard.viewer.trace import Trace

if TYPE_CHECKING:
    import matplotlib.figure

KINDS = ("heatmap", "heads", "lines", "strength", "overlay", "graph")


def figure(
    trace: Trace,
    kind: str = "heatmap",
    *,
    attention: str | None = None,
    head: int | None = None,
    example: int = 0,
    width: str = "column",
    palette: str = "cividis",
    text: str = "text",
    **options: Any,
) -> "matplotlib.figure.Figure":
    """A picture of a trace: one of its attentions by name, one head or the mean of all, as wide as a column or a page.

    heatmap    numbers=False, vmax=None, title=""     one matrix, queries down, keys across
    heads      vmax=None                              every layer and head of the group, on one scale
    lines      strongest=2, upright=None              the strongest links of each query
    strength                                          received, sharpness, focus and sink along time, with their definitions
    overlay    query=None                             what queries read of a picture, a sound or a series
    graph      boxes=40                               the network as it ran, attentions marked

    `text="path"` turns the letters of an SVG into outlines; else they stay text.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no figure {kind!r}; there are {', '.join(KINDS)}")
    try:
        module = importlib.import_module(f"regard.viewer.figure.{kind}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise MissingExtraError(f"figures need matplotlib, which is not installed: {describe_install('view')}") from error
    from regard.viewer.figure.style import WIDTHS
    from regard.viewer.figure.subject import Subject

    if width not in WIDTHS:
        raise ValueError(f"a figure is as wide as a {' or a '.join(WIDTHS)}, got {width!r}")
    if text not in ("text", "path"):
        raise ValueError(f"letters are kept as 'text' or turned into a 'path', got {text!r}")
    known = [
        name
        for name, parameter in inspect.signature(module.draw).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    ]
    for name in options:
        if name not in known:
            raise TypeError(f"the figure {kind!r} has no option {name!r}; it has {', '.join(known) or 'none'}")
    subject = Subject(trace, example, attention, head, WIDTHS[width], palette, text)
    picture: matplotlib.figure.Figure = module.draw(subject, **options)
    return picture
