"""The gradient of one update, in as many parts as the memory asks for."""

import gc
import re
from collections.abc import Callable, Sequence
from itertools import chain, pairwise

import torch
from torch import Tensor

from regard.data.modality import AnyBatch
from regard.errors import FailedError
from regard.losses.types import Loss

SIGNS = re.compile(
    r"out of memory|can't allocate memory|not enough memory|cannot allocate memory|bad_alloc|failed to allocate"
    r"|could not (create|execute) a (primitive|memory object)(?! descriptor)",
    re.IGNORECASE,
)
"""Messages of libraries when memory does not suffice; the last is oneDNN's, whose primitives need memory of their own. One
that cannot *describe* a primitive has none for the shape or the machine, which is another matter."""


def compute_gradient(
    batches: Sequence[AnyBatch], parts: int, backward: Callable[[AnyBatch], Loss], begin: Callable[[], None]
) -> tuple[Loss, int]:
    """Add up the gradients of several batches, each cut into `parts`; the loss, and the parts it took.

    Losses are sums, so parts and batches add up to the same gradient however they are cut. When the memory does not
    suffice, the step begins again with twice the parts; when a single row is too much, there is nothing left to cut.
    """
    while True:
        begin()
        try:
            losses = []
            for piece in chain.from_iterable(split(batch, parts) for batch in batches):
                losses.append(backward(piece))
            return _sum(losses), parts
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error):
                raise
            rows = max(batch.rows for batch in batches)
            if parts >= rows:
                raise FailedError(describe_remedy(error, "with a single sequence")) from error
        parts *= 2  # outside the handler: what the failed attempt held is free by now
        release_memory()


def accumulate(total: Tensor, learned: Sequence[Tensor]) -> None:
    """Add the gradients of a sum to those that are there, in one go: one by one, each would be a kernel of its own."""
    gradients = torch.autograd.grad(total, list(learned), allow_unused=True)
    pairs = [(parameter, gradient) for parameter, gradient in zip(learned, gradients, strict=True) if gradient is not None]
    existing = [(parameter.grad, gradient) for parameter, gradient in pairs if parameter.grad is not None]
    if existing:
        torch._foreach_add_([before for before, _ in existing], [more for _, more in existing])
    for parameter, gradient in pairs:
        if parameter.grad is None:
            parameter.grad = torch.empty_like(parameter).copy_(gradient)


def split(batch: AnyBatch, parts: int) -> list[AnyBatch]:
    """A batch as up to `parts` smaller ones, by rows, each without the columns that none of its rows needs."""
    rows = batch.rows
    parts = max(1, min(parts, rows))
    if parts == 1:
        return [batch]
    edges = [rows * number // parts for number in range(parts + 1)]
    return [_rows(batch, first, last) for first, last in pairwise(edges)]


def out_of_memory(error: BaseException) -> bool:
    """Return True if an error means that the device or the machine is out of memory."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and SIGNS.search(str(error)) is not None


def describe_remedy(error: BaseException, where: str) -> str:
    """Advice for a batch that runs out of memory and cannot be split further."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return (
        f"out of memory {where} ({reason}). Lower data.max_source_length and data.max_target_length (of pictures "
        "data.height and data.width) or model.hidden_size, or use train.precision=bf16; the last checkpoint is whole"
    )


def release_memory() -> None:
    """Give back what the device has cached, and what only cycles still hold."""
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()


def _rows(batch: AnyBatch, first: int, last: int) -> AnyBatch:
    return batch.select_rows(range(first, last))


def _sum(losses: Sequence[Loss]) -> Loss:
    parts: dict[str, float | Tensor] = {}
    for loss in losses:
        for name, value in loss.parts.items():
            parts[name] = parts.get(name, 0.0) + value
    first, *rest = losses
    total, tokens = first.total, first.tokens
    for loss in rest:
        total, tokens = total + loss.total, tokens + loss.tokens
    return Loss(total, tokens, parts)
