"""From the calls of a model of another library to examples: one for each row of its batch, or for each generated answer.

A beam search moves its rows: the token of an answer at step t was written from row beam_indices[answer, t], whose cache is
the answer's own past. So the rows of an answer's attention come from the row of each step.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch import nn

from regard.attention.statistics import BY_KEY
from regard.data.axis import Array, Axis, Text
from regard.viewer import source
from regard.viewer.huggingface.answers import Answer, answers
from regard.viewer.huggingface.decoding import choices
from regard.viewer.metrics.rollout import GRADIENT, is_gradient
from regard.viewer.record.assemble import half
from regard.viewer.record.external.axes import Reader
from regard.viewer.record.external.runs import ModelRun, ProductCall
from regard.viewer.trace import AttentionMap, Choice, Example

PICTURE = "{} over the picture"
"""Name of the part of an attention over text that looks at the patches of a picture."""
VISUAL, SOUND = ("vision", "visual", "image", "vit", "patch"), ("audio", "speech", "sound")
"""Words in the names of modules that read pictures or sound."""


@dataclass
class Draft:
    """One example in the making; `rows` are the rows of the batch at each step, None: the row `number` at all of them."""

    run: ModelRun
    reader: Reader
    number: int
    count: int
    answer: Answer | None = None
    axes: dict[str, Axis] = field(default_factory=dict)
    attentions: list[AttentionMap] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    layers: dict[tuple[str, str], int] = field(default_factory=dict)
    masks: dict[Any, Array | None] = field(default_factory=dict)

    def rows_of(self, calls: Sequence[ProductCall]) -> list[int] | None:
        """The row of each call that is this example's; None where its rows are no rows of the batch."""
        rows = []
        for call in calls:
            if self.answer is not None and call.step < len(self.answer.rows) and call.batch > max(self.answer.rows):
                rows.append(self.answer.rows[call.step])
            elif call.batch == self.count:
                rows.append(self.number)
            elif self.answer is not None and self.count % call.batch == 0:
                rows.append(self.number * call.batch // self.count)
            else:
                return None
        return rows


def examples(
    model: nn.Module, run: ModelRun, make_reader: Callable[[ModelRun], Reader], known: dict[str, Axis]
) -> tuple[list[Example], list[str]]:
    """Every example of a run, and notes about attentions that were left out."""
    reader = make_reader(run)
    texts: list[Answer | None] = [None]
    if run.output is not None:
        texts = list(answers(run.output, len(run.passes), reader.tokenizer))
    count = len(texts) if run.output is not None else _count_rows(run)
    drafts = []
    for number in range(count):
        draft = Draft(run, reader, number, count, texts[number] if run.output is not None else None)
        _fill(model, draft, known)
        drafts.append(draft)
    skipped = {name: batch for draft in drafts for name, batch in draft.skipped.items()}
    notes = []
    if skipped:
        name, parts = next(iter(skipped.items()))
        notes.append(
            f"{len(skipped)} attentions were left out, such as {name}: they ran on {parts} parts of a batch of {count}, "
            "such as windows of a picture."
        )
    return [_finish(draft, run) for draft in drafts if draft.attentions], notes


def _count_rows(run: ModelRun) -> int:
    """Rows of the batch: those of the model's inputs, else those of most of its attentions."""
    for given in run.passes[:1]:
        for name in ("input_ids", "decoder_input_ids", "pixel_values", "input_features", "input_values"):
            if name in given and (name != "pixel_values" or given[name].ndim == 4):
                return len(given[name])
    batches = [calls[0].batch for calls in run.calls.values()]
    return max(set(batches), key=batches.count)


def scale_gradients(attentions: list[AttentionMap]) -> list[AttentionMap]:
    """Gradients times weights relative to the largest of all layers, so that small ones can be seen beside weights."""
    largest = [
        float(np.abs(one.weights).max(initial=0.0)) for one in attentions if is_gradient(one) and one.weights is not None
    ]
    factor = max(largest, default=0.0) or 1.0
    return [
        replace(one, weights=one.weights / np.float32(factor)) if is_gradient(one) and one.weights is not None else one
        for one in attentions
    ]


def _finish(draft: Draft, run: ModelRun) -> Example:
    title = next((axis.text for axis in reversed(draft.axes.values()) if isinstance(axis, Text) and axis.text), "")
    if not title and draft.count > 1:
        title = f"row {draft.number}"
    steps: tuple[Choice, ...] = ()
    if draft.answer is not None and getattr(run.output, "scores", None):
        name = "target" if "target" in draft.axes else "tokens"
        ids = draft.answer.ids
        offset = draft.answer.prompt - 1
        after = draft.reader.write(ids[1:])
        if name == "target" or len(draft.axes[name]) == len(ids) - 1:
            steps = choices(run.output, draft.answer, after, offset, 8, draft.reader.tokenizer)
    return Example(draft.axes, tuple(scale_gradients(draft.attentions)), steps, title=title)


def _fill(model: nn.Module, draft: Draft, known: dict[str, Axis]) -> None:
    for name, calls in draft.run.calls.items():
        products = [call for call in calls if isinstance(call, ProductCall)]
        if draft.answer is not None:
            steps = max(1, len(draft.answer.rows))
            products = [call for call in products if call.step < steps]
        rows = draft.rows_of(products)
        if rows is None:
            draft.skipped[name] = products[0].batch
            continue
        if products[0].cross:  # its keys were there at once
            products, rows = _drop_repeats(products, rows)
        _add(model, draft, name, (products, rows), known)


def _drop_repeats(calls: list[ProductCall], rows: list[int]) -> tuple[list[ProductCall], list[int]]:
    """Calls over the same keys as the last one."""
    same = [place for place, call in enumerate(calls) if call.keys == calls[-1].keys]
    return [calls[place] for place in same], [rows[place] for place in same]


def _add(
    model: nn.Module, draft: Draft, name: str, heard: tuple[list[ProductCall], list[int]], known: dict[str, Axis]
) -> None:
    calls, rows = heard
    cross = calls[0].cross
    queries = sum(call.queries for call in calls)
    keys = calls[-1].keys if cross else max(queries, calls[0].keys if len(calls) == 1 else queries)
    ends = place_names(model, draft.run, name, cross)
    reader, number = draft.reader, (draft.number, draft.count)
    query_axis, query_places = reader.axis(ends[0], queries, number, draft.answer)
    key_axis, key_places = reader.axis(ends[1], keys, number, draft.answer)
    query_axis, key_axis = known.get(ends[0], query_axis), known.get(ends[1], key_axis)
    for end, axis, places in ((ends[0], query_axis, query_places), (ends[1], key_axis, key_places)):
        if len(axis) != len(places):
            raise ValueError(
                f"the axis {end!r} has {len(axis)} places, and {len(places)} were recorded; give as many as the model saw"
            )
    query_name, key_name = _place(draft.axes, ends[0], query_axis), _place(draft.axes, ends[1], key_axis)
    joined = join_calls(calls, rows, (queries, keys))
    layer = draft.layers[query_name, key_name] = draft.layers.get((query_name, key_name), -1) + 1
    attention_map = cut(joined, name, (query_name, key_name), (query_places, key_places), draft.masks)
    attention_map = replace(attention_map, layer=layer)
    draft.attentions.append(attention_map)
    gradient = join_gradients(calls, rows, (queries, keys))
    if gradient is not None and attention_map.weights is not None:
        product = attention_map.weights.astype(np.float32) * gradient[:, query_places][:, :, key_places]
        draft.attentions.append(
            replace(
                attention_map,
                name=name + GRADIENT,
                weights=product,
                sums_to_one=False,
                statistics={},
                scores=None,
                values=None,
            )
        )
    _add_picture(draft, attention_map, key_axis)


def _add_picture(draft: Draft, attention_map: AttentionMap, key_axis: Axis) -> None:
    """The part of an attention over text whose keys are the patches of a picture."""
    picture = draft.reader.picture_inside(key_axis, draft.number)
    if picture is None or attention_map.weights is None:
        return
    places, image = picture
    name = _place(draft.axes, "picture", image)
    allowed = attention_map.allowed
    draft.attentions.append(
        replace(
            attention_map,
            name=PICTURE.format(attention_map.name),
            key=name,
            weights=attention_map.weights[:, :, places],
            allowed=None if allowed is None else allowed[..., places],
            sums_to_one=False,
            statistics={},
            scores=None if attention_map.scores is None else attention_map.scores[:, :, places],
            values=None if attention_map.values is None else attention_map.values[:, places],
        )
    )


def _place(axes: dict[str, Axis], name: str, axis: Axis) -> str:
    """The name under which an axis stands: its own, or with the length where another is called so."""
    for free in (name, f"{name} ({len(axis)})"):
        if free not in axes:
            axes[free] = axis
            return free
        if len(axes[free]) == len(axis) and type(axes[free]) is type(axis):
            return free
    raise AssertionError("an axis that is named after its length has that length")


def place_names(model: nn.Module, run: ModelRun, name: str, cross: bool) -> tuple[str, str]:
    """Names of the query axis and the key axis of an attention, from its place in the model and what the model reads."""
    path = name.partition(" (")[0]
    part = half(model, path)
    words = path.lower()
    given = {kind for inputs in run.passes for kind in inputs}
    if part == "decoder":
        return "target", "source" if cross else "written"
    if any(word in words for word in VISUAL) and not cross:
        return "patches", "patches"
    if any(word in words for word in SOUND) and not cross:
        return "frames", "frames"
    if part == "encoder" and "decoder" in dict(model.named_modules()):
        return "source", "source"
    if getattr(getattr(model, "config", None), "is_encoder_decoder", False):
        return "source", "source"
    if cross:
        top = path.partition(".")[0]
        return f"{top} queries", f"{top} keys"
    if "input_ids" in given:
        return "tokens", "tokens"
    if "pixel_values" in given:
        return "patches", "patches"
    if "input_values" in given or "input_features" in given:
        return "frames", "frames"
    top = path.partition(".")[0]
    return top, top


@dataclass
class Joined:
    """All calls of an attention for one example: (heads, queries, keys), and what each query may see."""

    weights: Array | None
    rows: tuple[int, ...] | None
    allowed: Callable[[], Array | None]
    mask_key: Any
    statistics: dict[str, Array]
    scores: Array | None
    values: Array | None
    sums_to_one: bool
    source: str


def join_calls(calls: Sequence[ProductCall], rows: Sequence[int], sizes: tuple[int, int]) -> Joined:
    """The calls of an attention, each the row of its step, as one matrix."""
    places = _columns(calls, sizes[1])
    weights, scores = (
        [
            _spread(getattr(call, part)[row], columns, sizes[1], filling)
            for call, row, columns in _zip(calls, rows, places, part)
        ]
        for part, filling in (("weights", 0.0), ("scores", -np.inf))
    )
    chosen = calls[0].rows is not None
    names = tuple(row for call in calls for row in call.rows or ())
    statistics: dict[str, Array] = {}
    for name in calls[0].statistics:
        parts = [(call.statistics[name][row], columns) for call, row, columns in zip(calls, rows, places, strict=True)]
        if name in BY_KEY:
            statistics[name] = np.sum([_spread(part[:, None], columns, sizes[1])[:, 0] for part, columns in parts], axis=0)
        else:
            statistics[name] = np.concatenate([part for part, _ in parts], axis=1)
    values = calls[-1].values
    return Joined(
        np.concatenate(weights, axis=1) if weights and (names or not chosen) else None,
        names if chosen and names else None,
        lambda: _join_masks(calls, rows, places, sizes),
        tuple(
            (id(call.allowed), call.causal, call.queries, row if _varies(call) else 0)
            for call, row in zip(calls, rows, strict=True)
        ),
        statistics,
        np.concatenate(scores, axis=1) if scores else None,
        None if values is None or calls[-1].keys != sizes[1] else values[rows[-1]],
        all(call.sums_to_one for call in calls),
        source.join_codes(call.source for call in calls),
    )


def _varies(call: ProductCall) -> bool:
    return call.allowed is not None and len(call.allowed) > 1


def _zip(calls: Sequence[ProductCall], rows: Sequence[int], places: Sequence[slice], part: str) -> list[Any]:
    return [entry for entry in zip(calls, rows, places, strict=True) if getattr(entry[0], part) is not None]


def _columns(calls: Sequence[ProductCall], keys: int) -> list[slice]:
    """The keys of each call among all of them: a cache grows with the queries, one that slides has forgotten the first."""
    columns, seen = [], 0
    for call in calls:
        seen += call.queries
        if call.cross or len(calls) == 1:
            columns.append(slice(0, call.keys))
        else:
            columns.append(slice(max(0, seen - call.keys), seen))
    return columns


def _spread(part: Array, columns: slice, keys: int, filling: float = 0.0) -> Array:
    """(heads, queries, keys) with a part in its columns; places of a cache that nothing is written to are cut off."""
    width = columns.stop - columns.start
    if columns.start == 0 and width == keys == part.shape[2]:
        return part
    spread = np.full((*part.shape[:2], keys), filling, part.dtype)
    spread[:, :, columns] = part[:, :, :width]
    return spread


def _join_masks(
    calls: Sequence[ProductCall], rows: Sequence[int], places: Sequence[slice], sizes: tuple[int, int]
) -> Array | None:
    """(queries, keys) or (heads, queries, keys) of what may be seen; None: everything."""
    parts = []
    for call, row, columns in zip(calls, rows, places, strict=True):
        width = columns.stop - columns.start
        if call.allowed is not None:
            mask = call.allowed[row if len(call.allowed) > 1 else 0]
            mask = np.broadcast_to(mask, (len(mask), call.queries, mask.shape[-1]))
            mask = mask if mask.shape[-1] == call.keys else mask[..., : call.keys]
        elif call.causal:
            mask = np.tri(call.queries, call.keys, dtype=bool)[None]
        else:
            mask = np.ones((1, call.queries, call.keys), bool)
        parts.append(_spread(mask, columns, sizes[1], 0.0) if width != sizes[1] or mask.shape[2] != sizes[1] else mask)
    heads = max(len(part) for part in parts)
    joint = (
        parts[0]
        if len(parts) == 1
        else np.concatenate([np.broadcast_to(part, (heads, *part.shape[1:])) for part in parts], axis=1)
    )
    if joint.all():
        return None
    return joint[0] if len(joint) == 1 or (joint == joint[:1]).all() else joint


def join_gradients(calls: Sequence[ProductCall], rows: Sequence[int], sizes: tuple[int, int]) -> Array | None:
    """Gradients of the weights of all calls, or None where there are none."""
    if not any(call.gradient for call in calls):
        return None
    parts = []
    for call, row, columns in zip(calls, rows, _columns(calls, sizes[1]), strict=True):
        gradient = sum(call.gradient).float().cpu().numpy()[row] if call.gradient else np.zeros_like(call.weights[row])  # type: ignore[union-attr,index]
        parts.append(_spread(_widen(gradient, columns), columns, sizes[1]))
    return np.concatenate(parts, axis=1)


def _widen(gradient: Array, columns: slice) -> Array:
    missing = columns.stop - columns.start - gradient.shape[2]
    return np.pad(gradient, ((0, 0), (0, 0), (0, max(0, missing))))


def cut(
    joined: Joined, name: str, ends: tuple[str, str], places: tuple[list[int], list[int]], masks: dict[Any, Array | None]
) -> AttentionMap:
    """The attention of the places that are no padding."""
    queries, keys = places
    every = _covers(queries, joined.statistics["entropy"].shape[1]) and _covers(keys, joined.statistics["received"].shape[1])
    rows, weights = joined.rows, joined.weights
    if rows is not None and weights is not None:
        numbers = {place: number for number, place in enumerate(queries)}
        kept = [number for number, row in enumerate(rows) if row in numbers]
        rows = tuple(numbers[rows[number]] for number in kept)
        weights = weights[:, kept][:, :, keys] if rows else None
        rows = rows or None
    elif weights is not None and not every:
        weights = weights[:, queries][:, :, keys]
    key = joined.mask_key, tuple(places[0]), tuple(places[1])
    if key not in masks:
        allowed = joined.allowed()
        allowed = allowed if allowed is None or every else allowed[..., queries, :][..., keys]
        masks[key] = None if allowed is None or allowed.all() else allowed
    return AttentionMap(
        name,
        *ends,
        weights,
        allowed=masks[key],
        rows=rows,
        sums_to_one=joined.sums_to_one,
        source=joined.source,
        statistics={
            statistic: values[:, keys] if statistic in BY_KEY else values[:, queries]
            for statistic, values in joined.statistics.items()
        },
        scores=None if joined.scores is None or rows is not None else joined.scores[:, queries][:, :, keys],
        values=None if joined.values is None or joined.values.shape[1] <= max(keys) else joined.values[:, keys],
    )


def _covers(places: list[int], length: int) -> bool:
    return len(places) == length
