"""A page about one thing: what it is, how to build it, what it allows, and which kernels cover it."""

import inspect
from textwrap import fill
from typing import Any

import torch
from torch import Tensor

from regard import config as configuration
from regard import registry
from regard.attention import attend, dispatch
from regard.attention.local import Windows
from regard.attention.scope import Scope
from regard.attention.score import prepare
from regard.cli.show.example import build, told, untrained, work
from regard.cli.show.table import columns, decimals, indent, paragraphs, squares, title
from regard.config.docs import Setting, describe_settings

WIDTH = 100
"""The most characters on a line of what a setting means."""


def write_page(name: str, kind: str | None = None) -> str:
    """All about one thing: its docstring, how to build it, a drawing where there is one, and the kernels that cover it."""
    kind = registry.locate(name, kind)
    if kind == "kernels":
        return paragraphs(title(f"{name} ({kind})"), inspect.getdoc(registry.load(kind, name)) or "")
    if kind == "tasks":
        return settings(name)
    if kind == "output_heads":
        return paragraphs(title(f"{name} ({kind})"), inspect.getdoc(registry.find(name, kind)) or "", used(name))
    made = registry.find(name, kind)
    parts = [title(f"{name} ({kind})"), inspect.getdoc(made) or "", f"Build it\n{indent(constructor(made))}"]
    if kind == "scope":
        parts.append(f"What it allows\n{indent(drawing(name))}")
    if kind == "positions":
        module = build(name, kind)
        rows = [[f"position {place}", *decimals(module.at(torch.tensor(place)))] for place in range(8)]
        parts.append(f"{told(module)} of size 4{untrained(module)}\n{indent(columns(rows))}")
    elif kind != "visual":  # which asks for kernels, if at all, in numbers of its own
        answers = columns([[each, ":", answer] for each, answer in covered(name, kind).items()], left=3, gap=" ")
        parts.append(f"Kernels, asked on the CPU for the context alone\n{indent(answers)}")
    return paragraphs(*parts, f"With numbers: regard show {name} --steps")


def settings(name: str) -> str:
    """A task and everything that it can be told: defaults, the values there are, and what each means."""
    module = registry.load("tasks", name)
    heading = "Settings, and what they are when nobody says otherwise; a dash is None"
    usual = "\n".join(_setting(module.Config(), each) for each in describe_settings(module.Config))
    return paragraphs(title(f"{name} (tasks)"), inspect.getdoc(module) or "", f"{heading}\n\n{indent(usual)}")


def _setting(config: Any, setting: Setting) -> str:
    """A setting with its default, and below it what it means."""
    line = f"{setting.path} = {_default(config, setting.path)}"
    values = f"   ({', '.join(setting.values)})" if setting.values else ""
    meaning = indent(fill(setting.meaning, WIDTH))
    return f"{line}{values}\n{meaning}" if meaning else f"{line}{values}"


def used(name: str) -> str:
    """How a training is told of an output layer, with the options that it has a place for."""
    part = configuration.OutputPart()
    has = inspect.signature(registry.find(name, "output_heads")).parameters
    options = [f"--model.output.{each}={getattr(part, each)}" for each in ("score", "scale", "heads") if each in has]
    return f"Use it\n{indent(' '.join(['regard train TASK', f'--model.output={name}', *options]))}"


def _default(config: Any, path: str) -> str:
    """The value at a dotted path, as a setting would be written; a dash where there is none."""
    for part in path.split("."):
        config = getattr(config, part)
    return "-" if config is None else str(config).lower() if isinstance(config, bool) else str(config)


def constructor(made: type[Any]) -> str:
    """How to import and build a class. Options that it hands on to its parent are named, with their defaults."""
    own = inspect.signature(made)
    call = f"{made.__name__}{own.replace(return_annotation=inspect.Signature.empty)}".replace("jaxtyping.", "")
    lines = [f"from regard.attention import {made.__name__}", call]
    if _hands_on(made):
        parent = next(each for each in made.__mro__[1:] if not _hands_on(each))
        handed = [each for each in inspect.signature(parent).parameters.values() if each.name not in own.parameters]
        options = [f"{each.name}={each.default!r}" for each in handed if _takes(made, each)]
        lines.append(f"options, which are those of {parent.__name__}: {', '.join(options)}")
    return "\n".join(lines)


