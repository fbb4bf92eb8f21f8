"""A forward pass of a transformers model: one example for each row of the batch."""

from typing import Any

from regard.data.axis import Axis, Text
from regard.viewer.arrays import array_of
from regard.viewer.huggingface.ids import placed
from regard.viewer.huggingface.reading import Reading
from regard.viewer.huggingface.stacks import Draft, Kept, Stacks, stacks_of
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Example

START, NEXT = "<start>", "<next>"


CAUSAL = (
    "No place ever looks at a later one, so this attention was taken for a causal one: what a key receives is compared with "
    "even attention to the keys before each query."
)
TOWERS = {"text_model_output": ("text.{}", "tokens"), "vision_model_output": ("vision.{}", "patches")}
"""Outputs of a model of two towers such as CLIP, with the names of their attentions and of their axis."""


def forward(output: Any, reading: Reading) -> tuple[list[Example], list[str]]:
    """Every row of the batch, and what there is to say about it."""
    if any(getattr(output, name, None) is not None for name in TOWERS):
        return _towers(output, reading)
    stacks, notes = stacks_of(output), list[str]()
    count = next(len(stack[0]) for stack in stacks if stack is not None)
    return [_example(stacks, reading, (number, count), notes) for number in range(count)], notes


def _towers(output: Any, reading: Reading) -> tuple[list[Example], list[str]]:
    """A text and a picture beside each other; a batch of each may have its own size, then their rows are examples apart."""
    towers, notes = {}, list[str]()
    for name in TOWERS:
        if getattr(output, name, None) is not None:
            towers[name] = stacks_of(getattr(output, name)).own
    counts = {name: len(layers[0]) for name, layers in towers.items()}
    together = len(set(counts.values())) == 1
    groups = [tuple(towers)] if together else [(name,) for name in towers]
    examples = []
    for group in groups:
        for number in range(counts[group[0]]):
            draft = Draft(reading.sums_to_one)
            for name in group:
                own = [array_of(layer[number], "attention") for layer in towers[name]]
                at, (pattern, side) = (number, counts[name]), TOWERS[name]
                find_axis = reading.source_axis if side == "tokens" else reading.patches_axis
                draft.single(own, *find_axis(at, own[0].shape[2]), pattern, side)
            notes += [CAUSAL] if draft.causal and CAUSAL not in notes else []
            examples.append(Example(draft.axes, tuple(draft.attentions)))
    return examples, notes


def _example(stacks: Stacks, reading: Reading, at: tuple[int, int], notes: list[str]) -> Example:
    encoder, own, cross = (stack and [array_of(layer[at[0]], "attention") for layer in stack] for stack in stacks)
    draft = Draft(reading.sums_to_one)
    if stacks.single:
        assert own is not None, "stacks_of refuses an output without any"
        draft.single(own, *reading.source_axis(at, own[0].shape[2]))
        notes += [CAUSAL] if draft.causal and CAUSAL not in notes else []
        return Example(draft.axes, tuple(draft.attentions))
    columns: Kept = []
    if encoder or cross:
        source, columns = reading.source_axis(at, (encoder or cross)[0].shape[2])
        draft.encoder(encoder, source, columns)
    if own or cross:
        target, written, rows = _texts(reading, at, (own or cross)[0].shape[1])
        draft.decoder(own, target, written, rows)
        draft.cross(cross, rows, columns)
    return Example(draft.axes, tuple(draft.attentions))


def _texts(reading: Reading, at: tuple[int, int], length: int) -> tuple[Axis, Axis, Kept]:
    """Labels of the decoder's outputs and inputs: the same tokens, one position apart."""
    if reading.target is not None and reading.written is not None:
        raise TraceError("target and written are the same tokens, one place on: give one of them")
    known, what = (reading.target, "target") if reading.written is None else (reading.written, "written")
    axis, kept = placed(known, at, length, reading.tokenizer, reading.languages[1], what)
    if not isinstance(axis, Text):
        return axis, axis, kept
    return (axis, _before(axis), kept) if reading.written is None else (_after(axis), axis, kept)


def _before(axis: Text) -> Text:
    """Each token's predecessor; that of the first is whatever the model starts with."""
    special = (0, *(place + 1 for place in axis.special if place + 1 < len(axis)))
    return Text((START, *axis.pieces[:-1]), axis.text, (None, *axis.spans[:-1]), special, axis.lang)


def _after(axis: Text) -> Text:
    """Each token's successor; that of the last is not known."""
    special = (*(place - 1 for place in axis.special if place), len(axis) - 1)
    return Text((*axis.pieces[1:], NEXT), axis.text, (*axis.spans[1:], None), special, axis.lang)
