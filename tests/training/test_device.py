import pytest
import torch

from regard.errors import ConfigError
from regard.training.device import select_device


def test_auto_takes_what_there_is():
    assert select_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert select_device("cpu") == torch.device("cpu")


def test_a_device_that_does_not_exist_is_named():
    with pytest.raises(ValueError, match=r"needs to be auto, cpu, cuda or cuda:1, got 'gpu'"):
        select_device("gpu")
    with pytest.raises(ValueError, match=r"train.device is 'cuda:99', and this machine has \d+ GPUs"):
        select_device("cuda:99")


def test_a_device_that_pytorch_was_not_built_for_is_refused():
    with pytest.raises(ConfigError, match=r"train.device is 'fpga', which PyTorch cannot use here"):
        select_device("fpga")
