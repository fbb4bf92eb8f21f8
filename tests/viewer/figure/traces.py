"""Small traces to draw, one of each kind of data."""

import io
from functools import cache

import numpy as np
from matplotlib.text import Text as Written
from PIL import Image as Picture

from regard.data.axis import Audio, Image, Index, Series, Text
from regard.viewer.figure import figure
from regard.viewer.trace import AttentionMap, Edge, Example, Graph, Node, Trace


def softmax(*shape, seed=0, sharp=2.0):
    weights = np.exp(sharp * np.random.default_rng(seed).normal(size=shape))
    return weights / weights.sum(-1, keepdims=True)


def trace(weights, query, key, **given):
    axes = {"target": query, "source": key}
    return Trace("tiny", (Example(axes, (AttentionMap("decoder.cross", "target", "source", weights, **given),)),))


def translation(**given):
    english = Text.of(["Tom", "chases", "Jerry", ".", "<eos>"], special=(4,), lang="en")
    chinese = Text.of(["汤姆", "追逐", "杰瑞", "。"], lang="zh")
    return trace(**({"weights": softmax(2, 4, 5), "query": chinese, "key": english} | given))


def words(count):
    return Text.of([f"word{place}" for place in range(count)])


def causal(places=8, heads=2, layers=1):
    allowed = np.tri(places, dtype=bool)
    attentions = []
    for layer in range(layers):
        weights = softmax(heads, places, places, seed=layer) * allowed
        attentions.append(
            AttentionMap(
                f"decoder.{layer}.self",
                "words",
                "words",
                weights / weights.sum(-1, keepdims=True),
                layer=layer,
                allowed=allowed,
            )
        )
    return Trace("language", (Example({"words": words(places)}, tuple(attentions)),))


def picture(prefix=("CLS",), pixels=True):
    drawn = np.random.default_rng(0).integers(0, 255, (12, 16, 3), dtype=np.uint8) if pixels else None
    return trace(softmax(1, 3, len(prefix) + 12), Text.of(["a", "red", "disc"]), Image((3, 4), (12, 16), drawn, prefix))


def sound(**given):
    return trace(softmax(1, 4, 50), Text.of(list("四月九日"), lang="zh"), Audio(50, 0.04, **given))


def series(split=40, columns=2):
    values = np.random.default_rng(0).normal(size=(48, columns))
    names = tuple(f"column {number}" for number in range(columns))
    return trace(softmax(1, 8, 48), Index(8), Series(1.7e9 // 86400 * 86400 + 3600 * np.arange(48), values, names, split))


def network(layers=3):
    nodes = [Node("source", "input", output=(1, 9)), Node("encoder", "Encoder")]
    edges, last = [], "source"
    for layer in range(layers):
        about = {"score": "ScaledDot", "normalise": "Softmax", "scope": "Everywhere", "heads": 4}
        nodes += [
            Node(f"encoder.{layer}.self", "attention", "encoder", output=(1, 9, 64), about=about),
            Node(f"encoder.{layer}.feedforward", "linear", "encoder", output=(1, 9, 64)),
        ]
        edges += [
            Edge(last, f"encoder.{layer}.self", (1, 9, 64), "query,key,value"),
            Edge(f"encoder.{layer}.self", f"encoder.{layer}.feedforward", (1, 9, 64)),
        ]
        last = f"encoder.{layer}.feedforward"
    nodes.append(Node("output", "linear", output=(1, 9, 13)))
    edges.append(Edge(last, "output", (1, 9, 64)))
    return Trace("network", (Example({}, ()),), Graph(tuple(nodes), tuple(edges)))


def raster(drawn, dpi=100):
    """What the figure looks like, (height, width, 3)."""
    page = io.BytesIO()
    drawn.savefig(page, format="png", dpi=dpi)
    return np.asarray(Picture.open(page).convert("RGB"))


def texts(drawn):
    """Everything that is written, ticks included, once the figure is laid out."""
    drawn.draw_without_rendering()
    return [text.get_text() for text in drawn.findobj(Written) if text.get_visible() and text.get_text()]


@cache
def translated():
    """The heat map of a translation, to look at and not to change."""
    return figure(translation(), "heatmap")


@cache
def peak(rows, columns):
    """The heat map of a matrix with a single weight in it, somewhere."""
    random = np.random.default_rng(0)
    weights = np.zeros((1, rows, columns), np.float32)
    weights[0, random.integers(rows), random.integers(columns)] = 1
    return figure(trace(weights, Index(rows), Index(columns), sums_to_one=False), "heatmap")
