"""A trace from its manifest and the arrays that it names: the way back from `manifest.py`.

The manifest has been held to the schema already; here every name must lead to an array.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from regard.data.axis import Array, Audio, Axis, Image, Index, Series, Text
from regard.viewer.io.errors import TraceError
from regard.viewer.metrics.quantise import restore
from regard.viewer.source import EIGHT_BITS, join_codes
from regard.viewer.trace import AttentionMap, Beams, Choice, Edge, Example, Faithfulness, Frame, Graph, Links, Node, Trace

MOST_CELLS = 1 << 27
"""A causal mask takes no place in the file, so the file's length does not bound what is asked for here."""


class Rebuild:
    """Makes the records of a trace; holds the arrays, and the causal masks that were made so far."""

    def __init__(self, arrays: Mapping[str, Array]):
        self.arrays = arrays
        self.causal: dict[tuple[int, int], Array] = {}

    def trace(self, manifest: Mapping[str, Any]) -> Trace:
        """The whole of it."""
        model, graph = manifest["model"], manifest["model"]["graph"]
        return Trace(
            name=model["name"],
            examples=tuple(self._example(entry, f"example {place}") for place, entry in enumerate(manifest["examples"])),
            graph=Graph(tuple(map(_node, graph["nodes"])), tuple(map(_edge, graph["edges"]))),
            training=tuple(
                self._frame(entry, f"training frame {place}") for place, entry in enumerate(manifest["training"])
            ),
            notes=tuple(manifest["notes"]),
        )

    def _array(self, name: str, where: str) -> Array:
        if name not in self.arrays:
            raise TraceError(f"{where}: the manifest names the array {name!r}, and the file has none of that name")
        return self.arrays[name]

    def _optional(self, entry: Mapping[str, Any], part: str, where: str) -> Array | None:
        name = entry.get(part)
        return None if name is None else self._array(name, f"{where}, {part}")

    def _example(self, entry: Mapping[str, Any], where: str) -> Example:
        axes = {name: self._axis(axis, f"{where}, axis {name!r}") for name, axis in entry["axes"].items()}
        attentions = tuple(
            self._attention_map(attention_map, axes, f"{where}, attention {attention_map['id']!r}")
            for attention_map in entry["attentions"]
        )
        beams = entry.get("beams")
        return Example(
            axes=axes,
            attentions=attentions,
            steps=tuple(map(_step, entry.get("steps", ()))),
            beams=None if beams is None else self._beams(beams, f"{where}, beams"),
            title=entry.get("title", ""),
            gold=_gold(entry.get("gold")),
            faithfulness=_faithfulness(entry.get("faithfulness")),
        )

    def _axis(self, entry: Mapping[str, Any], where: str) -> Axis:
        match entry["kind"]:
            case "text":
                spans = tuple(None if span is None else (span[0], span[1]) for span in entry["spans"])
                special = tuple(entry.get("special", ()))
                return Text(tuple(entry["pieces"]), entry["text"], spans, special, entry.get("lang"))
            case "audio":
                pictures = (self._optional(entry, "spectrogram", where), self._optional(entry, "sound", where))
                return Audio(entry["length"], entry["seconds_per_step"], *pictures, entry.get("rate"))
            case "image":
                (rows, columns), (height, width) = entry["grid"], entry["size"]
                pixels = self._optional(entry, "pixels", where)
                return Image((rows, columns), (height, width), pixels, tuple(entry.get("prefix", ())))
            case "series":
                times, values = (
                    self._array(entry["times"], f"{where}, times"),
                    self._array(entry["values"], f"{where}, values"),
                )
                return Series(times, values, tuple(entry["names"]), entry.get("split"), entry.get("dates", True))
            case _:
                return Index(entry["length"])

    def _attention_map(self, entry: Mapping[str, Any], axes: Mapping[str, Axis], where: str) -> AttentionMap:
        weights, source = self._weights(entry, where), entry.get("source", "")
        if weights is not None and entry.get("exact") is None:
            source = join_codes([EIGHT_BITS, source])
        measured = {
            name: self._array(array, f"{where}, statistic {name!r}") for name, array in entry.get("statistics", {}).items()
        }
        rows = entry.get("rows")
        return AttentionMap(
            name=entry["id"],
            query=entry["query"],
            key=entry["key"],
            weights=weights,
            layer=entry["layer"],
            allowed=self._allowed(entry, axes, where),
            rows=None if rows is None else tuple(rows),
            sums_to_one=entry["rows_sum_to"] == 1,
            source=source,
            statistics=measured,
            scores=self._optional(entry, "scores", where),
            values=self._optional(entry, "values", where),
        )

    def _weights(self, entry: Mapping[str, Any], where: str) -> Array | None:
        eight_bits, exact = self._optional(entry, "weights", where), self._optional(entry, "exact", where)
        if eight_bits is None:
            if exact is not None:
                raise TraceError(f"{where}: it has exact weights {entry['exact']!r}, and none in 8 bits; it needs both")
            return None
        if eight_bits.dtype != np.uint8:
            raise TraceError(f"{where}: the array {entry['weights']!r} must be uint8, got {eight_bits.dtype}")
        if len(eight_bits.shape) != 3 or len(eight_bits) != entry["heads"]:
            raise TraceError(
                f"{where}: weights of {entry['heads']} heads are (heads, queries, keys), got {eight_bits.shape}"
            )
        if exact is None:  # float16 tells the 256 levels apart, in half the room of float32
            levels = restore(np.arange(256, dtype=np.uint8), entry.get("scale", 1.0))
            return levels.astype(np.float16 if levels[-1] < np.finfo(np.float16).max else np.float32)[eight_bits]
        if exact.shape != eight_bits.shape:
            raise TraceError(
                f"{where}: its weights are {eight_bits.shape} in 8 bits and {exact.shape} exact; they must agree"
            )
        return exact

    def _allowed(self, entry: Mapping[str, Any], axes: Mapping[str, Axis], where: str) -> Array | None:
        if entry["mask"] == "full":
            return None
        if entry["mask"] == "given":
            allowed = self._optional(entry, "allowed", where)
            if allowed is None:
                raise TraceError(f"{where}: its mask is said to be given, and allowed names no array")
            return allowed
        if entry["query"] not in axes or entry["key"] not in axes:
            raise TraceError(
                f"{where}: its axes {entry['query']!r} and {entry['key']!r} are not among {', '.join(axes) or 'none'}"
            )
        return self._causal(len(axes[entry["query"]]), len(axes[entry["key"]]), where)

    def _causal(self, queries: int, keys: int, where: str) -> Array:
        if keys < queries:
            raise TraceError(f"{where}: a causal mask needs at least as many keys as queries, got {keys} and {queries}")
        if (queries, keys) not in self.causal:
            if sum(map(np.size, self.causal.values())) + queries * keys > MOST_CELLS:
                raise TraceError(f"{where}: its causal mask has {queries:,} x {keys:,} cells; {MOST_CELLS:,} are the most")
            self.causal[queries, keys] = np.tri(queries, keys, keys - queries, dtype=bool)
            self.causal[queries, keys].flags.writeable = False
        return self.causal[queries, keys]

    def _beams(self, entry: Mapping[str, Any], where: str) -> Beams:
        parents, scores, ended = (self._array(entry[part], f"{where}, {part}") for part in ("parents", "scores", "ended"))
        tokens, (step, row) = tuple(map(tuple, entry["tokens"])), entry["best"]
        return Beams(
            parents, tokens, scores, ended, (step, row), entry.get("attention"), self._optional(entry, "weights", where)
        )

    def _frame(self, entry: Mapping[str, Any], where: str) -> Frame:
        weights = {name: self._array(array, f"{where}, attention {name!r}") for name, array in entry["attentions"].items()}
        return Frame(entry["step"], entry.get("loss"), weights, entry.get("example", 0))


def _node(entry: Mapping[str, Any]) -> Node:
    inputs = {role: tuple(shape) for role, shape in entry["in"].items()}
    output = None if entry["out"] is None else tuple(entry["out"])
    return Node(entry["id"], entry["kind"], entry["parent"], inputs, output, entry["params"], entry["about"])


def _edge(entry: Mapping[str, Any]) -> Edge:
    return Edge(entry["from"], entry["to"], tuple(entry["shape"]), entry["role"])


def _faithfulness(entry: Mapping[str, Any] | None) -> Faithfulness | None:
    return None if entry is None else Faithfulness(**{**entry, "keys": tuple(entry["keys"])})


def _gold(entry: Mapping[str, Any] | None) -> Links | None:
    if entry is None:
        return None
    sure, possible = (tuple((query, key) for query, key in entry.get(part, ())) for part in ("sure", "possible"))
    return Links(entry["query"], entry["key"], sure, possible)


def _step(entry: Mapping[str, Any]) -> Choice:
    candidates = tuple((token, logprob) for token, logprob in entry.get("candidates", ()))
    return Choice(entry["query"], entry["token"], entry["logprob"], candidates)
