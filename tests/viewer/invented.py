"""Small traces with known numbers, for pages and servers to show."""

import numpy as np

from regard.data.axis import Audio, Image, Index, Series, Text
from regard.viewer.trace import AttentionMap, Beams, Choice, Edge, Example, Frame, Graph, Node, Trace

ENGLISH = ("Tom", "chase", "Jerry", "<eos>")
CHINESE = ("汤姆", "追逐", "杰瑞", "<eos>")


def softmax(scores: np.ndarray) -> np.ndarray:
    grown = np.exp(scores - scores.max(-1, keepdims=True))
    return (grown / grown.sum(-1, keepdims=True)).astype(np.float32)


def weights(heads: int, queries: int, keys: int, seed: int = 0, sharp: float = 3.0) -> np.ndarray:
    return softmax(np.random.default_rng(seed).normal(size=(heads, queries, keys)) * sharp)


def causal(heads: int, places: int, seed: int = 0) -> np.ndarray:
    scores = np.random.default_rng(seed).normal(size=(heads, places, places)) * 2
    return softmax(np.where(np.tri(places, dtype=bool), scores, -np.inf))


def translation(seed: int = 0, layers: int = 2, heads: int = 4, name: str = "transformer") -> Trace:
    """English to Chinese, with everything that a trace can have."""
    source = Text(ENGLISH, "Tom chase Jerry", ((0, 3), (4, 9), (10, 15), None), (3,), "en")
    target = Text(CHINESE, "汤姆追逐杰瑞", ((0, 2), (2, 4), (4, 6), None), (3,), "zh-Hans")
    triangle = np.tri(4, dtype=bool)
    attentions = []
    for layer in range(layers):
        attentions.append(
            AttentionMap(f"encoder.layers.{layer}.self", "source", "source", weights(heads, 4, 4, seed + layer), layer)
        )
    for layer in range(layers):
        own = causal(heads, 4, seed + 10 + layer)
        attentions.append(AttentionMap(f"decoder.layers.{layer}.self", "target", "target", own, layer, allowed=triangle))
        attentions.append(
            AttentionMap(f"decoder.layers.{layer}.cross", "target", "source", weights(heads, 4, 4, seed + 20 + layer), layer)
        )
    steps = tuple(
        Choice(place, piece, -0.2 - place / 10, ((piece, -0.2 - place / 10), ("杰里", -1.9), ("猫", -2.5)))
        for place, piece in enumerate(CHINESE)
    )
    beams = Beams(
        parents=np.array([[0, 0], [0, 1], [0, 0], [0, 1]], np.int32),
        tokens=(("汤姆", "猫"), ("追逐", "追"), ("杰瑞", "杰里"), ("<eos>", "<eos>")),
        scores=np.array([[-0.2, -1.6], [-0.5, -2.0], [-0.9, -2.4], [-1.4, -3.0]], np.float32),
        ended=np.array([[False, False], [False, False], [False, False], [True, True]]),
        best=(3, 0),
        name=f"decoder.layers.{layers - 1}.cross",
        weights=weights(1, 8, 4, 5)[0].reshape(4, 2, 4).astype(np.float16),
    )
    film = tuple(
        Frame(
            step,
            3.0 - step / 400,
            {
                attention_map.name: weights(heads, 4, 4, step)
                for attention_map in attentions
                if attention_map.name.endswith("cross")
            },
        )
        for step in (0, 100, 200, 400)
    )
    return Trace(
        name,
        (Example({"source": source, "target": target}, tuple(attentions), steps, beams, "Tom chase Jerry"),),
        network(attentions),
        film,
    )


def network(attentions: list[AttentionMap]) -> Graph:
    """A network around some attentions."""
    nodes = [
        Node("encoder", "encoder", None, {"source": (1, 4)}, (1, 4, 64), 1000),
        Node("decoder", "decoder", None, {}, (1, 4, 64), 2000),
    ]
    edges = [Edge("encoder", "decoder", (1, 4, 64), "memory")]
    for attention_map in attentions:
        parent = attention_map.name.partition(".")[0]
        about = {"score": "scaled_dot", "normalise": "softmax", "scope": "everywhere", "heads": 4, "kernel": "reference"}
        nodes.append(
            Node(attention_map.name, "attention", parent, {"query": (1, 4, 64), "key": (1, 4, 64)}, (1, 4, 64), 500, about)
        )
        edges.append(
            Edge("encoder" if attention_map.key == "source" else "decoder", attention_map.name, (1, 4, 64), "key,value")
        )
    return Graph(tuple(nodes), tuple(edges))


def large(queries: int, keys: int, heads: int = 1, seed: int = 0) -> Trace:
    """A band along the diagonal with noise, and one peak of a single cell far from it."""
    generator = np.random.default_rng(seed)
    places = np.arange(queries)[:, None] * keys / queries
    scores = -np.abs(np.arange(keys)[None] - places) / 6
    matrices = []
    for _ in range(heads):
        made = softmax((scores + generator.normal(size=(queries, keys)) * 0.4).astype(np.float32))
        made[queries // 7] = 0
        made[queries // 7, keys * 5 // 6] = 1
        matrices.append(made.astype(np.float16))
    attention_map = AttentionMap("cross", "queries", "keys", np.stack(matrices))
    return Trace("large", (Example({"queries": Index(queries), "keys": Index(keys)}, (attention_map,)),))


def picture() -> Trace:
    """A caption that looks at a picture."""
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[16:48, 16:48] = (200, 120, 40)
    axes = {"caption": Text.of(["a", "square"], lang="en"), "patches": Image((4, 4), (64, 64), pixels, ("CLS",))}
    return Trace("caption", (Example(axes, (AttentionMap("decoder.cross", "caption", "patches", weights(2, 2, 17)),)),))


def forecast() -> Trace:
    """A forecast that looks back."""
    times = np.arange(48) * 3600.0 + 1_700_000_000
    values = np.sin(np.arange(48) / 24 * 2 * np.pi)[:, None].astype(np.float32)
    axes = {"hours": Series(times, values, ("load",), 36), "ahead": Index(12)}
    return Trace("forecast", (Example(axes, (AttentionMap("decoder.cross", "ahead", "hours", weights(1, 12, 48)),)),))


def sound() -> Trace:
    """Letters that look at half a second of a rising tone."""
    rate, frames = 8000, 50
    moments = np.arange(rate // 2) / rate
    wave = (0.3 * np.sin(2 * np.pi * (300 + 400 * moments) * moments)).astype(np.float32)
    bins = np.arange(40)[:, None]
    spectrogram = np.exp(-((bins - np.linspace(10, 30, frames)[None]) ** 2) / 8).astype(np.float32)
    axes = {"letters": Text.of(list("hello"), lang="en"), "frames": Audio(frames, 0.01, spectrogram, wave, rate)}
    return Trace("speech", (Example(axes, (AttentionMap("decoder.cross", "letters", "frames", weights(2, 5, frames)),)),))


def negative() -> Trace:
    """Weights of both signs, as a difference of two softmaxes has them."""
    first, second = weights(2, 5, 6, 1), weights(2, 5, 6, 2)
    attention_map = AttentionMap("mixer", "queries", "keys", first - second, sums_to_one=False)
    return Trace("differential", (Example({"queries": Index(5), "keys": Index(6)}, (attention_map,)),))
