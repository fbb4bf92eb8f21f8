import pytest
import torch


@pytest.fixture
def two_threads():
    """Two threads, whatever the machine has; there is enough work for both where this is asked for."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)
