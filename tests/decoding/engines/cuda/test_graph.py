from contextlib import nullcontext

import pytest
import torch

from regard.decoding.engines.cuda.graph import ReplayedGraph, create_pool

CPU = torch.device("cpu")


def test_on_a_cpu_work_is_done_each_time():
    data = torch.zeros(1)
    work = ReplayedGraph(lambda: data.add_(1), CPU, create_pool(CPU))
    for _ in range(3):
        work()
    assert data.item() == 3
    assert work.graph is None


def test_the_first_call_is_made_kernel_by_kernel_and_the_second_recorded(monkeypatch):
    """Of a GPU only that is seen here: what is called, and in which order."""
    heard = []

    class Graph:
        def replay(self):
            heard.append("replay")

    work = ReplayedGraph(lambda: heard.append("work"), torch.device("cuda"), None)
    monkeypatch.setattr(torch.cuda, "device", lambda where: nullcontext())
    monkeypatch.setattr(work, "record", lambda: heard.append("record") or Graph())
    for _ in range(3):
        work()
    assert heard == ["work", "record", "replay", "replay"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_graph_does_the_same_each_time():
    where = torch.device("cuda")
    data = torch.zeros(1, device=where)
    work = ReplayedGraph(lambda: data.mul_(2).add_(1), where, create_pool(where))
    for _ in range(4):
        work()
    assert data.item() == 15
