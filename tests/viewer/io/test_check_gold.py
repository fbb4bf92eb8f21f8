"""Every rule of gold links, broken one at a time."""

import pytest

from regard.viewer.io import load, save
from regard.viewer.io.check import check
from regard.viewer.trace import Links

from .traces import change, refused, refuses, stored, trace

GOLD = Links("target", "source", ((0, 0), (1, 2)), ((1, 1),))


def test_links_that_fit_pass():
    check(trace(gold=GOLD))


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        (
            Links("x", "source", ((0, 0),)),
            "example 0, gold: its query axis is 'x', and the example has the axes source, target",
        ),
        (Links("target", "y", ((0, 0),)), "gold: its key axis is 'y'"),
        (Links("target", "source", ()), "gold: it needs at least one sure link, got none"),
        (Links("target", "source", ((2, 0),)), "place 2 of 'target' and place 0 of 'source', which have 2 and 3 places"),
        (Links("target", "source", ((0, 0),), ((0, -1),)), "place 0 of 'target' and place -1 of 'source'"),
    ],
)
def test_what_links_must_be(gold, said):
    refuses(trace(gold=gold), said)


def test_links_survive_the_way_through_a_file(tmp_path):
    path = tmp_path / "t.attn.safetensors"
    save(trace(gold=GOLD), path)
    assert load(path).example().gold == GOLD


def test_a_file_without_links_has_none(tmp_path):
    path = tmp_path / "t.attn.safetensors"
    stored(path, lambda manifest: manifest["examples"][0].pop("gold"))
    assert load(path).example().gold is None


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        ({"query": "target", "key": "source", "sure": [[0, 0, 0]]}, "gold.sure[0] must have 2 entries, got 3"),
        ({"query": "target", "key": "source", "sure": [[0, -1]]}, "gold.sure[0][1] must be at least 0, got -1"),
        ({"query": "target", "sure": [[0, 0]]}, "gold.key is missing"),
        ({"query": "target", "key": "source", "sure": [[9, 0]]}, "gold: a link joins place 9 of 'target'"),
    ],
)
def test_a_file_with_broken_links_is_refused(tmp_path, gold, said):
    path = tmp_path / "t.attn.safetensors"
    stored(path, change("examples", 0, "gold", to=gold))
    refused(path, said)