def covered(name: str, kind: str) -> dict[str, str]:
    """What each kernel says about one thing. A normaliser or a scope is tried with every score."""
    example = work(name, kind)
    if isinstance(example.module, Windows) and example.module.centre is not None:
        reads = dict.fromkeys(dispatch.KERNELS, f"reads all keys, and {name} gathers those of its windows")
        kernel = example.module.kernel
        return {**reads, kernel: dispatch.KERNELS[kernel].covers(example.request) or "covers it"}
    requests = {"": example.request}
    if kind in ("normalise", "scope"):
        scores = {each: build(each, "score") for each in registry.names("score")}
        requests = {each: example.request._replace(score=s, keys=prepare(s, example.key)) for each, s in scores.items()}
    answers = {}
    for kernel, module in dispatch.KERNELS.items():
        asked = {each: module.covers(request) for each, request in requests.items()}
        fine = [each for each, reason in asked.items() if reason is None]
        reasons = {each: reason for each, reason in asked.items() if reason is not None}
        answers[kernel] = f"covers it with {', '.join(fine)}".removesuffix(" with ") if fine else _in_the_way(name, reasons)
    return answers


def drawing(name: str) -> str:
    """What a scope allows among eight positions, as attend() sees it: ■ is allowed, · is hidden."""
    rows, keys, few = 4, 8, 3
    scope = registry.find(name, "scope").sample(rows, keys)
    whole, last = (_allowed(scope, rows, queries, keys) for queries in (keys, few))
    heading = f"{told(scope)}, offset 0: queries down, keys across"
    if not whole.eq(whole[:, :1]).all():
        return (
            f"{heading}\n\n{squares(whole[-1])}\n\n"
            f"{few} queries among {keys} keys are taken to be the last ones, offset {keys - few}\n\n"
            f"{squares(last[-1], keys - few)}"
        )
    if whole.eq(whole[:1]).all():
        return f"{heading}, the same for every query\n\n{squares(whole[-1])}"
    return f"{told(scope)}, the same for every query: rows of the batch down, keys across\n\n{squares(whole[:, 0])}"


def _hands_on(made: type[Any]) -> bool:
    """Whether a class takes options that only its parent names."""
    return any(each.kind is each.VAR_KEYWORD for each in inspect.signature(made).parameters.values())


def _takes(made: type[Any], option: inspect.Parameter) -> bool:
    """Whether an option of the parent may be given to the class, or is already settled by it."""
    try:
        with torch.random.fork_rng(devices=[]):
            made(16, **{option.name: option.default})
    except (TypeError, ValueError):
        return False
    return True


def _in_the_way(name: str, reasons: dict[str, str]) -> str:
    """Of the reasons by score, the one that says most of a thing: the device, where a kernel asks for no more than another;
    then what names the thing itself, then what a better score would not change."""
    device = [reason for reason in reasons.values() if reason.startswith("needs a GPU, got ")]
    about = [reason for reason in reasons.values() if registry.class_name(name) in reason]
    beside = [reason for score, reason in reasons.items() if not reason.endswith(f"got {registry.class_name(score)}")]
    return next(iter((*device, *about, *beside, *reasons.values())))


def _allowed(scope: Scope, batch: int, queries: int, keys: int) -> Tensor:
    """(batch, queries, keys): True where a query that finds all keys equal reads."""
    query, key = torch.zeros(batch, 1, queries, 1), torch.zeros(batch, 1, keys, 1)
    weights = attend(query, key, key, scope=scope, weights=True).weights
    assert weights is not None, "they were asked for"
    return weights[:, 0] > 0
