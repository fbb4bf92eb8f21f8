"""Worked example of attention inside a CNN: weights of the channels and places of a small picture."""

import inspect

import torch
from torch import Tensor

from regard import registry
from regard.attention.score import compare, prepare
from regard.attention.visual import Gating, Visual
from regard.attention.visual.channel_spatial import ChannelSpatial
from regard.attention.visual.non_local import NonLocal
from regard.cli.show.example import Stages, describe, untrained_note
from regard.cli.show.table import columns, decimals, indent, line
from regard.cli.show.worked import work_out_weight

PICTURE = torch.tensor([[[[2.0, 1.0, 0.0], [1.0, 1.0, 0.0]], [[0.0, 0.0, 1.0], [0.0, 1.0, 3.0]]]])
"""Two channels of 2 x 3 places: something at the left, and something at the right."""

SIZES = {"channels": 2, "reduction": 2, "least": 2, "kernel": 3}
"""Sizes for two channels and six places."""


def build(name: str) -> Visual:
    """A visual attention for the picture, with parameters from seed 0."""
    cls = registry.find(name, "visual")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        built: Visual = cls(**{size: SIZES[size] for size in inspect.signature(cls).parameters if size in SIZES})
    return built.requires_grad_(False).eval()


def write_steps(name: str) -> list[str]:
    """Its stages with numbers; those of a composition one after the other."""
    module = build(name)
    opening = ["a picture of 2 channels, 2 x 3 places", indent(_picture(PICTURE))]
    if not isinstance(module, ChannelSpatial):
        return [*opening, *_stages(module, PICTURE)]
    first = module.channel(PICTURE)
    second = ["what the channels let through goes to the places", *_stages(module.spatial, first)]
    return [*opening, "first the channels", *_stages(module.channel, PICTURE), *second]


def _stages(module: Visual, image: Tensor) -> list[str]:
    attended = module.attend(image)
    assert attended.weights is not None, "they were asked for"
    assert isinstance(module, Gating | NonLocal), "a composition is shown by its parts"
    scores = module.score(module.split(image)) if isinstance(module, Gating) else _compared(module, image)
    everything = torch.ones_like(scores[0], dtype=torch.bool)
    result = Stages(scores=scores[0], allowed=everything, weights=attended.weights[0], context=attended.context[0])
    query, key = result.pair
    share = work_out_weight(module.normalise, result)
    return [
        f"{describe(module)}{untrained_note(module)}, normalised by {describe(module.normalise)}",
        "1. score: how much does each part count",
        indent(_table(module, scores)),
        "2. normalise(scores, allowed): turn that into a share",
        indent(_table(module, attended.weights)),
        indent(f"{_side(module, query)} and {module.axes[2]} {key + 1} by hand\n{indent(share)}".removeprefix(" and ")),
        "3. combine: each part as much as its share says" + _unchanged(attended.context, image),
        indent(_picture(attended.context)),
    ]


def _compared(module: NonLocal, image: Tensor) -> Tensor:
    """The scores that attend() finds on its way."""
    query, key, _ = module.sides(image)
    return compare(module.score, query, prepare(module.score, key))


def _table(module: Visual, numbers: Tensor) -> str:
    """Heads and queries down, keys across, with the names that the axes have."""
    rows = [["", *(f"{module.axes[2]} {number + 1}" for number in range(numbers.shape[3]))]]
    rows += [[_side(module, number), *decimals(row)] for number, row in enumerate(numbers[0].flatten(0, 1))]
    return columns(rows)


def _side(module: Visual, number: int) -> str:
    """Name of a row of the table; nothing for a single row."""
    heads, queries, _ = module.axes
    return f"{heads or queries} {number + 1}".removeprefix(f" {number + 1}")


def _picture(image: Tensor) -> str:
    """One channel below the other, row after row."""
    rows = []
    for number, channel in enumerate(image[0]):
        rows += [[f"channel {number + 1}" if not place else "", line(row)] for place, row in enumerate(channel)]
    return columns(rows, left=2)


def _unchanged(context: Tensor, image: Tensor) -> str:
    return "; as it came, since what is added begins at zero" if torch.equal(context, image) else ""
