"""The device to train on."""

import torch

from regard.config import ConfigError


def choose(name: str) -> torch.device:
    """The device called `name`; "auto" is the first GPU where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"train.device needs to be auto, cpu, cuda or cuda:1, got {name!r}") from error
    there = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= there:
        raise ConfigError(f"train.device is {name!r}, and this machine has {there} GPUs; auto takes what there is")
    return device
