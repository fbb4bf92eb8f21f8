"""Every test starts from the same seed, on one thread, and draws the same examples each time."""

import os

os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")  # some virtual machines announce AMX and die of it

import pytest
import torch
from hypothesis import settings

from .chromium import browser, watched  # noqa: F401  # here, so that all tests of a process share one browser

if not torch.cuda.is_available():  # before anything imports triton, which looks once
    os.environ.setdefault("TRITON_INTERPRET", "1")
torch.set_num_threads(1)  # each worker of pytest-xdist has one core
settings.register_profile("regard", derandomize=True, deadline=None, database=None)
settings.load_profile("regard")


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
