"""The device to train on."""

import torch

from regard.errors import ConfigError


def select_device(name: str) -> torch.device:
    """The device called `name`; "auto" is the first GPU where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"--device or train.device needs to be auto, cpu, cuda or cuda:1, got {name!r}") from error
    gpus = torch.cuda.device_count()
    if device.type == "cuda" and (device.index or 0) >= gpus:
        raise ConfigError(
            f"--device or train.device is {name!r}, and this machine has {gpus} GPUs; auto takes what there is"
        )
    if device.type not in ("cpu", "cuda"):
        try:
            torch.empty(0, device=device)
        except (RuntimeError, AssertionError) as error:
            raise ConfigError(
                f"--device or train.device is {name!r}, which PyTorch cannot use here; auto takes what there is"
            ) from error
    return device
