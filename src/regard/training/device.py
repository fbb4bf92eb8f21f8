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


def find_gpu_memory(device: torch.device) -> int:
    """Bytes of a GPU, whatever of them is free; 0 for a CPU."""
    return torch.cuda.get_device_properties(device).total_memory if device.type == "cuda" else 0


def has_bf16(device: torch.device) -> bool:
    """True for a GPU that computes in bf16 itself."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device)[0] >= 8
