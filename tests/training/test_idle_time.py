import pytest
import torch

from regard.training import throughput

CUDA = torch.device("cuda")


@pytest.fixture
def clock(monkeypatch):
    """A GPU whose events are taken when this clock says."""
    now = [0.0]

    class Event:
        def __init__(self, device):
            assert device == CUDA
            self.at = now[0]

        def elapsed_time(self, other):
            return 1000 * (other.at - self.at)

    monkeypatch.setattr(throughput, "_record_event", Event)
    return now


def test_a_gap_reaches_from_one_update_to_the_next(clock):
    seen = throughput.IdleTime(CUDA)
    assert seen.begin() is None  # nothing was before it
    clock[0] = 2.0
    seen.end()
    clock[0] = 2.5
    gap = seen.begin()
    clock[0] = 9.0
    seen.end()
    assert gap.seconds() == pytest.approx(0.5)
    assert seen.begin().seconds() == 0.0


def test_what_is_done_in_a_pause_is_not_counted(clock):
    seen = throughput.IdleTime(CUDA)
    seen.end()
    seen.pause()
    clock[0] = 60.0
    assert seen.begin() is None


def test_a_cpu_is_never_asked():
    seen = throughput.IdleTime(torch.device("cpu"))
    seen.end()
    assert seen.begin() is None
