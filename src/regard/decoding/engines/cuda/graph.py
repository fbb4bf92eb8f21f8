"""CUDA graph capture and replay."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

Pool = Any
"""Memory pool handle that graphs share."""


class ReplayedGraph:
    """CUDA graph of `work`, which reads and writes tensors at fixed addresses.

    The first call runs eagerly, so that libraries initialise outside of any graph; the second is captured. On a CPU there is
    nothing to capture. Graphs of one `pool` share their memory: they are never replayed at the same time, and none leaves
    anything there that is read after another has run.
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
        """Capture the work as a graph, without running it."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(self.device)
        here = torch.cuda.device(self.device)
        with here, torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
            self.work()
        return graph


def create_pool(device: torch.device) -> Pool | None:
    """Create a memory pool for graphs; None on a CPU."""
    if device.type != "cuda":
        return None
    return torch.cuda.graph_pool_handle()
