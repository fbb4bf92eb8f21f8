"""Attention mechanisms of the literature: compositions of stages, some with state between steps."""

from typing import TYPE_CHECKING, Any

from regard import registry

if TYPE_CHECKING:  # names that are imported when they are first used
    from regard.attention.mechanisms.bahdanau import Bahdanau
    from regard.attention.mechanisms.channelwise import Channelwise
    from regard.attention.mechanisms.coverage import Coverage
    from regard.attention.mechanisms.dynamic_convolution import DynamicConvolution
    from regard.attention.mechanisms.fertility import Fertility
    from regard.attention.mechanisms.forward import Forward
    from regard.attention.mechanisms.gated_coverage import GatedCoverage
    from regard.attention.mechanisms.gmm import Gmm
    from regard.attention.mechanisms.grid_coverage import GridCoverage
    from regard.attention.mechanisms.linear import Linear
    from regard.attention.mechanisms.local_m import LocalM
    from regard.attention.mechanisms.local_p import LocalP
    from regard.attention.mechanisms.location_sensitive import LocationSensitive
    from regard.attention.mechanisms.luong import Luong
    from regard.attention.mechanisms.memory_network import MemoryNetwork
    from regard.attention.mechanisms.mocha import Mocha
    from regard.attention.mechanisms.monotonic import Monotonic
    from regard.attention.mechanisms.pointer import Pointer
    from regard.attention.mechanisms.transformer import Transformer

__all__ = [
    "Bahdanau",
    "Channelwise",
    "Coverage",
    "DynamicConvolution",
    "Fertility",
    "Forward",
    "GatedCoverage",
    "Gmm",
    "GridCoverage",
    "Linear",
    "LocalM",
    "LocalP",
    "LocationSensitive",
    "Luong",
    "MemoryNetwork",
    "Mocha",
    "Monotonic",
    "Pointer",
    "Transformer",
]


if not TYPE_CHECKING:  # to a type checker an unknown name is an error

    def __getattr__(name: str) -> Any:
        return registry.find_attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
