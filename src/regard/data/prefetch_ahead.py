"""Things made before they are asked for, several at once, in threads: what follows number n is probably n + 1."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class Window(Generic[Thing]):
    """What `make` gives for a number, begun up to `width` calls ahead. Since that depends on the number alone, this changes
    when a thing is made and nothing else. With a width of 0 nothing is made ahead; nothing beyond `end` ever is."""

    def __init__(self, make: Callable[[int], Thing], width: int, end: int | None = None):
        if width < 0:
            raise ValueError(f"reading ahead needs a width of 0 or more, got {width}")
        self.make, self.width, self.end = make, width, end
        self._coming: dict[int, Future[Thing]] = {}
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None

    def __call__(self, number: int) -> Thing:
        """The thing of this number; those after it are begun, and others that were begun are let go."""
        if not self.width:
            return self.make(number)
        last = number + self.width + 1 if self.end is None else min(self.end, number + self.width + 1)
        with self._lock:
            begun = self._coming
            wanted = {each: begun.pop(each) if each in begun else self._begin(each) for each in range(number, last)}
            for future in begun.values():
                future.cancel()
            asked = wanted.pop(number)
            self._coming = wanted
        return asked.result()

    def close(self) -> None:
        """End the threads; a later call begins new ones."""
        with self._lock:
            pool, self._pool, self._coming = self._pool, None, {}
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)

    def _begin(self, number: int) -> "Future[Thing]":
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.width, thread_name_prefix="regard-pictures")
        return self._pool.submit(self.make, number)
