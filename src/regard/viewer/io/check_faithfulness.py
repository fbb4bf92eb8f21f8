"""Validation of a faithfulness check: keys of an axis of the example, and numbers that a change can have."""

import math

from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Example

MEASURES = ("probability", "state")


def check_faithfulness(example: Example, where: str) -> None:
    """Raise TraceError where a check names keys that are not there, or changes that are none."""
    check = example.faithfulness
    if check is None:
        return
    where = f"{where}, faithfulness"
    if check.axis not in example.axes:
        raise TraceError(
            f"{where}: its axis is {check.axis!r}, and the example has the axes {', '.join(example.axes) or 'none'}"
        )
    length = len(example.axes[check.axis])
    if not check.keys or not all(0 <= key < length for key in check.keys):
        raise TraceError(f"{where}: its keys are places of {check.axis!r}, 0 to {length - 1}, got {check.keys}")
    if check.measure not in MEASURES:
        raise TraceError(f"{where}: the measure is one of {', '.join(MEASURES)}, got {check.measure!r}")
    for name in ("largest", "random", "deviation"):
        value = getattr(check, name)
        if not math.isfinite(value) or value < 0:
            raise TraceError(f"{where}: {name} is a change, a number of 0 or more, got {value}")
    if check.trials < 1:
        raise TraceError(f"{where}: it needs a trial or more, got {check.trials}")
