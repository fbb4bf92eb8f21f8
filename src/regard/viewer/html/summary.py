"""A trace in three lines of text: what it is of, where its attention was strongest, and how it was recorded."""

from collections.abc import Sequence

import numpy as np

from regard.viewer import source
from regard.viewer.metrics import matrices
from regard.viewer.metrics.matrices import MEAN
from regard.viewer.metrics.strength import summary
from regard.viewer.trace import Example, Look, Trace


def told(traces: Sequence[Trace]) -> str:
    """Three lines about each trace."""
    return "\n".join(line for trace in traces for line in lines(trace))


def lines(trace: Trace) -> list[str]:
    """What a trace holds, its finding, and how its weights came about."""
    looks = [look for example in trace.examples for look in example.looks]
    heading = f"{trace.name}: {_count(len(trace.examples), 'example')}, {_count(len(looks), 'attention')}"
    if not looks:
        return [heading, "no attention was recorded", ""]
    look = trace.look()
    return [heading, finding(trace.example(), look), f"{look.name}: {source.told(look.source)}"]


def finding(example: Example, look: Look) -> str:
    """What the sharpest query of an attention reads."""
    if look.weights is None:
        effective = float(np.nanmean(summary(look, example.axes).effective))
        return f"{look.name} spreads over {effective:.1f} keys on average; only statistics were recorded"
    weights = matrices.matrix(example, look, MEAN)
    if not weights.size:
        return f"{look.name} has nothing to look at"
    query, key = np.unravel_index(int(weights.argmax()), weights.shape)
    asked, read = example.axes[look.query].labels[query], example.axes[look.key].labels[key]
    return f"{look.name}: {asked!r} reads mostly {read!r}, {weights[query, key]:.2f}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
