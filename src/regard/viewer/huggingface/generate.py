"""Traces of `generate` of transformers: one example for each answer."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from regard.data.axis import Array
from regard.viewer.arrays import array_of
from regard.viewer.huggingface.answers import Answer, answers, joined
from regard.viewer.huggingface.decoding import choices, tree
from regard.viewer.huggingface.ids import line_of, placed
from regard.viewer.huggingface.reading import Reading
from regard.viewer.huggingface.stacks import Draft, Kept, Stacks, stacks_of
from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Example

NO_TREE = "the tree of the beams needs output_scores=True, a tokenizer and a search without sampling"


def generated(output: Any, reading: Reading) -> tuple[list[Example], list[str]]:
    """Every answer, and what there is to say about them."""
    stacks = stacks_of(output)
    steps = next(len(stack) for stack in (stacks.own, stacks.cross) if stack is not None)
    texts = answers(output, steps, reading.tokenizer)
    check_rows(stacks, texts)
    write = _continued if stacks.single else _answered
    examples = [write(output, answer, len(texts), stacks, reading) for answer in texts]
    searched = getattr(output, "beam_indices", None) is not None
    return examples, [NO_TREE] if searched and any(example.beams is None for example in examples) else []


def check_rows(stacks: Stacks, texts: list[Answer]) -> None:
    """Raise where the attentions have not the rows of the search: Whisper's `generate` drops all but the first ones."""
    rows = next(len(stack[0][0]) for stack in (stacks.cross, stacks.own) if stack is not None)
    last = max((row for answer in texts for row in answer.rows), default=0)
    if last >= rows:
        raise TraceError(
            f"the answers come from row {last} of the beam search and the attentions have {rows} rows, as Whisper's "
            "generate returns them: which beam they belong to is lost. Record the model instead: with "
            "regard.record(model) as rec: model.generate(...), then rec.trace(processor=processor)"
        )


def _answered(output: Any, answer: Answer, count: int, stacks: Stacks, reading: Reading) -> Example:
    """An answer of an encoder-decoder: its queries are what it wrote, its keys the source and what had been written."""
    cross = stacks.cross and joined(stacks.cross, answer.rows, own=False)
    own = stacks.own and joined(stacks.own, answer.rows, own=True)
    draft = Draft(reading.sums_to_one)
    target, written = reading.target_axis(answer.ids[1:]), reading.target_axis(answer.ids[:-1])
    rows: Kept = list(range(len(target)))
    columns: Kept = []
    encoder = stacks.encoder and _encoder(stacks.encoder, answer, count)
    if encoder or cross:
        source, columns = reading.source_axis((answer.number, count), (encoder or cross)[0].shape[2])
        draft.encoder(encoder, source, columns)
    draft.decoder(own, target, written, rows)
    draft.cross(cross, rows, columns)
    beams = tree(output, answer, reading.tokenizer, draft.attentions[-1].name, stacks.cross)
    if beams is not None and beams.weights is not None:
        beams = replace(beams, weights=beams.weights[:, :, columns])
    chosen = choices(output, answer, target, answer.prompt - 1, reading.candidates, reading.tokenizer)
    return Example(draft.axes, tuple(draft.attentions), chosen, beams, title=target.text)


def _continued(output: Any, answer: Answer, count: int, stacks: Stacks, reading: Reading) -> Example:
    """A text that a model of one stack went on with: what each place wrote is the token after it."""
    layers, at = joined(stacks.own, answer.rows, own=True), (answer.number, count)
    mask = reading.source.get("attention_mask") if isinstance(reading.source, Mapping) else None
    seen = [1] * answer.prompt if mask is None else line_of(mask, at, "attention_mask")
    ids = {"input_ids": answer.ids[:-1], "attention_mask": [*seen, *[1] * (len(answer.rows) - 1)]}
    axis, kept = placed(ids, at, layers[0].shape[1], reading.tokenizer, reading.languages[0], "the answer")
    draft = Draft(reading.sums_to_one)
    draft.single(layers, axis, kept)
    after = reading.target_axis([answer.ids[place + 1] for place in kept])
    chosen = choices(output, answer, after, len(kept) - len(answer.rows), reading.candidates, reading.tokenizer)
    beams = tree(output, answer, reading.tokenizer, "", None)
    return Example(draft.axes, tuple(draft.attentions), chosen, beams, title=after.text)


def _encoder(layers: Any, answer: Answer, count: int) -> list[Array]:
    """The layers of an answer's input: there is one row for each input, or for each row of the search."""
    rows = len(layers[0])
    row = answer.rows[0] if rows > count else answer.number * rows // count
    return [array_of(layer[row], "attention") for layer in layers]
