"""Trace: attention weights and statistics of a model on some inputs, its graph and its training; all views read one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from regard.data.axis import Array, Axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class AttentionMap:
    """One attention on one example: where each of its queries looked.

    `weights` is (heads, queries, keys), or None where only statistics were recorded; with `rows` it has the rows of these
    queries alone. `allowed` is True where a query may see a key, of all queries: (queries, keys) or (heads, queries, keys),
    None: everywhere. `source` says how the weights came about, `statistics` were measured in float32 while the model ran,
    `scores` are those before they were normalised, `values` the length of each value vector, (heads, keys).
    """

    name: str
    query: str
    key: str
    weights: Array | None
    layer: int = 0
    allowed: Array | None = None
    rows: tuple[int, ...] | None = None
    sums_to_one: bool = True
    source: str = "given"
    statistics: Mapping[str, Array] = field(default_factory=dict)
    scores: Array | None = None
    values: Array | None = None

    def __repr__(self) -> str:
        shape = "no weights" if self.weights is None else f"weights {self.weights.shape}"
        return f"AttentionMap({self.name!r}, {self.query} x {self.key}, {shape})"


@dataclass(frozen=True)
class Choice:
    """One step of decoding: the token that was written, how likely it was, and what else could have been."""

    query: int
    token: str
    logprob: float
    candidates: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, eq=False)
class Beams:
    """A beam search, step by step and row by row: (steps, width). A parent of -1 is nobody: the row is empty.

    `parents` are rows of the step before, `scores` sums of log-probabilities. `ended` is True where a hypothesis finished.
    `best` is the row of the last step on the way to the answer, as (step, row). `weights`, (steps, width, keys), is what
    each row looked at, the mean of the heads of the attention called `name`.
    """

    parents: Array
    tokens: tuple[tuple[str, ...], ...]
    scores: Array
    ended: Array
    best: tuple[int, int]
    name: str | None = None
    weights: Array | None = None


@dataclass(frozen=True)
class Links:
    """Links that people made between places of two axes, as (query, key): those that are `sure`, and others that may be."""

    query: str
    key: str
    sure: tuple[tuple[int, int], ...]
    possible: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Faithfulness:
    """Change of a model's output where the `keys` of the largest weight are hidden, beside that without others at random.

    `keys` are places of an axis. `largest` is the change without them, `random` the mean without as many others, with its
    standard deviation over some trials. The measure is "probability", a total variation distance from 0 to 1, or "state",
    the relative length of the change of the last state.
    """

    axis: str
    keys: tuple[int, ...]
    largest: float
    random: float
    deviation: float
    trials: int
    measure: str = "probability"


@dataclass(frozen=True, eq=False, repr=False)
class Example:
    """One input: its axes by name, what every attention did, how it was decoded, and `gold`, what it should have linked.

    `faithfulness` says how much the output changed where the keys of the largest weight were hidden.
    """

    axes: Mapping[str, Axis]
    attentions: tuple[AttentionMap, ...]
    steps: tuple[Choice, ...] = ()
    beams: Beams | None = None
    title: str = ""
    gold: Links | None = None
    faithfulness: Faithfulness | None = None

    def __repr__(self) -> str:
        axes = ", ".join(f"{name} {len(axis)}" for name, axis in self.axes.items())
        return f"Example({self.title!r}, {axes}: {', '.join(attention_map.name for attention_map in self.attentions)})"


@dataclass(frozen=True, eq=False)
class Frame:
    """One moment of training: the weights that each attention, by name, had on an example then."""

    step: int
    loss: float | None
    weights: Mapping[str, Array]
    example: int = 0


@dataclass(frozen=True)
class Node:
    """A module that ran. `kind` is "attention" or what it is otherwise; shapes are those of this run.

    `about` is what an attention says of itself: score, normalise, scope, heads, kernel.
    """

    id: str
    kind: str
    parent: str | None = None
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    output: tuple[int, ...] | None = None
    parameters: int = 0
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Edge:
    """A tensor that went from one module to another."""

    start: str
    end: str
    shape: tuple[int, ...]
    role: str = ""


@dataclass(frozen=True)
class Graph:
    """The network as it ran."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()


