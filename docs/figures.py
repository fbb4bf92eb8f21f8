"""Draw a sample of every static figure, from data made here.

python docs/figures.py [FOLDER]        writes docs/figures/*.png and *.svg

The weights are drawn, not learned: they show what the figures show, and nothing about any model.
"""

import sys
from pathlib import Path

import numpy as np

from regard.data.axis import Array, Audio, Image, Index, Series, Text
from regard.viewer.trace import AttentionMap, Edge, Example, Graph, Node, Trace

RANDOM = np.random.default_rng(0)


def main(folder: Path, dpi: float = 120) -> None:
    """Write every sample into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    samples = {
        "heatmap.svg": translation().figure("heatmap"),
        "lines.svg": translation().figure("lines", width="page"),
        "causal.png": language(80).figure("heatmap"),
        "strength.svg": language(80).figure("strength", width="page"),
        "heads.png": encoder(layers=6, heads=8).figure("heads", width="page"),
        "picture.png": caption().figure("overlay", query=[2, 6]),
        "sound.png": speech().figure("overlay"),
        "series.png": load().figure("overlay", query=[0, 6, 12, 18], width="page"),
        "graph.svg": network().figure("graph"),
    }
    for name, drawn in samples.items():
        drawn.savefig(folder / name, dpi=dpi)


def softmax(scores: Array) -> Array:
    """Scores as weights."""
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def translation() -> Trace:
    """A sentence whose clause moves to the front in Chinese."""
    words = ["The", "quick", "cat", "that", "Tom", "chases", "never", "catches", "the", "mouse", ".", "<eos>"]
    english = Text.of(words, special=(11,), lang="en")
    chinese = Text.of(["汤姆", "追逐", "的", "敏捷", "猫", "从不", "抓住", "老鼠", "。", "<eos>"], special=(9,), lang="zh")
    scores = RANDOM.normal(scale=0.8, size=(4, 10, 12))
    for query, key in enumerate([4, 5, 3, 1, 2, 6, 7, 9, 10, 11]):
        scores[:, query, key] += 4
    attention_map = AttentionMap("decoder.cross", "target", "source", softmax(scores))
    return Trace("translation", (Example({"source": english, "target": chinese}, (attention_map,)),))


def language(places: int) -> Trace:
    """A causal model that looks nearby, at the first token, and at one token that it cannot forget."""
    allowed = np.tri(places, dtype=bool)
    scores = RANDOM.normal(scale=1.5, size=(2, places, places))
    scores -= 0.15 * np.abs(np.arange(places)[:, None] - np.arange(places))
    scores[:, :, [0, 33]] += 2.5
    weights = softmax(np.where(allowed, scores, -1e9)) * allowed
    axes = {"tokens": Text.of([f"tok{place}" for place in range(places)])}
    return Trace(
        "language", (Example(axes, (AttentionMap("decoder.0.self", "tokens", "tokens", weights, allowed=allowed),)),)
    )


def encoder(layers: int, heads: int) -> Trace:
    """Heads that look at themselves, one before, one after, at the ends, or nowhere in particular."""
    attentions = []
    for layer in range(layers):
        scores = RANDOM.normal(scale=0.5 + 0.3 * layer, size=(heads, 24, 24))
        for head in range(heads):
            habit = (head + layer) % 8
            if habit < 4:
                scores[head] += 4 * np.eye(24, k=(0, 1, -1, 2)[habit])
            elif habit > 5:
                scores[head][:, 0 if habit == 6 else -1] += 4
        attentions.append(AttentionMap(f"encoder.{layer}.self", "source", "source", softmax(scores), layer=layer))
    return Trace("encoder", (Example({"source": Text.of([f"word{place}" for place in range(24)])}, tuple(attentions)),))


def caption() -> Trace:
    """A red disc and a green square, and the words that name them."""
    down, across = np.mgrid[:96, :96]
    pixels = np.stack([150 + 0 * down, 160 + down // 3, 210 - down // 2], -1).astype(np.uint8)
    pixels[(down - 30) ** 2 + (across - 26) ** 2 < 225] = (200, 40, 40)
    pixels[56:82, 52:82] = (30, 150, 60)
    words = Text.of(["<bos>", "a", "red", "disc", "above", "a", "green", "square"], special=(0,), lang="en")
    middles = [None, None, (30, 26), (30, 26), (48, 44), None, (69, 67), (69, 67)]
    row, column = np.mgrid[:12, :12] * 8 + 4
    scores = RANDOM.normal(scale=0.5, size=(8, 1 + 144))
    scores[:, 0] = 2
    for query, middle in enumerate(middles):
        if middle is not None:
            scores[query, 1:] += 5 - ((row - middle[0]) ** 2 + (column - middle[1]) ** 2).ravel() / 200
    axes = {"words": words, "patches": Image((12, 12), (96, 96), pixels, ("CLS",))}
    return Trace("caption", (Example(axes, (AttentionMap("decoder.cross", "words", "patches", softmax(scores)[None]),)),))


def speech() -> Trace:
    """Four syllables with harmonics, and the characters they are written as."""
    frames, high = np.linspace(0, 1, 480)[None], np.linspace(0, 1, 80)[:, None]
    spectrogram = 0.01 * RANDOM.random((80, 480))
    moments = np.linspace(0, 1, 19_200, endpoint=False)  # 2.4 s at 8 kHz, so the spectrogram reaches up to 4 kHz
    sound = np.zeros(len(moments))
    for number, (first, last) in enumerate([(0.05, 0.2), (0.22, 0.4), (0.45, 0.62), (0.66, 0.9)]):
        loud, louder = (np.sin(np.pi * np.clip((at - first) / (last - first), 0, 1)) for at in (frames, moments))
        for harmonic in range(1, 6):
            line = (0.08 + 0.03 * number) * harmonic + 0.02 * np.sin(9 * frames)
            spectrogram += loud * np.exp(-(((high - line) / 0.015) ** 2)) / harmonic
            sound += louder * np.sin(2 * np.pi * 2.4 * 4000 * (0.08 + 0.03 * number) * harmonic * moments) / harmonic / 5
    scores = np.stack([-(((np.arange(120) / 120 - middle) / 0.03) ** 2) / 2 for middle in (0.12, 0.31, 0.53, 0.78, 0.97)])
    weights = softmax(scores + RANDOM.normal(scale=0.4, size=scores.shape))[None]
    text = Text.of(["四", "月", "九", "日", "<eos>"], special=(4,), lang="zh")
    axes = {"characters": text, "frames": Audio(120, 0.02, np.log1p(20 * spectrogram), sound.astype(np.float32), 8000)}
    return Trace("speech", (Example(axes, (AttentionMap("decoder.cross", "characters", "frames", weights),)),))


def load() -> Trace:
    """A week of hours and a day ahead, each hour of which looks at the same hour of days before."""
    hours = np.arange(24 * 9)
    day = 2 * np.pi * hours / 24
    values = np.stack([10 + 3 * np.sin(day) + RANDOM.normal(scale=0.3, size=len(hours)), 6 + 1.5 * np.cos(day)], 1)
    before = (hours[None] - (192 + np.arange(24)[:, None])) % 24
    near = np.exp(-((np.minimum(before, 24 - before) / 1.5) ** 2)) * (1 + hours / 96)
    scores = np.where(hours < 192, near + RANDOM.normal(scale=0.3, size=near.shape), -1e9)
    axes = {"hours ahead": Index(24), "hours": Series(1704067200.0 + 3600 * hours, values, ("load", "heat"), split=192)}
    return Trace("load", (Example(axes, (AttentionMap("decoder.cross", "hours ahead", "hours", softmax(scores)[None]),)),))


def network() -> Trace:
    """A Transformer of six layers, as the recorder sees one."""
    nodes, edges = [], []
    for side, kinds in (("encoder", ("self", "feedforward")), ("decoder", ("self", "cross", "feedforward"))):
        last = "source" if side == "encoder" else "target"
        nodes += [Node(last, "input", output=(1, 9)), Node(f"{side}.embedding", "embedding", output=(1, 9, 512))]
        edges.append(Edge(last, f"{side}.embedding", (1, 9)))
        last = f"{side}.embedding"
        for layer in range(6):
            for kind in kinds:
                name = f"{side}.{layer}.{kind}"
                about = {"score": "ScaledDot", "normalise": "Softmax", "heads": 8} if kind != "feedforward" else {}
                nodes.append(Node(name, "attention" if about else "feedforward", output=(1, 9, 512), about=about))
                edges.append(Edge(last, name, (1, 9, 512), {"self": "query,key,value", "cross": "query"}.get(kind, "")))
                if kind == "cross":
                    edges.append(Edge("encoder.5.feedforward", name, (1, 9, 512), "key,value"))
                last = name
    nodes.append(Node("output", "linear", output=(1, 9, 8000)))
    edges.append(Edge("decoder.5.feedforward", "output", (1, 9, 512)))
    return Trace("transformer", (Example({}, ()),), Graph(tuple(nodes), tuple(edges)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "figures")
