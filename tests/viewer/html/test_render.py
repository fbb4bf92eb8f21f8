import base64
import hashlib
import json
import re

import pytest

from regard.viewer.html import render
from regard.viewer.trace import Trace

from ..invented import translation

HOSTILE = [
    "</script>",
    "<!--",
    "-->",
    "]]>",
    "<script>alert(1)</script>",
    "\u2028\u2029",
    "\ud800",
    "&lt;",
    "\"'`",
    "<!--payload-->",
    "<!--policy-->",
]


def payload(page):
    text = re.search(r'<script type="application/json" id="payload">(.*?)</script>', page, re.DOTALL)[1]
    return json.loads(text), text


def test_a_page_holds_its_payload_and_every_tensor_that_it_names():
    page = render.html([translation()])
    told, _ = payload(page)
    assert told["format"] == "attn-page"
    assert told["runs"][0]["examples"][0]["axes"]["target"]["labels"] == ["汤姆", "追逐", "杰瑞", "<eos>"]
    named = set(re.findall(r'"data":"(d\d+)"', page))
    there = set(re.findall(r'<script type="application/gzip-base64" id="(d\d+)">', page))
    assert named == there
    assert len(there) > 20


def test_no_text_can_leave_its_block():
    _, text = payload(render.html([Trace("".join(HOSTILE), translation().examples)], state="#</script><b>"))
    assert not set("<>&\u2028\u2029") & set(text)
    told = json.loads(text)
    assert told["runs"][0]["name"] == "".join(HOSTILE)
    assert told["state"] == "#</script><b>"


def test_a_hostile_name_does_not_become_part_of_the_head():
    page = render.html([Trace("</title><script>alert(1)</script>", translation().examples)])
    title = re.search(r"<title>(.*?)</title>", page, re.DOTALL)[1]
    assert title == "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt; - regard" or "<" not in title


def test_a_page_may_run_its_own_script_and_nothing_else():
    page = render.html([translation()])
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1].replace("&#x27;", "'")
    rules = dict(each.strip().split(" ", 1) for each in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["connect-src"] == "'none'"
    assert "unsafe" not in policy
    scripts = re.findall(r"<script(?! type=\"application)[^>]*>(.*?)</script>", render.template(), re.DOTALL)
    digests = {f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'" for each in scripts}
    assert set(rules["script-src"].split()) == digests
    assert len(digests) == 1


def test_a_page_names_no_address():
    page = re.sub(r'<script type="application/gzip-base64".*?</script>', "", render.html([translation()]))
    assert not re.findall(r'(?:src|href)="(?!#|data:|\$\{)[^"]+"', page)  # ${...}: of an image that is saved
    assert "<link" not in page
    assert "@import" not in page


def test_equal_traces_give_equal_pages():
    assert render.html([translation()]) == render.html([translation()])


def test_a_page_shows_one_trace_or_two():
    assert len(payload(render.html([translation(), translation(3)]))[0]["runs"]) == 2
    for traces in ([], [translation()] * 3):
        with pytest.raises(ValueError, match=f"a page shows one trace or compares two, got {len(traces)}"):
            render.html(traces)


def test_a_language_that_the_page_does_not_speak_is_refused():
    assert payload(render.html([translation()], language="zh"))[0]["language"] == "zh"
    with pytest.raises(ValueError, match="the page speaks en and zh, got 'fr'"):
        render.html([translation()], language="fr")
