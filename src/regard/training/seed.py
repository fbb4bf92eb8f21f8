"""Randomness as a pure function of (seed, step): what a step draws does not depend on what came before it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def mix_seed(seed: int, step: int) -> int:
    """One number of 63 bits from two; neighbours have nothing in common (SplitMix64, Steele et al. 2014, figure 16)."""
    number = (seed * 0x9E3779B97F4A7C15 + step * 0xD1B54A32D192ED03 + 0x8CB92BA72F3D8DD7) & (2**64 - 1)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        number = ((number ^ (number >> shift)) * factor) & (2**64 - 1)
    return (number ^ (number >> 31)) >> 1


def reseed(seed: int, step: int, device: torch.device) -> None:
    """Set the generators that dropout and sampling draw from."""
    torch.default_generator.manual_seed(mix_seed(seed, step))
    if device.type == "cuda":
        torch.cuda.manual_seed_all(mix_seed(seed, step))


@contextmanager
def deterministic(wanted: bool) -> Iterator[None]:
    """Only operations that give the same bits every time, where that is asked for."""
    before, warn = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    if wanted:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it
        torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn)
