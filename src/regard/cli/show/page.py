"""Page of `regard show`: docstring, constructor, a drawing of the scope, and kernel coverage."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard import config as configuration
from regard import registry
from regard.attention import attend, dispatch
from regard.attention.local import Windows
from regard.attention.scope import Scope
from regard.attention.score import prepare
from regard.cli._terminal import find_width, wrap
from regard.cli.show.example import build, describe, run_example, untrained_note
from regard.cli.show.settings import INDENT, WIDTH, write_settings
from regard.cli.show.table import columns, decimals, indent, paragraphs, squares, title
from regard.components import PREFIX
from regard.config.parameters import Parameter, list_parameters

KINDS = ("score", "normalise", "scope", "mechanisms")
"""Kinds whose parameters are settings of model.attention."""


def write_page(name: str, kind: str | None = None) -> str:
    """The page of one name: docstring, constructor, a drawing of a scope, and the kernels that cover it."""
    kind = registry.locate(name, kind)
    if kind == "kernels":
        return paragraphs(title(f"{name} ({kind})"), inspect.getdoc(registry.load(kind, name)) or "")
    if kind == "tasks":
        return write_settings(name)
    if kind == "output_heads":
        return paragraphs(
            title(f"{name} ({kind})"), inspect.getdoc(registry.find(name, kind)) or "", describe_output_head(name)
        )
    cls, shown = registry.find(name, kind), name.partition("@")[0]
    parts = [title(f"{shown} ({kind})"), inspect.getdoc(cls) or "", f"Build it\n{indent(constructor(cls))}"]
    if parameters := list_parameters(cls, kind) if kind in KINDS else {}:
        parts.append(
            f"Parameters, beside --model.attention={shown}\n{indent(write_parameters(registry.label(name), parameters))}"
        )
    if kind == "scope":
        parts.append(f"What it allows\n{indent(draw_scope(name))}")
    if kind == "positions":
        module = build(name, kind)
        rows = [[f"position {place}", *decimals(module.at(torch.tensor(place)))] for place in range(8)]
        parts.append(f"{describe(module)} of size 4{untrained_note(module)}\n{indent(columns(rows))}")
    elif kind != "visual":  # which asks for kernels, if at all, in numbers of its own
        answers = columns([[kernel, ":", answer] for kernel, answer in list_coverage(name, kind).items()], left=3, gap=" ")
        parts.append(f"Kernels, asked on the CPU for the context alone\n{indent(answers)}")
    return paragraphs(*parts, f"With numbers: regard show {shown} --steps")


def write_parameters(name: str, parameters: Mapping[str, Parameter]) -> str:
    """Parameters as options with their default, type and description."""
    lines = []
    for parameter in parameters.values():
        place = f"{name}." if parameter.name in ("name", "heads", "size") else ""
        default = "-" if parameter.default is None else str(parameter.default)
        shown = default.lower() if isinstance(parameter.default, bool) else default
        lines.append(f"--model.attention.{place}{parameter.name}={shown}   ({parameter.kind})")
        lines += [wrap(parameter.meaning, find_width() or WIDTH, INDENT, INDENT)] if parameter.meaning else []
    return "\n".join(lines)


def describe_output_head(name: str) -> str:
    """Command of a training with an output layer and its options."""
    part = configuration.OutputPart()
    has = inspect.signature(registry.find(name, "output_heads")).parameters
    options = [f"--model.output.{name}={getattr(part, name)}" for name in ("score", "scale", "heads") if name in has]
    return f"Use it\n{indent(' '.join(['regard train TASK', f'--model.output={name}', *options]))}"


def constructor(cls: type[Any]) -> str:
    """Import and constructor of a class, with the options that it passes on to its parent and their defaults."""
    own = inspect.signature(cls)
    call = f"{cls.__name__}{own.replace(return_annotation=inspect.Signature.empty)}".replace("jaxtyping.", "")
    lines = [f"from {_find_home(cls)} import {cls.__name__}", call]
    if _has_parent_options(cls):
        parent = next(ancestor for ancestor in cls.__mro__[1:] if not _has_parent_options(ancestor))
        handed = [
            parameter for parameter in inspect.signature(parent).parameters.values() if parameter.name not in own.parameters
        ]
        options = [f"{parameter.name}={parameter.default!r}" for parameter in handed if _accepts(cls, parameter)]
        lines.append(f"options, which are those of {parent.__name__}: {', '.join(options)}")
    return "\n".join(lines)


def _find_home(cls: type[Any]) -> str:
    """Module to import a class from: regard.attention, the file of a user, or an installed package."""
    if cls.__module__.partition(".")[0] == "regard":
        return "regard.attention"
    return Path(inspect.getsourcefile(cls) or "").stem if cls.__module__.startswith(PREFIX) else cls.__module__


def list_coverage(name: str, kind: str) -> dict[str, str]:
    """Coverage of one stage or mechanism by each kernel. A normaliser or a scope is combined with every score."""
    example = run_example(name, kind)
    if isinstance(example.module, Windows) and example.module.centre is not None:
        reads = dict.fromkeys(dispatch.KERNELS, f"reads all keys, and {name} gathers those of its windows")
        kernel = example.module.kernel
        return {**reads, kernel: dispatch.KERNELS[kernel].covers(example.request) or "covers it"}
    requests = {"": example.request}
    if kind in ("normalise", "scope"):
        scores = {name: build(name, "score") for name in registry.names("score")}
        requests = {name: example.request._replace(score=s, keys=prepare(s, example.key)) for name, s in scores.items()}
    answers = {}
    for kernel, module in dispatch.KERNELS.items():
        reasons_by_score = {name: module.covers(request) for name, request in requests.items()}
        fine = [name for name, reason in reasons_by_score.items() if reason is None]
        reasons = {name: reason for name, reason in reasons_by_score.items() if reason is not None}
        answers[kernel] = f"covers it with {', '.join(fine)}".removesuffix(" with ") if fine else _main_reason(name, reasons)
    return answers


def draw_scope(name: str) -> str:
    """Mask of a scope over eight positions, as attend() computes it: ■ is allowed, · is masked."""
    rows, keys, few = 4, 8, 3
    scope = registry.find(name, "scope").sample(rows, keys)
    whole, last = (_allowed(scope, rows, queries, keys) for queries in (keys, few))
    heading = f"{describe(scope)}, offset 0: queries down, keys across"
    if not whole.eq(whole[:, :1]).all():
        return (
            f"{heading}\n\n{squares(whole[-1])}\n\n"
            f"{few} queries among {keys} keys are taken to be the last ones, offset {keys - few}\n\n"
            f"{squares(last[-1], keys - few)}"
        )
    if whole.eq(whole[:1]).all():
        return f"{heading}, the same for every query\n\n{squares(whole[-1])}"
    return f"{describe(scope)}, the same for every query: rows of the batch down, keys across\n\n{squares(whole[:, 0])}"


def _has_parent_options(cls: type[Any]) -> bool:
    """True for a class with options that only its parent names."""
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in inspect.signature(cls).parameters.values())


def _accepts(cls: type[Any], option: inspect.Parameter) -> bool:
    """True where an option of the parent is accepted by the class, not fixed by it."""
    try:
        with torch.random.fork_rng(devices=[]):
            cls(16, **{option.name: option.default})
    except (TypeError, ValueError):
        return False
    return True


def _main_reason(name: str, reasons: dict[str, str]) -> str:
    """The most specific of the reasons by score: the device, if nothing else is missing; then a reason that names the stage;
    then one that no other score would change."""
    device = [reason for reason in reasons.values() if reason.startswith("needs a GPU, got ")]
    about = [reason for reason in reasons.values() if registry.class_name(name) in reason]
    beside = [reason for score, reason in reasons.items() if not reason.endswith(f"got {registry.class_name(score)}")]
    return next(iter((*device, *about, *beside, *reasons.values())))


def _allowed(scope: Scope, batch: int, queries: int, keys: int) -> Tensor:
    """Mask (batch, queries, keys): True where a query with equal scores has a weight above 0."""
    query, key = torch.zeros(batch, 1, queries, 1), torch.zeros(batch, 1, keys, 1)
    weights = attend(query, key, key, scope=scope, weights=True).weights
    assert weights is not None, "they were asked for"
    return weights[:, 0] > 0
