"""Callbacks: work between two steps of a training, such as a snapshot of the attention weights.

An experiment lists factories of callbacks. The loop calls each factory once, after the run directory is locked and the
newest checkpoint is restored, and knows nothing else of a callback.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from regard.training.experiment import Experiment


@runtime_checkable
class Callback(Protocol):
    """Work of a training that changes nothing of it, so that resume stays exact.

    When it is called: before each step and once after the last, if it is due. All earlier updates are then complete.
    What it saves: files of its own in the run directory. A checkpoint has nothing of it; at a resume it is built anew with
    the step of the checkpoint, and removes what it wrote after that step.
    Random numbers: it draws none from torch's default generators, and changes no parameter, buffer or counter.
    """

    def due(self, step: int, *, last: bool = False) -> bool:
        """Return True to be called at this step; `last` is True if no step follows."""
        ...

    def __call__(self, step: int, loss: float | None, *, last: bool = False) -> None:
        """Do the work; `loss` is that of the last update, per token, None before the first."""
        ...


CallbackFactory = Callable[["Experiment", Path, int], Callback | None]
"""Builds a callback from the experiment, the run directory and the step; None if the config asks for none."""
