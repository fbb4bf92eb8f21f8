"""The page as one file of HTML: the built viewer with a payload put in. Nothing in it is fetched from anywhere.

Whatever a model, a file or a person named goes in as JSON in which no character can end the block that it stands in, and
the policy in the page's head lets the browser run the viewer's own script and no other.
"""

import base64
import hashlib
import html as markup
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Any

from regard.viewer.html.pack import Pack, size
from regard.viewer.trace import Trace

BUDGET = "16MB"
"""Default limit on the size of a page."""

POLICY = "<!--policy-->"
PAYLOAD = "<!--payload-->"
ENDING = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
"""Characters that could end a block of data, or that UTF-8 has no bytes for."""


def html(
    traces: Sequence[Trace],
    *,
    budget: str | int = BUDGET,
    state: str = "",
    language: str | None = None,
    tiles: str | None = None,
    takes: str | None = None,
) -> str:
    """A page about one trace, or about two side by side.

    `state` is a fragment to open with, as "copy link" gives it; `language` is en or zh, by default the browser's. With
    `tiles` the page fetches matrices from there; without, it holds as much as the budget allows and lists the rest.
    `takes` is the kind of input that the server of the page records: text or picture.
    """
    from regard.viewer.html.payload import payload

    if language not in (None, "en", "zh"):
        raise ValueError(f"the page speaks en and zh, got {language!r}")
    if not 1 <= len(traces) <= 2:
        raise ValueError(f"a page shows one trace or compares two, got {len(traces)}")
    pack = Pack(None if tiles else size(budget))
    told = payload(traces, pack, state=state, language=language, tiles=tiles) | {"takes": takes}
    page = template()
    meta = f'<meta http-equiv="Content-Security-Policy" content="{markup.escape(policy(page, served=tiles is not None))}">'
    title = f"<title>{markup.escape(_title(traces))}</title>"
    page = re.sub(r"<title>.*?</title>", lambda _: title, page, count=1, flags=re.DOTALL)
    page = page.replace(POLICY, meta, 1)
    return page.replace(PAYLOAD, blocks(told, pack), 1)


def blocks(payload: dict[str, Any], pack: Pack) -> str:
    """The payload and its tensors as blocks of data that no browser runs."""
    tensors = (f'<script type="application/gzip-base64" id="{name}">{data}</script>' for name, data in pack.blocks.items())
    return "\n".join([f'<script type="application/json" id="payload">{quote(payload)}</script>', *tensors])


def quote(payload: Any) -> str:
    """JSON in which no character has a meaning to HTML."""
    text = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return ENDING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def policy(page: str, *, served: bool) -> str:
    """Content security policy: run this script, use this style, and, where the page is served, ask its server for tiles."""
    scripts, styles = (_hashes(page, tag) for tag in ("script", "style"))
    parts = {
        "default-src": "'none'",
        "script-src": scripts,
        "style-src": styles,
        "img-src": "data: blob:",
        "media-src": "data: blob:",
        "connect-src": "'self'" if served else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


@cache
def template() -> str:
    """The built viewer, which lies in the package."""
    page = resources.files("regard.viewer").joinpath("static/viewer.html").read_text(encoding="utf-8")
    for marker in (POLICY, PAYLOAD):
        if page.count(marker) != 1:
            raise ValueError(f"static/viewer.html needs {marker} once; build it again: make viewer")
    return page


def _hashes(page: str, tag: str) -> str:
    """The digests of every block of this kind that a browser would take; blocks of data have another type."""
    scripts = re.findall(rf"<{tag}(?: type=\"module\")?(?: crossorigin)?>(.*?)</{tag}>", page, flags=re.DOTALL)
    digests = (
        base64.b64encode(hashlib.sha256(script.encode("utf-8", "surrogatepass")).digest()).decode() for script in scripts
    )
    return " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"


def _title(traces: Sequence[Trace]) -> str:
    named = " / ".join(ENDING.sub("", trace.name)[:80] for trace in traces)
    return f"{named} - regard" if named.strip(" /") else "regard"