def format_count(number: int, noun: str) -> str:
    """Number and noun: 1 example, 2 examples."""
    return f"{number} {noun}{'s' if number != 1 else ''}"


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Attention weights of a model on some inputs, the network's graph, and, with `training`, the weights along training.

    trace = Trace.from_arrays(weights, query="汤姆 追逐 杰瑞".split(), key=["Tom", "chases", "Jerry"])
    trace.to_html("page.html")
    """

    name: str
    examples: tuple[Example, ...]
    graph: Graph = Graph()
    training: tuple[Frame, ...] = ()
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        maps = sum(len(example.attentions) for example in self.examples)
        parts = [format_count(len(self.examples), "example"), format_count(maps, "attention")]
        if self.training:
            parts.append(format_count(len(self.training), "training frame"))
        return f"Trace({self.name!r}, {', '.join(parts)})"

    def example(self, number: int = 0) -> Example:
        """One of the examples, counted from 0."""
        if not -len(self.examples) <= number < len(self.examples):
            raise IndexError(f"the trace {self.name!r} has {len(self.examples)} examples, asked for number {number}")
        return self.examples[number]

    def attention(self, name: str | None = None, example: int = 0) -> AttentionMap:
        """One attention of an example; without a name the last over another axis, or simply the last."""
        attentions = self.example(example).attentions
        if not attentions:
            raise KeyError(f"example {example} of the trace {self.name!r} has no attention")
        if name is None:
            return next(
                (attention for attention in reversed(attentions) if attention.query != attention.key), attentions[-1]
            )
        for attention in attentions:
            if attention.name == name:
                return attention
        known = ", ".join(attention_map.name for attention_map in attentions)
        raise KeyError(f"no attention of this trace is called {name!r}; there are {known}")

    @classmethod
    def from_arrays(
        cls,
        weights: Any,
        query: Any = None,
        key: Any = None,
        *,
        axes: Mapping[str, Any] | None = None,
        name: str = "attention",
        mask: Any = None,
        scores: Any = None,
        sums_to_one: bool = True,
        title: str = "",
        lang: str | None = None,
        gold: Any = None,
    ) -> "Trace":
        """Build a trace from arrays of attention weights of any model; see `regard.viewer.arrays.from_arrays`."""
        from regard.viewer.arrays import from_arrays

        options = {"mask": mask, "scores": scores, "sums_to_one": sums_to_one, "title": title, "lang": lang, "gold": gold}
        return from_arrays(weights, query, key, axes=axes, name=name, **options)

    @classmethod
    def from_huggingface(
        cls,
        output: Any,
        tokenizer: Any = None,
        *,
        source: Any = None,
        target: Any = None,
        written: Any = None,
        languages: tuple[str | None, str | None] = (None, None),
        candidates: int = 8,
        sums_to_one: bool = True,
        name: str = "",
    ) -> "Trace":
        """Build a trace from the output of a transformers model; see `regard.viewer.huggingface.from_huggingface`."""
        from regard.viewer.huggingface import from_huggingface

        sides = {"source": source, "target": target, "written": written, "languages": languages}
        return from_huggingface(output, tokenizer, **sides, candidates=candidates, sums_to_one=sums_to_one, name=name)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Trace":
        """Open a trace file; large ones open at once, since only what is looked at is read."""
        from regard.viewer.io import load

        return load(path)

    def save(self, path: str | PathLike[str], *, exact: bool = True) -> Path:
        """Check this trace and write it to `name.attn.safetensors`; without exact weights it takes a third of the room."""
        from regard.viewer.io import save

        return save(self, path, exact=exact)

    def to_html(
        self, path: str | PathLike[str], *, budget: str | int = "16MB", state: str = "", language: str | None = None
    ) -> Path:
        """Write the page about this trace, one file that needs nothing else; what the budget leaves out it lists."""
        from regard.viewer.html.view import View

        return View([self], state, language).save(Path(path), budget)

    def figure(
        self,
        kind: Literal["heatmap", "heads", "lines", "strength", "overlay", "graph"] = "heatmap",
        *,
        attention: str | None = None,
        head: int | None = None,
        example: int = 0,
        width: Literal["column", "page"] = "column",
        palette: str = "cividis",
        text: Literal["text", "path"] = "text",
        **options: Any,
    ) -> "Figure":
        """Plot a figure for print, with the options of its kind; see `regard.viewer.figure`."""
        from regard.viewer.figure import figure

        subject: dict[str, Any] = {"attention": attention, "head": head, "example": example}
        return figure(self, kind, **subject, width=width, palette=palette, text=text, **options)

    def strength(self, curve: str = "received", attention: str | None = None, example: int = 0) -> Array:
        """A curve of every head: received (heads, keys), or largest, effective, focus, spread, sink (heads, queries)."""
        from regard.viewer.metrics.strength import summary

        curves = summary(self.attention(attention, example), self.example(example).axes).curves
        if curve not in curves:
            raise KeyError(f"there is no curve {curve!r}; there are {', '.join(curves)}")
        return curves[curve]

    def entropy(self, attention: str | None = None, example: int = 0) -> Array:
        """The entropy of every row in nats, (heads, queries): 0 where one key has it all."""
        return np.log(np.maximum(self.strength("effective", attention, example), 1))

    def with_gold(self, gold: Any, example: int = 0) -> "Trace":
        """Trace with gold links of people, [(query, key), ...] or `Links`, beside what an example linked."""
        from regard.viewer.gold import add_gold

        return add_gold(self, gold, example)

    def alignment_error(self, attention: str | None = None, example: int = 0) -> Array:
        """The alignment error rate of every head against the example's gold links, (heads,): 0 is perfect."""
        from regard.viewer.gold import alignment_errors

        return alignment_errors(self, attention, example)

    def rollout(self, group: tuple[str, str] | None = None, example: int = 0) -> Array:
        """Attention rollout: the share of each input in the last layer of a group of attentions, (queries, keys)."""
        from regard.viewer.metrics.rollout import of

        return of(self, group, example)

    def flow(self, group: tuple[str, str] | None = None, example: int = 0) -> Array:
        """The most that can pass from each input to the last layer of a group of attentions, (queries, keys)."""
        from regard.viewer.metrics.flow import of

        return of(self, group, example)
