"""An update's forward and backward pass, replayed as one CUDA graph.

A small model on a large GPU spends its time being told what to do: a Transformer of eight layers is more than a thousand
kernels, each of which computes for a few microseconds and is launched in ten. A graph is launched once. It holds for one
shape of batch alone, so lengths are rounded up to a few, and the shapes that come back are captured.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from regard.data.batch import map_tensors, tensors
from regard.data.modality import AnyBatch
from regard.losses.types import Loss
from regard.training.experiment import CapturableLoss, Experiment
from regard.training.gradient import accumulate, out_of_memory, release_memory

MOST = 256
"""Maximum number of captured shapes; batches of further shapes launch their kernels one by one."""
Shape = tuple[torch.Size, ...]


def covers(experiment: Experiment, device: torch.device) -> str | None:
    """None where updates of this experiment can be captured, else the reason why not."""
    if device.type != "cuda":
        return "needs a CUDA device"
    if not experiment.config.train.cuda_graphs:
        return "train.cuda_graphs is false"
    if not isinstance(experiment.loss, CapturableLoss) or not experiment.loss.capturable:
        return (
            "needs a loss that a CUDA graph can capture: without scheduled sampling, sequence_loss, guided_alignment or "
            "Hungarian assignment"
        )
    return None


class CapturedGraph(NamedTuple):
    """A graph, the batch that it reads and the loss that it leaves."""

    graph: torch.cuda.CUDAGraph
    batch: AnyBatch
    loss: Loss


class GraphedLoss:
    """Calls `cost` and its backward pass; batches of a shape that has been seen before are replayed.

    Gradients are added to those that are there, which must stay where they are: zero them, never drop them. Dropout is
    drawn from the generator's seed as it is at the time of the replay. The first batch of a shape is computed as it always
    was, so that whatever a library sets up on first use is set up outside of any graph.
    """

    def __init__(self, cost: Callable[[AnyBatch], Loss], device: torch.device, learned: Sequence[Tensor]):
        self.cost, self.device, self.learned, self.most = cost, device, learned, MOST
        self.computed = set[Shape]()
        self.captured = dict[Shape, CapturedGraph]()
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, batch: AnyBatch) -> Loss:
        """The loss of a batch, its gradients added to those of the batches before."""
        batch = batch.round_shape()
        shape = _shape(batch)
        if shape not in self.captured and shape in self.computed and len(self.captured) < self.most:
            try:
                self.captured[shape] = self.capture(batch)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                self.forget()
        self.computed.add(shape)
        if shape in self.captured:
            return self.replay(self.captured[shape], batch)
        return self.run(batch.to(self.device))

    def forget(self) -> None:
        """Give back what the graphs hold, and capture no more: where memory is short, it is better spent on batches."""
        self.captured, self.most = {}, 0
        release_memory()

    def run(self, batch: AnyBatch) -> Loss:
        """Loss and gradients of a batch, without a graph."""
        loss = self.cost(batch)
        accumulate(loss.total, self.learned)
        return _detached(loss)

    def capture(self, batch: AnyBatch) -> CapturedGraph:
        """Capture `run` of a batch as a CUDA graph, without computing it."""
        static_batch, graph = _plain(batch).to(self.device), torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            loss = self.run(static_batch)
        return CapturedGraph(graph, static_batch, loss)

    def replay(self, captured: CapturedGraph, batch: AnyBatch) -> Loss:
        """Replay a graph with this batch. All graphs share their memory, so the loss is copied out of it at once."""
        for buffer, tensor in zip(tensors(captured.batch), tensors(batch), strict=True):
            buffer.copy_(tensor, non_blocking=True)
        captured.graph.replay()
        loss = captured.loss
        parts = {name: _number(value, loss.total).clone() for name, value in loss.parts.items()}
        return Loss(loss.total.clone(), _number(loss.tokens, loss.total).clone(), parts)


def pin_batch(batch: AnyBatch) -> AnyBatch:
    """Batch in memory that a GPU can read by itself, while the host goes on."""
    return map_tensors(Tensor.pin_memory, batch)


def _shape(batch: AnyBatch) -> Shape:
    return tuple(tensor.shape for tensor in tensors(batch))


def _plain(batch: AnyBatch) -> AnyBatch:
    """A copy without its records, which a graph does not read."""
    copy: Any = map_tensors(torch.clone, batch)
    bare: AnyBatch = copy._replace(records=())
    return bare


def _detached(loss: Loss) -> Loss:
    """Loss with all its numbers on the device: one that is copied there later would be waited for."""
    total = loss.total.detach()
    parts = {name: _number(value, total).detach() for name, value in loss.parts.items()}
    return Loss(total, _number(loss.tokens, total), parts)


def _number(value: float | Tensor, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else torch.full((), float(value), device=like.device)
