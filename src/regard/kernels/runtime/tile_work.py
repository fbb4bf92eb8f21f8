"""Work of tiled kernels on a GPU: counts from which the cost model estimates their time."""

from collections.abc import Mapping

import torch

from regard.attention.cost import MULTIPROCESSORS
from regard.attention.workload import Workload


def round_up(size: int, multiple: int) -> int:
    """The next multiple."""
    return -(-size // multiple) * multiple


def round_to_power(size: int, least: int = 16) -> int:
    """The next power of two, at least 16: the size of a tile of heads."""
    return max(least, 1 << (size - 1).bit_length()) if size > 1 else least


def count_tiles(workload: Workload, rows: int, columns: int, share: float | int = 1.0) -> Mapping[str, float | int]:
    """Counts of a kernel with a program for `rows` queries, which reads `columns` keys at a time, a `share` of all.

    products      multiplications of the scores and of the context, of whole tiles, in millions
    elements      pairs of whole tiles, in millions
    depth         tiles that one multiprocessor reads one after the other, by the size of a head
    bytes         bytes of inputs and outputs, in millions
    """
    programs = workload.batch * workload.heads * -(-workload.queries // rows)
    steps = max(1.0, share * -(-workload.keys // columns))
    width = round_to_power(workload.size) + round_to_power(workload.value)
    pairs = programs * rows * steps * columns
    return {
        "products": pairs * width / 1e6,
        "elements": pairs / 1e6,
        "depth": -(-programs // count_multiprocessors()) * steps * width / 128,
        "bytes": (workload.inputs + workload.output) / 1e6,
    }


def count_extras(workload: Workload, elements: float | int) -> Mapping[str, float | int]:
    """Counts of what a request asks for beyond the context: of dropout, of a mask in memory, and of each statistic."""
    names = set(workload.statistics)
    top = max([0, *(int(name[4:]) for name in names if name.startswith("top_"))])
    again = max(0, top - 1) + ("received" in names) + ("uniform" in names)
    return {
        "dropped": elements * workload.dropout,
        "masked": elements * (workload.padded or workload.windowed),
        "mask": workload.mask / 1e6 if workload.rest else 0.0,
        "mask_call": float(workload.rest),
        "measured": elements * len(names & {"entropy", "max", "argmax", "mean_position", "spread"}),
        "again": elements * again,
        "again_call": float(again),
    }


def count_multiprocessors() -> int:
    """Multiprocessors of the current GPU; without one, those of the GPU that was measured."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    return MULTIPROCESSORS
