import pytest
import torch

from regard.errors import ConfigError
from regard.training.device import choose


def test_auto_takes_what_there_is():
    assert choose("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert choose("cpu") == torch.device("cpu")


def test_a_device_that_does_not_exist_is_named():
    with pytest.raises(ValueError, match=r"needs to be auto, cpu, cuda or cuda:1, got 'gpu'"):
        choose("gpu")
    with pytest.raises(ValueError, match=r"train.device is 'cuda:99', and this machine has \d+ GPUs"):
        choose("cuda:99")


def test_a_device_that_pytorch_was_not_built_for_is_refused():
    with pytest.raises(ConfigError, match=r"train.device is 'fpga', which PyTorch cannot use here"):
        choose("fpga")
