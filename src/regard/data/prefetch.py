"""Make the next batch while the model works on this one."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from regard.data.modality import AnyBatch, Batches


class Ahead:
    """Batches by number, each made one call before it is asked for, and made `ready`: brought into the form that the device
    takes it in. Since a batch is a pure function of its number, this changes when it is made and nothing else."""

    def __init__(self, batches: Batches, ready: Callable[[AnyBatch], AnyBatch] | None = None):
        self.batches, self.ready = batches, ready
        self.worker = ThreadPoolExecutor(1, thread_name_prefix="regard-batches")
        self.coming: tuple[int, Future[AnyBatch]] | None = None

    def batch(self, number: int) -> AnyBatch:
        """The batch of this number; the one after it is begun."""
        batch = self.coming[1].result() if self.coming is not None and self.coming[0] == number else self.make(number)
        self.coming = number + 1, self.worker.submit(self.make, number + 1)
        return batch

    def make(self, number: int) -> AnyBatch:
        """The batch of this number, ready."""
        batch = self.batches.batch(number)
        return batch if self.ready is None else self.ready(batch)

    def __enter__(self) -> "Ahead":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.worker.shutdown(wait=True, cancel_futures=True)
        if callable(close := getattr(self.batches, "close", None)):  # those who make batches ahead themselves
            close()
