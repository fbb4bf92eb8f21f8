"""Prefetch: values by number, computed in threads before they are needed; number n is usually followed by n + 1.

A value depends on its number alone, so prefetching changes when it is computed and nothing else.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from types import TracebackType
from typing import Generic, TypeVar
from weakref import WeakMethod

from regard.data.modality import AnyBatch, Batches

Value = TypeVar("Value")


class Prefetcher(Generic[Value]):
    """Values of `make` by number; each call begins the `width` next ones, up to `end`, in as many threads.

    With a width of 0 nothing is prefetched. With `inline`, a value that nobody has begun is computed in the calling thread,
    before others are begun.
    """

    def __init__(self, make: Callable[[int], Value], width: int, end: int | None = None, *, inline: bool = False):
        if width < 0:
            raise ValueError(f"reading ahead needs a width of 0 or more, got {width}")
        self.make, self.width, self.end, self.inline = make, width, end, inline
        self._pending: dict[int, Future[Value]] = {}
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None

    def __call__(self, number: int) -> Value:
        """Value of this number; the next ones are begun, and others that were begun are cancelled."""
        if not self.width:
            return self.make(number)
        if self.inline and number not in self._pending:
            value = self.make(number)
            self._begin_range(number + 1, number)
            return value
        future = self._begin_range(number, number).pop(number)
        return future.result()

    def close(self) -> None:
        """End the threads; a later call begins new ones."""
        with self._lock:
            pool, self._pool, self._pending = self._pool, None, {}
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _begin_range(self, first: int, number: int) -> "dict[int, Future[Value]]":
        """Futures from `first` to the last that is prefetched with `number`; all but that of `number` stay pending."""
        last = number + self.width + 1 if self.end is None else min(self.end, number + self.width + 1)
        with self._lock:
            begun = self._pending
            futures = {index: begun.pop(index) if index in begun else self._begin(index) for index in range(first, last)}
            for future in begun.values():
                future.cancel()
            self._pending = {index: future for index, future in futures.items() if index != number}
        return futures

    def _begin(self, number: int) -> "Future[Value]":
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.width, thread_name_prefix="regard-prefetch")
        return self._pool.submit(self.make, number)


class PrefetchedBatches:
    """Batches of a training by number, the next one computed while the model works on this one.

    `prepare` brings a batch into the form in which the device takes it, in the same thread.
    """

    def __init__(self, batches: Batches, prepare: Callable[[AnyBatch], AnyBatch] | None = None):
        self.batches, self.prepare = batches, prepare
        self._prefetcher = Prefetcher(self._make, 1, inline=True)

    def batch(self, number: int) -> AnyBatch:
        """Batch of this number; the next one is begun."""
        return self._prefetcher(number)

    def _make(self, number: int) -> AnyBatch:
        batch = self.batches.batch(number)
        return batch if self.prepare is None else self.prepare(batch)

    def __enter__(self) -> "PrefetchedBatches":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._prefetcher.close()
        if callable(close := getattr(self.batches, "close", None)):  # loaders that prefetch too
            close()


def bind_weakly(method: Callable[[int], Value]) -> Callable[[int], Value]:
    """Method that does not keep its owner alive, for attributes of the owner itself.

    An object that refers to its own bound method would stay, with its threads and its memory, until the next garbage
    collection.
    """
    reference = WeakMethod(method)

    def call(number: int) -> Value:
        bound = reference()
        if bound is None:
            raise ReferenceError("the owner of this method is gone; keep it for as long as the method is called")
        return bound(number)

    return call
