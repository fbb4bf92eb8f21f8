"""Optimizer step of a training, on one or more batches; a step whose loss is not finite leaves the weights unchanged."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor

from regard.data.modality import AnyBatch
from regard.errors import FailedError
from regard.losses.types import Loss, Progress
from regard.training.compile import CompiledLayers
from regard.training.cuda_graphs import GraphedLoss, covers, pin_batch
from regard.training.device import select_device
from regard.training.ema import WeightAverage
from regard.training.experiment import Experiment
from regard.training.gradient import compute_gradient
from regard.training.mixed_precision import CastWeights
from regard.training.optimizer import LARGEST, build_optimizer, clip_gradient, is_fused, set_learning_rate, step_unless
from regard.training.schedules import Plateau, compute_learning_rate
from regard.training.seed import reseed
from regard.training.state import State
from regard.training.throughput import Gap, IdleTime, Throughput


class StepFigures(NamedTuple):
    """Figures of an update: means per token, the number of tokens and the norm of the gradient."""

    loss: float
    tokens: int
    length: float
    parts: Mapping[str, float]


class StepResult:
    """Loss of an update and norm of its gradient, copied from the device asynchronously in one transfer."""

    def __init__(self, loss: Loss, norm: Tensor):
        self.names = list(loss.parts)
        values = [loss.total, loss.tokens, norm, *(loss.parts[name] for name in self.names)]
        device = loss.total.device
        stacked = torch.stack([torch.as_tensor(value, dtype=torch.float32, device=device).detach() for value in values])
        self.arrived = None
        if device.type == "cuda":  # into pinned memory, or the host would wait here
            stacked = torch.empty(stacked.shape, dtype=stacked.dtype, pin_memory=True).copy_(stacked, non_blocking=True)
            self.arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self.arrived.record(torch.cuda.current_stream(device))
        self.values = stacked

    def fetch(self) -> StepFigures:
        """Wait for the figures, and return them."""
        if self.arrived is not None:
            self.arrived.synchronize()
        total, tokens, length, *parts = self.values.tolist()
        count = max(tokens, 1.0)
        means = {name: value / count for name, value in zip(self.names, parts, strict=True)}
        return StepFigures(total / count, int(tokens), length, means)


class QueuedUpdate(NamedTuple):
    """Update that is queued on the device, with its result to come."""

    step: int
    rate: float
    loss: Loss
    result: StepResult
    gap: Gap | None


class Update:
    """Callable that makes one update of the weights each time. All that changes with them is in `state`.

    Where updates are replayed on a GPU, the figures of one are fetched when the next has been queued, so that the GPU need
    not wait for its host: the GPU itself decides whether to apply an update. `settle` fetches at once.
    """

    def __init__(self, experiment: Experiment):
        self.experiment = experiment
        self.settings = settings = experiment.settings
        self.device = select_device(settings.device)
        self.model = model = experiment.model.to(self.device).train()
        loss = None if experiment.loss_module is None else experiment.loss_module.to(self.device).train()
        self.optimiser = build_optimizer(model, settings, loss)
        average = None if settings.ema_decay is None else WeightAverage(model, settings.ema_decay)
        self.state = State(model, self.optimiser, average, Plateau(), loss=loss)
        self.compiled = CompiledLayers(model) if settings.compile else None
        self.clean = False
        learned = [parameter for group in self.optimiser.param_groups for parameter in group["params"]]
        self.eager = covers(experiment, self.device)
        """Reason why updates are not replayed; None where they are."""
        self.graphs = GraphedLoss(self.cost, self.device, learned) if self.eager is None else None
        casts = self.graphs is not None and not settings.compile  # where nothing is decoded
        self.cast_weights = CastWeights(model) if casts else None
        alone = average is None and experiment.loss_with_baseline is None
        self.late = self.graphs is not None and is_fused(self.optimiser) and alone
        """True if the figures of an update are fetched when the next one has been queued."""
        self.queued: QueuedUpdate | None = None
        self.idle = IdleTime(self.device)
        self.last = dict[str, float]()

    def __call__(self, batches: Sequence[AnyBatch], speed: Throughput) -> None:
        """Make one update, unless its batches turn out to be bad; `last` has figures of the last one that is finished."""
        state, settings, counters = self.state, self.settings, self.state.counters
        current = state.plateau.factor * compute_learning_rate(settings, counters.step, self.experiment.hidden_size)
        set_learning_rate(self.optimiser, current)
        gap = self.idle.begin()
        loss, counters.parts = compute_gradient(batches, counters.parts, self.backward, self.begin)
        norm = clip_gradient(self.model.parameters(), loss.tokens, settings.gradient_clip)
        if state.loss is not None:  # cut apart, so that neither holds the other back; NaN where it is not finite
            norm = norm + 0 * clip_gradient(state.loss.parameters(), loss.tokens, settings.gradient_clip)
        if is_fused(self.optimiser):  # what is fetched later makes the host wait for the device, which by then has its work
            step_unless(self.optimiser, ~(loss.total.isfinite() & (norm < LARGEST)))
            self.clear()
        before, self.queued = self.queued, QueuedUpdate(counters.step, current, loss, StepResult(loss, norm), gap)
        self.idle.end()
        counters.step += 1
        if before is not None:
            self.finish(before, speed)
        if not self.late:
            self.finish_queued(speed)

    def settle(self, speed: Throughput) -> None:
        """Wait for what is queued, so that `state` is that of the last update. Other things may be done then."""
        self.finish_queued(speed)
        self.idle.pause()

    def finish_queued(self, speed: Throughput) -> None:
        """Finish the queued update, if any."""
        if self.queued is not None:
            queued, self.queued = self.queued, None
            self.finish(queued, speed)

    def finish(self, queued: QueuedUpdate, speed: Throughput) -> None:
        """Fetch the figures of an update, and complete it."""
        state, (value, tokens, length, parts) = self.state, queued.result.fetch()
        if math.isfinite(value) and length < LARGEST:
            if not is_fused(self.optimiser):
                self.optimiser.step()
            if state.average is not None:
                state.average.update(state.model, queued.step)
            self.experiment.update_baseline(queued.loss)
            speed.add(value, tokens, parts)
        else:
            self.skip(queued.step, value, length)
        state.counters.tokens += tokens
        if queued.gap is not None:
            speed.rest(queued.gap.seconds())
        self.last = {"learning_rate": queued.rate, "gradient": length}

    def ready(self, batch: AnyBatch) -> AnyBatch:
        """A batch in the form in which it is taken: for a GPU rounded, where updates are replayed, and pinned."""
        if self.device.type != "cuda":
            return batch
        return pin_batch(batch if self.graphs is None else batch.round_shape())

    def begin(self) -> None:
        """Before the first part of an update, and again when it has to be cut into smaller ones."""
        reseed(self.settings.seed, self.state.counters.step, self.device)
        if not self.clean:
            self.clear()
        self.clean = False

    def clear(self) -> None:
        """Forget the gradients; those of graphs stay where they are."""
        self.optimiser.zero_grad(set_to_none=self.graphs is None)
        self.clean = True

    def cost(self, batch: AnyBatch) -> Loss:
        """The loss of a part of an update."""
        with self.precision():
            return self.experiment.loss(self.model, batch, self.progress)

    def backward(self, batch: AnyBatch) -> Loss:
        """The loss of a part of an update, its gradients added to those of the parts before."""
        if self.graphs is not None:
            return self.graphs(batch)
        with self.precision():
            loss = self.experiment.loss(self.model, batch.to(self.device), self.progress)
        loss.total.backward()  # type: ignore[no-untyped-call]
        parts = {name: torch.as_tensor(value).detach() for name, value in loss.parts.items()}
        return Loss(loss.total.detach(), loss.tokens, parts)

    @property
    def progress(self) -> Progress:
        """Progress of the training, by which losses have schedules."""
        return Progress(self.state.counters.step, self.settings.max_steps)

    @contextmanager
    def precision(self) -> Iterator[None]:
        """Compiled layers and mixed precision, where the config asks for them."""
        with self.autocast(), self.compiled or nullcontext(), self.cast_weights or nullcontext():
            yield

    def autocast(self) -> torch.autocast:
        """Half precision where the config asks for it."""
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.precision == "bf16")

    def skip(self, step: int, value: float, length: float) -> None:
        """Leave the weights alone, and give up when this happens too often."""
        counters = self.state.counters
        counters.skipped += 1
        if counters.skipped >= max(1, self.settings.max_bad_batches):
            raise FailedError(
                f"{counters.skipped} batches had a loss or gradient that is not finite, the last at step "
                f"{step} (loss {value:g} per token, gradient {length:g}). Lower train.learning_rate or train.gradient_clip, "
                "look for bad records, or allow more with train.max_bad_batches; the last checkpoint is whole"
            )
