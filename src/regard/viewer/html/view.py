"""Look at a trace: in a notebook in place, from a script in a browser."""

import base64
import html
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.viewer import source
from regard.viewer.html import render
from regard.viewer.html.server import Server
from regard.viewer.metrics import matrices
from regard.viewer.metrics.matrices import MEAN
from regard.viewer.metrics.strength import summary
from regard.viewer.trace import AttentionMap, Example, Trace, format_count

HEIGHT = 760
"""Pixels of a page in a notebook."""
INLINE = "4MB"
"""Limit on the size of a page in a notebook: the notebook keeps it, and servers refuse messages above 10 MB."""
FRAME = "regard-view"
THEMES = (
    f'[data-jp-theme-light="true"] .{FRAME}{{color-scheme:light}}[data-jp-theme-light="false"] .{FRAME}{{color-scheme:dark}}'
)
"""A notebook has a theme of its own, whatever the system's is; a page takes the colours that its frame is said to have."""


class View:
    """A page about one trace or two. A notebook shows it in place, `save` writes it, `close` ends its server."""

    def __init__(self, traces: list[Trace], state: str = "", language: str | None = None, server: Server | None = None):
        self.traces, self.state, self.language, self.server = traces, state, language, server

    @property
    def url(self) -> str | None:
        """Address of the page, with its key; None in a notebook."""
        return None if self.server is None else self.server.opens

    def html(self, budget: str | int = render.BUDGET) -> str:
        """The page as one self-contained file."""
        return render.html(self.traces, budget=budget, state=self.state, language=self.language)

    def save(self, path: Path | str, budget: str | int = render.BUDGET) -> Path:
        """Write the page, whole or not at all."""
        from regard.io import write

        path = Path(path)
        write(path, self.html(budget).encode("utf-8", "backslashreplace"))
        return path

    def close(self) -> None:
        """Stop serving."""
        if self.server is not None:
            self.server.close()
            self.server = None

    def __repr__(self) -> str:
        return describe_traces(self.traces)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Representation in a notebook: the page, over a picture where the page is not admitted, and three lines of text."""
        picture = self._picture()
        bundle: dict[str, Any] = {"text/plain": repr(self), "text/html": framed(self.html(INLINE), picture)}
        if picture is not None:
            bundle["image/png"] = base64.b64encode(picture).decode("ascii")
        return bundle

    def _picture(self) -> bytes | None:
        """A figure of the attention that the page opens with; None without matplotlib or without weights."""
        import io
        from importlib.util import find_spec

        if find_spec("matplotlib") is None or all(
            attention_map.weights is None for attention_map in self.traces[0].example().attentions
        ):
            return None
        stream = io.BytesIO()
        self.traces[0].figure("heatmap", width="page").savefig(stream, format="png", dpi=120)
        return stream.getvalue()


def view(
    trace: Trace,
    other: Trace | None = None,
    *,
    state: str = "",
    language: str | None = None,
    port: int = 0,
    browser: bool = True,
) -> View:
    """Show a trace, or two side by side. In a notebook the page stands in place; elsewhere it is served and opened.

    `state` is what "copy link" in the page gives: "#a=decoder.cross&q=2". A script goes on while the page is served, and
    does not end before `close()` or Ctrl-C.
    """
    traces = [trace] if other is None else [trace, other]
    if in_notebook():
        return View(traces, state, language)
    server = Server(traces, port=port, state=state, language=language, daemon=False).start()
    shown = View(traces, state, language, server)
    announce(server, browser, shown.url or "")
    return shown


def announce(server: Server, browser: bool, url: str) -> None:
    """Say where the page is, how to reach it from elsewhere, and open it where there is a screen."""
    print(f"{url}\n(Ctrl-C ends it)", file=sys.stderr)
    if "SSH_CONNECTION" in os.environ:
        number = server.http.server_port
        print(f"from your own machine: ssh -L {number}:127.0.0.1:{number} HOST, then open the same address", file=sys.stderr)
    elif browser:
        import webbrowser

        webbrowser.open(url)


def in_notebook() -> bool:
    """True if this runs in a kernel that shows HTML."""
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


def framed(page: str, picture: bytes | None) -> str:
    """The page in a frame of its own, over a picture: a notebook that is not trusted drops the frame alone."""
    data = "" if picture is None else base64.b64encode(picture).decode("ascii")
    image = f'<img alt="attention weights" src="data:image/png;base64,{data}" style="max-width:100%">' if data else ""
    frame = (
        f'<iframe class="{FRAME}" title="attention" sandbox="allow-scripts allow-downloads" srcdoc="{html.escape(page)}" '
        'style="position:absolute;inset:0;width:100%;height:100%;border:0;background:Canvas"></iframe>'
    )
    return f'<style>{THEMES}</style><div style="position:relative;min-height:{HEIGHT}px">{image}{frame}</div>'


def describe_traces(traces: Sequence[Trace]) -> str:
    """Three lines about each trace."""
    return "\n".join(line for trace in traces for line in lines(trace))


def lines(trace: Trace) -> list[str]:
    """Summary of a trace: its contents, its main observation, and the origin of its weights."""
    attentions = [attention_map for example in trace.examples for attention_map in example.attentions]
    heading = f"{trace.name}: {format_count(len(trace.examples), 'example')}, {format_count(len(attentions), 'attention')}"
    if not attentions:
        return [heading, "no attention was recorded", ""]
    attention_map = trace.attention()
    return [
        heading,
        finding(trace.example(), attention_map),
        f"{attention_map.name}: {source.describe(attention_map.source)}",
    ]


def finding(example: Example, attention_map: AttentionMap) -> str:
    """Observation: the keys of the sharpest query of an attention."""
    if attention_map.weights is None:
        effective = float(np.nanmean(summary(attention_map, example.axes).effective))
        return f"{attention_map.name} spreads over {effective:.1f} keys on average; only statistics were recorded"
    weights = matrices.matrix(example, attention_map, MEAN)
    if not weights.size:
        return f"{attention_map.name} has nothing to look at"
    query, key = np.unravel_index(int(weights.argmax()), weights.shape)
    asked, read = example.axes[attention_map.query].labels[query], example.axes[attention_map.key].labels[key]
    return f"{attention_map.name}: {asked!r} reads mostly {read!r}, {weights[query, key]:.2f}"
