"""What a page is told of a trace, part by part, with numbers worked by hand."""

import json
import math
from importlib import metadata

import numpy as np
import pytest

from regard.data.axis import Audio, Image, Index, Series, Text
from regard.viewer import palettes
from regard.viewer.html.pack import Pack
from regard.viewer.html.payload import LICENCES, MIT, axis, beams, graph, payload
from regard.viewer.trace import AttentionMap, Beams, Edge, Example, Frame, Graph, Links, Node, Trace

from ..invented import translation
from ..node import VIEWER
from .opened import opened, told


def attention(attention_map, queries=2, keys=2):
    """What is told of one attention between numbered places, and the tensors beside it."""
    pack, run = told(Trace("t", (Example({"q": Index(queries), "k": Index(keys)}, (attention_map,)),)))
    return pack, run["examples"][0]["attentions"][0]


def test_a_page_says_what_it_is_and_how_to_open():
    page = payload([translation(), translation(1)], Pack(), state="#q=1", language="zh")
    assert [page[name] for name in ("format", "version", "state", "language", "tiles")] == [
        "attn-page",
        1,
        "#q=1",
        "zh",
        None,
    ]
    assert [run["name"] for run in page["runs"]] == ["transformer", "transformer"]
    assert page["palettes"] == palettes.encoded()
    assert page["about"] == {"version": metadata.version("regard"), "licences": LICENCES}
    json.dumps(page, allow_nan=False)


def test_a_text_has_labels_and_pieces_and_what_each_covers():
    text = Text(("▁Tom", "<eos>"), "Tom", ((0, 3), None), (1,), "en")
    assert axis(text, Pack()) == {
        "kind": "text",
        "length": 2,
        "labels": ["Tom", "<eos>"],
        "pieces": ["▁Tom", "<eos>"],
        "text": "Tom",
        "spans": [[0, 3], None],
        "special": [1],
        "lang": "en",
    }


def test_a_sound_has_its_spectrogram_in_256_steps_from_its_smallest_to_its_largest():
    pack = Pack()
    wave = np.array([0.5, -0.5])  # float64
    found = axis(Audio(2, 0.04, np.array([[-1, 0], [1, 3]], np.float16), wave, 8000), pack)
    assert (found["kind"], found["length"], found["seconds_per_step"], found["rate"]) == ("audio", 2, 0.04, 8000)
    assert opened(pack, found["spectrogram"]).tolist() == [[0, 64], [128, 255]]  # 255 / 4 = 63.75, 255 / 2 = 127.5
    assert found["sound"]["dtype"] == "f32"
    assert opened(pack, found["sound"]).tolist() == [0.5, -0.5]
    still = axis(Audio(2, 0.04, np.full((1, 2), 7.0, np.float32)), pack)
    assert opened(pack, still["spectrogram"]).tolist() == [[0, 0]]
    assert (still["sound"], still["rate"]) == (None, None)


def test_a_picture_has_its_pixels_and_its_grid():
    pack, pixels = Pack(), np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    found = axis(Image((1, 2), (2, 2), pixels, ("CLS",)), pack)
    assert np.array_equal(opened(pack, found.pop("pixels")), pixels)
    assert found == {"kind": "image", "length": 3, "labels": None, "grid": [1, 2], "size": [2, 2], "prefix": ["CLS"]}
    assert axis(Image((1, 2), (2, 2)), pack)["pixels"] is None


def test_a_series_has_its_moments_exactly_and_its_values_as_floats_with_gaps():
    pack, moment = Pack(), 1_700_000_000.25  # float32 would be off by a minute
    found = axis(Series(np.array([moment, moment + 1]), np.array([[1.5], [np.nan]]), ("load",), 1, False), pack)
    assert found["times"] == [moment, moment + 1]
    np.testing.assert_array_equal(opened(pack, found.pop("values")), np.array([[1.5], [np.nan]], np.float32))
    assert (found["names"], found["split"], found["dates"], found["labels"]) == (["load"], 1, False, None)


def test_places_with_nothing_but_a_number_have_a_length():
    assert axis(Index(7), Pack()) == {"kind": "index", "length": 7, "labels": None}


def test_a_network_is_told_box_by_box_and_arrow_by_arrow():
    node = Node("a", "attention", "m", {"query": (1, 2, 8)}, None, 99, {"heads": 2})
    assert graph(Graph((Node("m", "model", output=(1, 2)), node), (Edge("m", "a", (1, 2), "key"),))) == {
        "nodes": [
            {"id": "m", "kind": "model", "parent": None, "inputs": {}, "output": [1, 2], "parameters": 0, "about": {}},
            {
                "id": "a",
                "kind": "attention",
                "parent": "m",
                "inputs": {"query": [1, 2, 8]},
                "output": None,
                "parameters": 99,
                "about": {"heads": 2},
            },
        ],
        "edges": [{"start": "m", "end": "a", "shape": [1, 2], "role": "key"}],
    }


