"""Callbacks: work that a training does between two of its steps, such as a snapshot of where the model looks.

An experiment names makers of callbacks; the loop calls each maker once, when the run directory is its own and the newest
checkpoint has been restored, and knows nothing else of what a callback does.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from regard.training.experiment import Experiment


@runtime_checkable
class Callback(Protocol):
    """Called before each step and once after the last, with all earlier updates settled.

    Resume stays exact because a callback changes no parameter, buffer or counter and draws from no generator that the
    training uses (seeds depend on the step alone). What it keeps lies in files of its own in the run directory: it is made
    anew at a resume, with the step that the training goes on from, and drops what it wrote beyond that step.
    """

    def due(self, step: int, *, last: bool = False) -> bool:
        """Whether it wants to be called at this step; `last` says that no step follows."""
        ...

    def __call__(self, step: int, loss: float | None, *, last: bool = False) -> None:
        """Do its work; `loss` is that of the last update, per token, None before the first."""
        ...


MakeCallback = Callable[["Experiment", Path, int], Callback | None]
"""Makes a callback from the experiment, the run directory and the step; None where the config asks for none."""
