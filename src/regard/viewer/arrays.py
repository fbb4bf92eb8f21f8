"""Traces from arrays of attention weights of any model: `Trace.from_arrays`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regard.data.axis import Array, Audio, Axis, Image, Index, Series, Text
from regard.viewer.gold import parse_links
from regard.viewer.io.check import check
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import AttentionMap, Example, Trace

CAUSAL = "causal"
AXES = (Text, Audio, Image, Series, Index)


def from_arrays(
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
) -> Trace:
    """One example from arrays or tensors on any device: (queries, keys), with heads before them, and layers before those.

        from_arrays(weights, query="汤姆 追逐 杰瑞".split(), key=["Tom", "chases", "Jerry"])
        from_arrays({"encoder": a, "cross": b}, axes={"source": source, "target": target},
                    query={"encoder": "source", "cross": "target"}, key="source")

    A query or key is a list of tokens, an axis, a number of places, or nothing: then places are numbered. Without a key, and
    with as many keys as queries, this is self-attention. With `axes` queries and keys name one of them, all attentions the
    same or each its own; by default the only axis of the right length. `mask` is True where
    a query may see a key, or "causal". `mask` and `scores` of several attentions are by name. `lang` is that of token lists.
    `gold` are gold links, [(query, key), ...], or {"sure": ..., "possible": ...}; with several attentions they are on the
    axes of the last cross-attention, or on those of `Links`.
    """
    if axes is None and isinstance(weights, Mapping):
        raise TraceError("several attentions need axes={name: tokens or axis, ...}, and each a query and a key among them")
    if not isinstance(weights, Mapping):
        weights = {name: weights}
    layers = {name: _layers(name, value) for name, value in weights.items()}
    notes = [
        note for name, value in weights.items() for note in describe_reading(name, value, layers[name], _of(mask, name))
    ]
    if not layers:
        raise TraceError("a trace needs the weights of at least one attention, got none")
    if axes is None:
        sides, query, key = _pair(next(iter(layers.values())), name, query, key, lang)
    else:
        sides = {name: axis(value, f"axis {name!r}", lang) for name, value in axes.items()}
    attentions: list[AttentionMap] = []
    for path, arrays in layers.items():
        ends = (_side(query, path, arrays[0].shape[1], sides, "query"), _side(key, path, arrays[0].shape[2], sides, "key"))
        value = (_of(mask, path), _of(scores, path))
        attentions += _attention_maps(
            path,
            arrays,
            ends,
            value,
            sums_to_one,
            sum((attention_map.query, attention_map.key) == ends for attention_map in attentions),
        )
    gold_links = None if gold is None else parse_links(gold, attentions)
    trace = Trace(name, (Example(sides, tuple(attentions), title=title, gold=gold_links),), notes=tuple(notes))
    check(trace)
    return trace


def array_of(value: Any, what: str) -> Array:
    """float16 or float32 from a tensor on any device, an array or nested lists."""
    if hasattr(value, "detach"):
        value = value.detach()
        half = str(value.dtype) == "torch.float16"
        value = (value if half else value.float()).cpu().numpy()
    try:
        array = np.asarray(value)
    except ValueError:
        raise TraceError(f"{what}: rows of different lengths; an array needs them all of one length") from None
    if array.dtype.kind not in "fbiu":
        raise TraceError(f"{what}: needs an array or tensor of numbers, got {type(value).__name__} of {array.dtype}")
    return array if array.dtype in (np.float16, np.float32) else array.astype(np.float32)


def axis(value: Any, what: str, lang: str | None = None) -> Axis:
    """An axis as it is, a list of tokens, or a number of places."""
    if isinstance(value, AXES):
        return value
    if isinstance(value, str):
        raise TraceError(f"{what}: needs a list of tokens, got the text {value!r}; split it as the model does")
    if isinstance(value, int) and not isinstance(value, bool):
        return Index(value)
    if isinstance(value, Sequence) and all(isinstance(token, str) for token in value):
        return Text.of(value, lang=lang)
    raise TraceError(f"{what}: needs a list of tokens, an axis or a number of places, got {type(value).__name__}")


def _layers(name: str, value: Any) -> list[Array]:
    """(heads, queries, keys) for each layer."""
    array = array_of(value, f"attention {name!r}")
    if not 2 <= array.ndim <= 4:
        raise TraceError(
            f"attention {name!r}: needs (queries, keys), (heads, queries, keys) or (layers, heads, queries, keys), "
            f"got shape {array.shape}"
        )
    return list(array.reshape((1,) * (4 - array.ndim) + array.shape))


def describe_reading(name: str, value: Any, layers: list[Array], mask: Any) -> list[str]:
    """Notes on how an array was read: its first axis may be a batch, and its weights look causal without a mask."""
    shape, notes = np.shape(value.detach().cpu() if hasattr(value, "detach") else value), []
    if len(shape) == 4 and shape[0] > 1:
        notes.append(f"{name}: {shape} was read as {shape[0]} layers; of a batch, give one example at a time.")
    if len(shape) == 3 and shape[0] > 1:
        notes.append(f"{name}: {shape} was read as {shape[0]} heads; of a batch, give one example at a time.")
    queries, keys = layers[0].shape[1:] if layers else (0, 0)
    if mask is None and queries == keys > 1 and not any(np.triu(layer, 1).any() for layer in layers):
        notes.append(
            f"{name}: no query looks at a later key, as with a causal mask, and no mask was given; with mask='causal' what "
            "a key receives is compared with what it could receive."
        )
    return notes


def _pair(arrays: list[Array], name: str, query: Any, key: Any, lang: str | None) -> tuple[dict[str, Axis], str, str]:
    """The axes of one attention, and which of them are its queries and its keys."""
    if not arrays:
        raise TraceError(f"attention {name!r}: needs at least one layer, got none")
    _, queries, keys = arrays[0].shape
    if key is None and queries == keys:
        return {"tokens": axis(queries if query is None else query, "query", lang)}, "tokens", "tokens"
    if key is None and query is not None:
        raise TraceError(
            f"attention {name!r} has {keys} keys and {queries} queries, so it is no self-attention; say key=..."
        )
    ends = {
        "queries": axis(queries if query is None else query, "query", lang),
        "keys": axis(keys if key is None else key, "key", lang),
    }
    return ends, "queries", "keys"


def _side(said: Any, name: str, length: int, sides: Mapping[str, Axis], role: str) -> str:
    """The name of the axis that an attention's queries, or keys, lie on."""
    named_side = _of(said, name)
    if named_side is None:
        fitting = [name for name, side in sides.items() if len(side) == length]
        if len(fitting) == 1:
            return fitting[0]
        raise TraceError(
            f"attention {name!r} has a {role} axis of {length} places, and {len(fitting)} of the axes "
            f"{', '.join(sides)} are that long; say {role}={{{name!r}: ...}}"
        )
    if not isinstance(named_side, str):
        raise TraceError(
            f"attention {name!r}: with axes={{...}}, {role} is the name of one of them, got {type(named_side).__name__}"
        )
    return named_side


