"""Nothing that a token, a label or a name says is ever run."""

import dataclasses
import itertools

import numpy as np
import pytest

from regard.data.axis import Text
from regard.viewer.html import render
from regard.viewer.html.server import Server
from regard.viewer.trace import AttentionMap, Choice, Edge, Example, Graph, Node, Trace

CALL = "window.hacked=1"
CORES = [
    f"<script>{CALL}</script>",
    f"</script><script>{CALL}</script>",
    f"<img src=x onerror={CALL}>",
    f"<svg onload={CALL}>",
    f"<svg><script>{CALL}</script></svg>",
    f"<iframe srcdoc='<script>parent.{CALL}</script>'>",
    f"<body onload={CALL}>",
    f"<details open ontoggle={CALL}>",
    f"<input autofocus onfocus={CALL}>",
    f"<a href=javascript:{CALL}>x</a>",
    f"javascript:{CALL}",
    "<style>@import 'http://example.invalid/x';</style>",
    "<link rel=stylesheet href=http://example.invalid/x.css>",
    "<base href=http://example.invalid/>",
    "<meta http-equiv=refresh content='0;url=http://example.invalid/'>",
    "<object data=http://example.invalid/x>",
    f"<math><mtext></mtext><script>{CALL}</script></math>",
    f"<template><script>{CALL}</script></template>",
    f"<!--<script>{CALL}</script>-->",
    f"<![CDATA[<script>{CALL}</script>]]>",
]
WRAPS = ["{}", '"{}', "'{}", "--> {}", "]]>{}", "</title>{}", "</style>{}", "</textarea>{}", "\u2028{}", "\\u003c{}"]
PAYLOADS = [wrap.format(core) for wrap, core in itertools.product(WRAPS, CORES)]
ODD = [
    "\ud800",
    "\udfff\ud800",
    "x" * 10_000,
    "مرحبا بالعالم",
    "👩‍👩‍👧‍👦",
    "\u202egnp.exe",
    "\x00\x07\x1b[31m",
    "e\u0301" * 50,
    "__proto__",
    "constructor",
    "{name}",
    "%s%n",
    "&lt;b&gt;",
    "<!--payload-->",
    "<!--policy-->",
]


def hostile(texts):
    """A trace in which everything that can have a name has one of these."""
    count = len(texts)
    weights = np.full((1, count, count), 1 / count, np.float32)
    name = texts[0]
    axis = Text.of(texts, lang="en")
    attention_map = AttentionMap(f"{name}.cross", f"{name}q", f"{name}k", weights, source=texts[-1])
    steps = tuple(Choice(place, text, -0.5, ((text, -0.5), (texts[-1], -1.0))) for place, text in enumerate(texts))
    node = Node(
        attention_map.name, "attention", name, {texts[1]: (1, 2)}, (1, 2), 3, {"score": texts[2], "kernel": texts[3]}
    )
    graph = Graph((Node(name, texts[4]), node), (Edge(name, attention_map.name, (1, 2), texts[5]),))
    example = Example({f"{name}q": axis, f"{name}k": axis}, (attention_map,), steps, None, texts[6])
    return Trace(texts[7], (example,), graph, notes=(texts[8],))


def unharmed(page):
    assert page.evaluate("window.hacked") is None
    assert page.locator("iframe, object, embed, base, link, meta[http-equiv=refresh]").count() == 0
    assert page.evaluate("[...document.scripts].filter(each => !each.type.startsWith('application/')).length") == 1


def test_there_are_two_hundred_of_them():
    assert len(set(PAYLOADS)) == 200


@pytest.mark.parametrize("view", ["heatmap", "lines", "tokens", "table"])
def test_no_payload_runs_in_any_view(watched, view):
    page = watched.show(render.html([hostile(PAYLOADS)]), fragment=f"#v={view}&q=3&k=4")
    for key in ("ArrowDown", "ArrowRight", "Space", "Space", "?", "Escape"):
        page.keyboard.press(key)
    unharmed(page)


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_each_is_shown_as_the_text_it_is(watched, start):
    part = PAYLOADS[start : start + 20]
    page = watched.show(render.html([hostile(part)]), fragment="#v=table&top=1")
    unharmed(page)
    told = page.evaluate("JSON.parse(document.getElementById('payload').textContent).runs[0].examples[0]")
    axis = next(iter(told["axes"].values()))
    assert axis["labels"] == part


def test_odd_texts_are_shown_without_harm(watched):
    texts = [*ODD, *PAYLOADS[:9]]
    for view in ("heatmap", "lines", "tokens", "table"):
        page = watched.show(render.html([hostile(texts)]), fragment=f"#v={view}&q=2")
        unharmed(page)


def test_a_served_page_is_as_safe(watched):
    with Server([hostile(PAYLOADS[:40])]) as server:
        page = watched.show(server.url, tiles=True)
        page.keyboard.press("ArrowDown")
        unharmed(page)


def test_a_second_trace_is_as_safe(watched):
    traces = [hostile(PAYLOADS[:30]), dataclasses.replace(hostile(PAYLOADS[30:60]), name=PAYLOADS[77])]
    page = watched.show(render.html(traces), fragment="#c=difference")
    unharmed(page)


def test_even_a_script_that_got_in_would_not_run(watched):
    """The policy is the second lock: it holds where the first has been broken on purpose."""
    whole = render.html([hostile(PAYLOADS[:20])])
    page = watched.blank()
    file = watched.folder / "open.html"
    file.write_text(whole.replace("</body>", f"<script>{CALL}</script></body>"), encoding="utf-8", errors="surrogatepass")
    page.goto(file.as_uri())
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate("window.hacked") is None
