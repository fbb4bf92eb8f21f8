"""Every test starts from the same seed, on one thread, and draws the same examples each time."""

import fcntl
import os
import signal
import sys

os.environ.pop("COLUMNS", None)  # output is wrapped to it
os.environ.setdefault("OMP_NUM_THREADS", "1")  # each worker of pytest-xdist has one core, and what it starts has no other
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # some virtual machines announce AMX and die of it

import pytest
import torch
from hypothesis import settings

from .chromium import browser, watched  # noqa: F401  # here, so that all tests of a process share one browser

if not torch.cuda.is_available():  # before anything imports triton, which looks once
    os.environ.setdefault("TRITON_INTERPRET", "1")
torch.set_num_threads(1)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests of a hang-up send one, also where the run itself ignores them (nohup)
settings.register_profile("regard", derandomize=True, deadline=None, database=None)
settings.load_profile("regard")


def pytest_ignore_collect(collection_path, config):
    """In the run of what is marked `unhooked`, importing the files without that mark would take longer than many tests."""
    if config.option.markexpr.startswith("unhooked") and collection_path.suffix == ".py":
        return b"unhooked" not in collection_path.read_bytes() or None
    return None


def pytest_runtest_protocol(item, nextitem):
    """As pytest does, from a frame that takes far more of Python's stack than it needs: what it calls has the rest.

    CPython takes its stack 16 kB at a time, and gives them back to the system once they are empty. Where a loop calls across
    such an edge, each call maps and unmaps memory: Triton's interpreter is then two to four times slower. The wrappers of
    the shape hook had put an edge there; a line in a test may.
    """
    return item.config.pluginmanager.get_plugin("runner").pytest_runtest_protocol(item, nextitem)


# in words: 256 kB and a little, rounded up to 512 kB, of which the half that is left holds hundreds of frames
pytest_runtest_protocol.__code__ = pytest_runtest_protocol.__code__.replace(co_stacksize=2**15)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _undecided():
    """No decision of one test, which may have replaced a kernel, is left for the next."""
    if "regard.attention.attend" in sys.modules:
        from regard.attention import attend, dispatch  # noqa: F401

        dispatch.forget_decisions()
        sys.modules["regard.attention.attend"].DIRECT.clear()


@pytest.fixture(scope="session")
def once(tmp_path_factory, request):
    """Fills a folder once for all workers: whoever asks first does, and the others wait. Nobody may change what is in it."""
    folder = tmp_path_factory.getbasetemp()
    home = folder.parent if hasattr(request.config, "workerinput") else folder

    def filled(name, fill):
        with open(home / f"{name}.lock", "a+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not lock.seek(0, os.SEEK_END):  # nobody has written that it is filled
                fill(home / name)
                lock.write("filled")
        return home / name

    return filled