def _of(said: Any, name: str) -> Any:
    return said.get(name) if isinstance(said, Mapping) else said


def _attention_maps(
    name: str, arrays: list[Array], ends: tuple[str, str], value: tuple[Any, Any], sums_to_one: bool, first: int
) -> list[AttentionMap]:
    """One look for each layer; `first` layers of the same axes came before."""
    mask, scores = value
    scored = None if scores is None else _layers(f"{name}, scores", scores)
    if scored is not None and len(scored) != len(arrays):
        raise TraceError(f"attention {name!r}: {len(arrays)} layers of weights and {len(scored)} of scores; they must agree")
    attentions = []
    for layer, weights in enumerate(arrays):
        attentions.append(
            AttentionMap(
                name=name if len(arrays) == 1 else f"{name}.{layer}",
                query=ends[0],
                key=ends[1],
                weights=weights,
                layer=first + layer,
                allowed=_allowed(mask, weights, name),
                sums_to_one=sums_to_one,
                scores=None if scored is None else scored[layer],
            )
        )
    return attentions


def _allowed(mask: Any, weights: Array, name: str) -> Array | None:
    if mask is None:
        return None
    queries, keys = weights.shape[1:]
    if isinstance(mask, str):
        if mask != CAUSAL or queries != keys:
            wanted = f"mask is an array or {CAUSAL!r}, which needs as many keys as queries"
            raise TraceError(f"attention {name!r}: {wanted}, got {mask!r} for {queries} queries and {keys} keys")
        return np.tri(queries, dtype=bool)
    array = np.asarray(mask.detach().cpu().numpy() if hasattr(mask, "detach") else mask)
    if array.dtype != bool:
        raise TraceError(f"attention {name!r}: a mask is boolean, True where a query may see a key, got {array.dtype}")
    return array
