"""Everything that changes while a model is trained, in one place: what a checkpoint holds is this and no more."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from torch import Tensor, nn
from torch.optim import Optimizer

from regard.boundary import boundary
from regard.errors import DamagedError, RefusedError
from regard.training import optimizer, state_dict
from regard.training.checkpoint import Checkpoint
from regard.training.ema import WeightAverage, part
from regard.training.schedules import Plateau


@dataclass
class Counters:
    """The numbers. There is no generator among them: each step draws from (seed, step)."""

    step: int = 0
    skipped: int = 0
    """Batches whose loss or gradient was not finite."""
    tokens: int = 0
    seconds: float = 0.0
    parts: int = 1
    """Into how many parts a batch is cut to fit the memory."""
    evaluated: int = -1
    """The last step that was evaluated."""
    best: float | None = None
    """The best value of the monitored metric, of which less is better."""
    stale: int = 0
    """Evaluations since the best."""
    log_lines: int | None = 0
    """Number of lines of log.jsonl; None where an earlier version did not count them."""
    stretch: dict[str, Any] = field(default_factory=dict)
    """Running sums of the losses since the last line of the log."""


ADDED: dict[str, Any] = {"log_lines": None, "stretch": {}}
"""Counters that checkpoints of earlier versions lack, and what they are there."""


@dataclass
class State:
    """Model, optimiser, moving average, schedule, counters, and the loss where it learns or keeps something."""

    model: nn.Module
    optimiser: Optimizer
    average: WeightAverage | None
    plateau: Plateau
    counters: Counters = field(default_factory=Counters)
    loss: nn.Module | None = None

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor, flat."""
        tensors = {f"model.{name}": value for name, value in state_dict.weights(self.model).items()}
        optimizer_state = optimizer.state(self.model, self.optimiser, self.loss)
        tensors |= {f"optimiser.{name}": value for name, value in optimizer_state.items()}
        if self.loss is not None:
            tensors |= {f"loss.{name}": value for name, value in state_dict.weights(self.loss).items()}
        if self.average is not None:
            tensors |= {f"ema.{name}": value.cpu().contiguous() for name, value in self.average.values.items()}
        return tensors

    def table(self) -> dict[str, Any]:
        """Every number."""
        return {**asdict(self.counters), "plateau": self.plateau.state()}

    def restore(self, checkpoint: Checkpoint) -> None:
        """Become what was saved; a checkpoint of another model is refused before anything changes."""
        with boundary(checkpoint.path):
            self._restore(checkpoint)

    def _restore(self, checkpoint: Checkpoint) -> None:
        from pydantic import TypeAdapter

        tensors, origin = checkpoint.tensors, str(checkpoint.path)
        missing = ({counter.name for counter in fields(Counters)} | {"plateau"}) - {*ADDED, *checkpoint.counters}
        if missing:
            raise RefusedError(f"{origin} has no counter {min(missing)}: it was not written by this loop")
        counters = _counters(checkpoint)
        state_dict.check_shapes(state_dict.named_tensors(self.model), part(tensors, "model."), origin)
        state_dict.check_shapes(
            {} if self.loss is None else state_dict.named_tensors(self.loss), part(tensors, "loss."), f"the loss in {origin}"
        )
        if self.average is not None:
            _complete(self.average.values, part(tensors, "ema."), origin)
            state_dict.check_shapes(self.average.values, part(tensors, "ema."), f"the moving average in {origin}")
        optimizer_state = part(tensors, "optimiser.")
        unknown = {name.rpartition(".")[0] for name in optimizer_state} - set(
            optimizer.list_names(self.model, self.optimiser, self.loss)
        )
        if unknown:
            raise RefusedError(
                f"{origin} is of another model: its optimiser knows {min(unknown)}, which does not learn here"
            )
        _shaped(optimizer.named_parameters(self.model, self.loss), optimizer_state, origin)
        plateau = TypeAdapter(Plateau).validate_python(checkpoint.counters["plateau"])
        state_dict.restore(self.model, part(tensors, "model."), origin)
        optimizer.restore(self.model, self.optimiser, optimizer_state, self.loss)
        if self.loss is not None:
            state_dict.restore(self.loss, part(tensors, "loss."), origin)
        if self.average is not None:
            self.average.restore(part(tensors, "ema."))
        self.plateau.restore(plateau.state())
        self.counters = counters


def _counters(checkpoint: Checkpoint) -> Counters:
    """The counters of a checkpoint, each of its own type."""
    from pydantic import TypeAdapter, ValidationError

    values = {**ADDED, **checkpoint.counters}
    table = {counter.name: values[counter.name] for counter in fields(Counters)}
    try:
        return TypeAdapter(Counters).validate_python(table)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = f"{first['msg']}, got {first['input']!r:.80}"
        raise DamagedError(f"{checkpoint.path} has a counter {where} that is none: {what}") from error


def _shaped(parameters: Mapping[str, nn.Parameter], optimizer_state: Mapping[str, Tensor], origin: str) -> None:
    """Raise unless what an optimiser holds of a parameter is one number or has the parameter's shape."""
    for name, value in optimizer_state.items():
        wanted = parameters[name.rpartition(".")[0]].shape
        if value.ndim and value.shape != wanted:
            shapes = f"{tuple(value.shape)} there and {tuple(wanted)} here"
            raise RefusedError(f"{origin} is of another model: its optimiser's {name} has shape {shapes}")


def _complete(mine: Mapping[str, Tensor], tensors: Mapping[str, Tensor], origin: str) -> None:
    missing = [name for name in mine if name not in tensors]
    if missing:
        raise RefusedError(f"{origin} has no moving average of {missing[0]}: it was trained without train.ema_decay")
