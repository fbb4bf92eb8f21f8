"""Work that is recorded once as a CUDA graph, and from then on replayed."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

Pool = Any
"""Memory that graphs share, by its number."""


class Replayed:
    """Calls `work`, which reads and writes tensors that stay where they are, and does the same to them each time.

    The first call is made kernel by kernel, so that whatever a library sets up on first use is set up outside of any graph;
    the second is recorded. On a CPU there is nothing to record. Graphs of one `pool` share their memory: they are never
    replayed at the same time, and none of them leaves anything there that somebody reads after another has run.
    """

    def __init__(self, work: Callable[[], None], device: torch.device, pool: Pool | None = None):
        self.work, self.device, self.pool = work, device, pool
        self.warm = False
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        if self.graph is None and self.warm and self.device.type == "cuda":
            self.graph = self.record()
        if self.graph is not None:
            self.graph.replay()
            return
        with torch.cuda.device(self.device) if self.device.type == "cuda" else nullcontext():
            self.work()
        self.warm = True

    def record(self) -> torch.cuda.CUDAGraph:
        """The work as a graph, without doing it."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(self.device)
        here = torch.cuda.device(self.device)
        with here, torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            self.work()
        return graph


def pool(device: torch.device) -> Pool | None:
    """Memory for graphs to share; None where there are none."""
    if device.type != "cuda":
        return None
    return torch.cuda.graph_pool_handle()
