"""An update's forward and backward pass, replayed as one CUDA graph.

A small model on a large GPU spends its time being told what to do: a Transformer of eight layers is more than a thousand
kernels, each of which computes for a few microseconds and is launched in ten. A graph is launched once. It holds for one
shape of batch alone, so lengths are rounded up to a few, and the shapes that come back are captured.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from regard.data.batch import Padded
from regard.data.image.batch import Images
from regard.data.image.types import ImageBatch
from regard.data.modality import AnyBatch
from regard.data.special_tokens import PAD
from regard.losses.types import Loss
from regard.training.experiment import Experiment, Repeating
from regard.training.gradient import accumulate, out_of_memory, release

MOST = 256
"""How many shapes are captured; what comes after is computed kernel by kernel."""
MANY, FEW = 8, 4
"""In how many steps lengths double: those of texts, and those of the texts of pictures."""
Shape = tuple[torch.Size, ...]


def covers(experiment: Experiment, device: torch.device) -> str | None:
    """None where updates of this experiment can be captured, else the reason why not."""
    if device.type != "cuda":
        return "needs a CUDA device"
    if not experiment.config.train.cuda_graphs:
        return "train.cuda_graphs is false"
    if not isinstance(experiment.loss, Repeating) or not experiment.loss.repeats:
        return "needs a loss that repeats itself: one without self-decoding, risk, links or matching"
    return None


class Captured(NamedTuple):
    """A graph, the batch that it reads and the loss that it leaves."""

    graph: torch.cuda.CUDAGraph
    batch: AnyBatch
    loss: Loss


class Graphed:
    """Calls `cost` and its backward pass; batches of a shape that has been seen before are replayed.

    Gradients are added to those that are there, which must stay where they are: zero them, never drop them. Dropout is
    drawn from the generator's seed as it is at the time of the replay. The first batch of a shape is computed as it always
    was, so that whatever a library sets up on first use is set up outside of any graph.
    """

    def __init__(self, cost: Callable[[AnyBatch], Loss], device: torch.device, learned: Sequence[Tensor]):
        self.cost, self.device, self.learned, self.most = cost, device, learned, MOST
        self.seen = set[Shape]()
        self.captured = dict[Shape, Captured]()
        self.pool = torch.cuda.graph_pool_handle()

    def __call__(self, batch: AnyBatch) -> Loss:
        """The loss of a batch, its gradients added to those of the batches before."""
        batch = rounded(batch)
        shape = _shape(batch)
        if shape not in self.captured and shape in self.seen and len(self.captured) < self.most:
            try:
                self.captured[shape] = self.capture(batch)
            except (RuntimeError, MemoryError) as error:
                if not out_of_memory(error):
                    raise
                self.forget()
        self.seen.add(shape)
        if shape in self.captured:
            return self.replay(self.captured[shape], batch)
        return self.run(batch.to(self.device))

    def forget(self) -> None:
        """Give back what the graphs hold, and capture no more: where memory is short, it is better spent on batches."""
        self.captured, self.most = {}, 0
        release()

    def run(self, batch: AnyBatch) -> Loss:
        """The same, kernel by kernel."""
        loss = self.cost(batch)
        accumulate(loss.total, self.learned)
        return _detached(loss)

    def capture(self, batch: AnyBatch) -> Captured:
        """Record what `run` would do, without doing it."""
        held, graph = _plain(batch).to(self.device), torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            loss = self.run(held)
        return Captured(graph, held, loss)

    def replay(self, captured: Captured, batch: AnyBatch) -> Loss:
        """Do what was recorded, with this batch. All graphs share their memory, so the loss is copied out of it at once."""
        for held, given in zip(_tensors(captured.batch), _tensors(batch), strict=True):
            held.copy_(given, non_blocking=True)
        captured.graph.replay()
        loss = captured.loss
        parts = {name: _number(value, loss.total).clone() for name, value in loss.parts.items()}
        return Loss(loss.total.clone(), _number(loss.tokens, loss.total).clone(), parts)


def rounded(batch: AnyBatch) -> AnyBatch:
    """The same batch with a few more columns of padding, so that there are few shapes."""
    if not isinstance(batch, ImageBatch):
        return batch._replace(source=_wider(batch.source), target=None if batch.target is None else _wider(batch.target))
    target, labels, question = (
        None if text is None else _wider(text, FEW) for text in (batch.target, batch.labels, batch.question)
    )
    return batch._replace(source=_larger(batch.source), target=target, labels=labels, question=question)


def up(length: int, steps: int = MANY) -> int:
    """A length rounded up to few others: 4, 8, ... 32, 40, ... 64, 80, ... 128, 160, ...

    It grows by less than 2 in `steps`, or to a multiple of 4. In FEW steps, which are for the texts of pictures, where each
    of many sizes meets each length: 4, 8, 12, 16, 24, 32, 48, ...
    """
    step = 4
    while length > steps * step:
        step *= 2
    return -(-length // step) * step


def pinned(batch: AnyBatch) -> AnyBatch:
    """The same batch in memory that a GPU can read by itself, while the host goes on."""
    moved = {
        name: _changed(value, Tensor.pin_memory)
        for name, value in batch._asdict().items()
        if value is not None and name != "records"
    }
    return batch._replace(**moved)


def _wider(padded: Padded, steps: int = MANY) -> Padded:
    more = up(padded.data.shape[1], steps) - padded.data.shape[1]
    if not more or padded.documents is not None:  # packed rows are all of one length
        return padded
    return Padded(F.pad(padded.data, (0, more), value=PAD), F.pad(padded.keep, (0, more), value=False))


def _larger(pictures: Images) -> Images:
    high, wide = pictures.keep.shape[1:]
    sides = (0, up(wide) - wide, 0, up(high) - high)
    if not any(sides):
        return pictures
    return Images(F.pad(pictures.data, sides), F.pad(pictures.keep, sides, value=False))


def _shape(batch: AnyBatch) -> Shape:
    return tuple(each.shape for each in _tensors(batch))


def _plain(batch: AnyBatch) -> AnyBatch:
    """A copy without its records, which a graph does not read."""
    copies = {name: _changed(value, torch.clone) for name, value in batch._asdict().items() if name != "records"}
    return type(batch)(**copies)


def _changed(value: Tensor | tuple[Tensor | None, ...] | None, change: Callable[[Tensor], Tensor]) -> Any:
    """A tensor, or each of several, changed; None stays what it is."""
    if value is None or isinstance(value, Tensor):
        return value if value is None else change(value)
    made: Any = type(value)
    return made(*(None if each is None else change(each) for each in value))


def _tensors(batch: AnyBatch) -> Iterable[Tensor]:
    for name, value in batch._asdict().items():
        if isinstance(value, Tensor):
            yield value
        elif value is not None and name != "records":
            yield from (each for each in value if each is not None)


def _detached(loss: Loss) -> Loss:
    """All numbers on the device: one that is copied there later would be waited for."""
    total = loss.total.detach()
    parts = {name: _number(value, total).detach() for name, value in loss.parts.items()}
    return Loss(total, _number(loss.tokens, total), parts)


def _number(value: float | Tensor, like: Tensor) -> Tensor:
    return value if isinstance(value, Tensor) else torch.full((), float(value), device=like.device)
