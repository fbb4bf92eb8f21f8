"""The three stages with numbers, one after the other, on the worked example."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard import registry
from regard.attention.score import adds_to_context
from regard.cli.show import picture
from regard.cli.show.example import (
    BATCH,
    KEY,
    QUERY,
    SOURCE,
    TARGET,
    VALUE,
    Example,
    Stages,
    build,
    describe,
    effective_values,
    inputs,
    run_example,
    stages,
    untrained_note,
)
from regard.cli.show.table import columns, decimals, indent, paragraphs, title
from regard.cli.show.worked import products, work_out_score, work_out_weight


def write_steps(name: str, kind: str | None = None) -> str:
    """The three stages with numbers, on "Tom chases Jerry" or on a picture."""
    kind = registry.locate(name, kind)
    if kind == "tasks":
        raise LookupError(f"{name!r} is a task, which has no stages; show the steps of a score, such as scaled_dot")
    if kind == "output_heads":
        raise LookupError(f"{name!r} is an output layer, which has no stages; show the steps of a score, such as dot")
    if kind == "kernels":
        raise LookupError(
            f"{name!r} is a kernel, and its steps are those of what it covers; show the steps of a score, such as scaled_dot"
        )
    if kind == "visual":
        return paragraphs(title(f"{name} ({kind})"), *picture.write_steps(name))
    heading = title(f'{name} ({kind}) on "{" ".join(SOURCE)}"')
    if kind == "positions":
        return paragraphs(heading, *_placed(name))
    example = run_example(name, kind)
    result = stages(example)
    return paragraphs(
        heading, _chosen(example), *_scored(example, result), *_shared(example, result), *_combined(example, result)
    )


def _chosen(example: Example) -> str:
    request, module = example.request, example.module
    rows = [
        [kind, describe(stage := getattr(request, kind)) + untrained_note(stage)] for kind in ("score", "normalise", "scope")
    ]
    if request.allowed is not None and len(request.allowed) > 1:
        rows[-1][-1] += f", row {BATCH - 1} of the batch"
    values = [["value", word, *decimals(row)] for word, row in zip(SOURCE, VALUE, strict=True)]
    if module is not None:
        rows.insert(0, ["mechanism", describe(module) + untrained_note(module)])
        values = []
    role = "key" if values else "key, value"
    vectors = [["query", word, *decimals(row)] for word, row in zip(TARGET, QUERY, strict=True)]
    vectors += [[role, word, *decimals(row)] for word, row in zip(SOURCE, KEY, strict=True)]
    return f"{columns(rows, left=2)}\n\n{indent(columns(vectors + values, left=2))}"


def _scored(example: Example, result: Stages) -> list[str]:
    query, key = result.pair
    hand = columns(
        [[label, f"{'' if text[0] in ' -' else ' '}{text}"] for label, text in work_out_score(example, result)], left=2
    )
    return [
        "1. score(query, key): how well does each key fit the query",
        _by_head([_matrix(scores, SOURCE) for scores in result.scores]),
        indent(f"{TARGET[query]} and {SOURCE[key]} by hand: {_formula(example.request.score)}\n{indent(hand)}"),
    ]


def _shared(example: Example, result: Stages) -> list[str]:
    query, key = result.pair
    request, open_to = example.request, result.allowed[0, query].tolist()
    parts = [
        "2. normalise(scores, allowed): turn fit into a share of attention",
        _by_head([_matrix(head, SOURCE, allowed) for head, allowed in zip(result.weights, result.allowed, strict=True)]),
    ]
    if not all(open_to):
        hidden = ", ".join(word for word, fine in zip(SOURCE, open_to, strict=True) if not fine)
        rule = _formula(request.scope)
        parts.append(indent(f"{TARGET[query]} stands at position {query}; hidden from it: {hidden}, since {rule}"))
    hand = work_out_weight(request.normalise, result)
    return [*parts, indent(f"{TARGET[query]} and {SOURCE[key]} by hand: {_formula(request.normalise)}\n{indent(hand)}")]


def _combined(example: Example, result: Stages) -> list[str]:
    query, _ = result.pair
    values = effective_values(example, result, query)[:, 0]
    across = [str(place + 1) for place in range(result.context.shape[-1])]
    score = example.request.score
    also = f" of each value and what {type(score).__name__} adds to it" if adds_to_context(score) else ""
    parts = [
        "3. combine: weights @ value -> context",
        _by_head([_matrix(context, across) for context in result.context]),
        indent(f"{TARGET[query]}, number 1{also} by hand: {products(result.weights[0, query], values)}"),
    ]
    if example.module is not None and len(result.context) > 1:
        query_, key, _ = inputs()
        context = example.module(query_[:, 0], example.module.remember(key[:, 0])).context[-1]
        table = _matrix(context, [str(place + 1) for place in range(context.shape[-1])])
        parts.append(f"{describe(example.module)}: the context\n\n{indent(table)}")
    return parts


def _placed(name: str) -> list[str]:
    added, beside = (build(name, "positions", join=join) for join in ("add", "concat"))
    places = added.at(torch.arange(len(SOURCE)))
    word, place, both = decimals(torch.stack((KEY[1, 0], places[1, 0], added(KEY[None])[0, 1, 0])))
    return [
        f"{describe(added)} of size 4{untrained_note(added)}",
        f"1. the words\n\n{indent(_vectors(SOURCE, KEY))}",
        f"2. the vectors of positions 0, 1 and 2\n\n{indent(_vectors(('0', '1', '2'), places))}",
        f'3. join="add": word + position\n\n{indent(_vectors(SOURCE, added(KEY[None])[0]))}',
        indent(f"{SOURCE[1]}, number 1 by hand: {word} + {place} = {both}"),
        f'or join="concat": word beside position\n\n{indent(_vectors(SOURCE, beside(KEY[None])[0]))}',
    ]


def _formula(stage: Any) -> str:
    """The indented lines of a docstring."""
    lines = (inspect.getdoc(type(stage)) or "").splitlines()
    return "; ".join(" ".join(line.split()) for line in lines if line.startswith("    "))


def _matrix(numbers: Tensor, across: Sequence[str], allowed: Tensor | None = None) -> str:
    """Matrix with queries down; with `allowed`, a masked key is a dot, and each row has its sum."""
    rows = [["", *across, *(["sum"] if allowed is not None else [])]]
    for number, row in enumerate(numbers):
        cells = decimals(row)
        if allowed is not None:
            cells = [cell if fine else "·" for cell, fine in zip(cells, allowed[number].tolist(), strict=True)]
            cells.append(f"{float(row.sum()):.3f}")
        rows.append([TARGET[number], *cells])
    return columns(rows)


def _vectors(names: Sequence[str], numbers: Tensor) -> str:
    return columns([[name, *decimals(row)] for name, row in zip(names, numbers, strict=True)])


def _by_head(tables: list[str]) -> str:
    if len(tables) == 1:
        return indent(tables[0])
    return "\n\n".join(indent(f"head {number}\n{table}") for number, table in enumerate(tables, 1))