def test_a_row_of_beams_that_is_nobodys_has_no_score():
    pack = Pack()
    searched = Beams(
        parents=np.array([[0, 0], [1, -1]], np.int32),
        tokens=(("a", "b"), ("c", "")),
        scores=np.array([[-0.5, -1.0], [-1.5, -np.inf]], np.float32),
        ended=np.array([[False, False], [True, False]]),
        best=(1, 0),
        name="cross",
        weights=np.full((2, 2, 2), 0.5, np.float32),
    )
    found = beams(searched, pack)
    ref = found.pop("weights")
    assert found == {
        "parents": [[0, 0], [1, -1]],
        "tokens": [["a", "b"], ["c", ""]],
        "scores": [[-0.5, -1.0], [-1.5, 0.0]],
        "ended": [[False, False], [True, False]],
        "best": [1, 0],
        "attention": "cross",
    }
    assert (ref["dtype"], opened(pack, ref).tolist()) == ("f16", [[[0.5, 0.5]] * 2] * 2)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_masks_are_full_causal_or_given_as_where_any_head_may_look():
    half = np.array([[[1, 0], [0.5, 0.5]]] * 2, np.float32)
    heads = np.array([[[True, False], [True, True]], [[True, False], [False, True]]])
    heads_weights = np.where(heads, half, 0)
    for allowed, weights, mask in (
        (None, half, "full"),
        (np.tri(2, dtype=bool), half, "causal"),
        (heads, heads_weights, "given"),
    ):
        pack, found = attention(AttentionMap("a", "q", "k", weights, allowed=allowed, sums_to_one=False))
        assert found["mask"] == mask
        assert (found["allowed"] is None) == (mask != "given")
    assert opened(pack, found["allowed"]).tolist() == [[1, 0], [1, 1]]
    assert found["allowed"]["dtype"] == "u8"


def test_a_look_with_rows_has_every_query_and_nothing_for_those_that_were_not_recorded():
    pack, found = attention(AttentionMap("a", "q", "k", np.array([[[0.25, 0.75]]], np.float32), rows=(1,)))
    assert (found["rows"], found["heads"], found["queries"], found["keys"], found["recorded"]) == ([1], 1, 2, 2, True)
    curves = {name: opened(pack, ref) for name, ref in found["statistics"].items()}
    np.testing.assert_array_equal(curves["largest"], np.array([[np.nan, 0.75]], np.float32))
    np.testing.assert_allclose(curves["received"], [[0.5, 1.5]])  # one row, of which each key would get half
    assert opened(pack, found["full"]["mean"]).tolist() == [
        [0, 0],
        [128, 221],
    ]  # 255 sqrt(1/4) = 127.5, 255 sqrt(3/4) = 220.8


def test_a_look_with_statistics_alone_has_curves_and_no_matrix():
    measured = {"max": [[1, 0.5]], "entropy": [[0, math.log(2)]], "received": [[1, 0.5, 0.5]]}
    attention_map = AttentionMap(
        "a", "q", "k", None, statistics={name: np.array(each, np.float32) for name, each in measured.items()}
    )
    pack, found = attention(attention_map, keys=3)
    assert (found["recorded"], found["heads"], found["rows"], found["scale"]) == (False, 1, None, 1.0)
    assert (found["thumbnails"], found["top"], found["full"], found["exact"], found["views"]) == (None, None, {}, {}, {})
    curves = {name: opened(pack, ref) for name, ref in found["statistics"].items()}
    np.testing.assert_allclose(curves["received"], [[1.5, 0.75, 0.75]], rtol=1e-6)  # of 2 queries by 3 keys
    np.testing.assert_allclose(curves["effective"], [[1, 2]], rtol=1e-6)
    assert np.isnan(curves["focus"]).all()
    assert found["summary"]["entropy"] == [pytest.approx(math.log(2) / 2)]
    assert found["summary"]["sink"] == [0.0]  # no key is special
    assert found["summary"]["distance"] == found["summary"]["diagonality"] == [None]


def test_weights_beyond_one_say_what_the_strongest_colour_stands_for():
    _, found = attention(AttentionMap("a", "q", "k", np.array([[[4, 0], [1, 1]]], np.float32), sums_to_one=False))
    assert (found["scale"], found["sums_to_one"]) == (4.0, False)


def test_a_served_page_does_not_wait_for_the_thumbnails_of_a_large_trace(monkeypatch):
    for ready, there in ((6 * 4 * 16 + 1, True), (6 * 4 * 16, False)):  # 6 attentions of 4 heads, 4 x 4
        monkeypatch.setattr("regard.viewer.html.payload.READY", ready)
        _, run = told(translation(), None, tiles="tile")
        assert [each["thumbnails"] is not None for each in run["examples"][0]["attentions"]] == [there] * 6


def test_heads_have_an_alignment_error_where_people_made_links_and_at_every_moment_of_training():
    heads = np.stack([np.eye(2), np.eye(2)[::-1]]).astype(np.float32)
    axes, film = {"t": Index(2), "s": Index(2)}, (Frame(0, None, {"cross": heads[::-1].copy()}),)
    attentions = (AttentionMap("own", "s", "s", heads), AttentionMap("cross", "t", "s", heads))
    example = Example(axes, attentions, gold=Links("t", "s", ((0, 0), (1, 1))))
    _, run = told(Trace("t", (example,), training=film))
    assert [each["summary"]["alignment"] for each in run["examples"][0]["attentions"]] == [[None, None], [0, 1]]
    assert run["training"][0]["summary"]["cross"]["alignment"] == [1, 0]


def test_every_package_in_the_page_is_named_in_its_version_and_no_other():
    locked = json.loads((VIEWER / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    built = {
        (path.removeprefix("node_modules/"), each["version"], each["license"])
        for path, each in locked.items()
        if path and not each.get("dev")
    }
    named = set()
    for entry in LICENCES:
        scope = entry["name"].rpartition("/")[0]
        for each in entry["name"].split(" and "):
            name, version = each.split(" ")
            named.add((name if "/" in name or not scope else f"{scope}/{name}", version, entry["licence"]))
    assert named == built


def test_every_text_names_its_holder_and_holds_the_whole_licence():
    for entry in LICENCES:
        holder, terms = entry["text"].split("\n\n")
        assert holder.startswith("Copyright (c) 20")
        assert terms == MIT
    for part in ("without restriction", "this permission notice shall be included in all copies", '"AS IS"'):
        assert part in MIT
