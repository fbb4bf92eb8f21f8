"""The order in which PyTorch's backends are asked, and whether any of them is fused.

On an H200 cuDNN is 1.5 to 1.8 times as fast as PyTorch's flash backend. Some of what it takes it gets wrong, so it is
asked for nothing but what it does well:

    a mask           the gradient of queries is NaN at lengths of 64 modulo 128, https://github.com/pytorch/pytorch/issues/196678
    grouped heads    wrong answers on a B200, https://github.com/pytorch/pytorch/issues/193893
    one query        gradients of the memory are NaN, https://github.com/NVIDIA/cudnn-frontend/issues/1072
    before 9.15.1    lengths that are no multiple of 128, https://github.com/pytorch/pytorch/issues/169849

PyTorch's own order may begin with it in all of these, the last alone excepted. What no backend takes would go to "math",
which forms queries x keys: a reason is given for it instead, and another kernel or the reference is chosen in the open.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend

from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.types import Request

DEVICES = ("cuda",)
"""Where there is a choice. Tests add the CPU, which has none."""

CUDNN, FLASH = SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION
EFFICIENT, MATH = SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH
Order = tuple[SDPBackend, ...]
FAST: Order = (CUDNN, FLASH, EFFICIENT, MATH)
SAFE: Order = (FLASH, EFFICIENT, MATH)
"""Without cuDNN: what stands behind math is never reached."""

HALVES = (torch.float16, torch.bfloat16)
PREFERRED = (9, 10)
"""Generations of GPUs on which cuDNN is the faster one: Hopper and Blackwell."""
FIXED, TILE = 91501, 128
"""The first version of cuDNN that is right at every length, and what lengths had to be multiples of before."""


class Machine(NamedTuple):
    """A GPU and what it has: compute capability, version of cuDNN (0: none), and whether it is AMD's."""

    capability: tuple[int, int]
    cudnn: int
    hip: bool = False


class Kind(NamedTuple):
    """All that the choice depends on; lengths only by what they are to a backend."""

    dtype: torch.dtype
    size: int
    value: int
    masked: bool
    causal: bool
    grouped: bool
    single: bool
    """One query, or one key."""
    square: bool
    whole: bool
    """Lengths are multiples of a tile."""
    machine: Machine


class Choice(NamedTuple):
    """The backends to ask, first to last, and why all but math would refuse, or None."""

    order: Order
    unfused: str | None


MACHINES: dict[int, Machine] = {}
KNOWN: dict[Kind, Choice] = {}


def machine(index: int) -> Machine:
    """The GPU of this number, asked once; a compiled graph takes it for a constant."""
    if index not in MACHINES:
        version = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
        MACHINES[index] = Machine(torch.cuda.get_device_capability(index), version or 0, torch.version.hip is not None)
    return MACHINES[index]


machine._dynamo_marked_constant = True  # type: ignore[attr-defined]  # assume_constant_result, which imports the compiler


def kind(request: Request) -> Kind:
    """What a request is to the backends."""
    query, keys, values = request.query, request.keys, request.values
    lengths = query.shape[2], keys.shape[2]
    causal = plainly_causal(request)
    return Kind(
        dtype=seen_dtype(query),
        size=keys.shape[3],  # of the products, which a score may make of smaller queries
        value=values.shape[3],
        masked=not causal and type(request.scope) is not Everywhere,
        causal=causal,
        grouped=not query.shape[1] == keys.shape[1] == values.shape[1],
        single=min(lengths) == 1,
        square=lengths[0] == lengths[1],
        whole=max(lengths[0] % TILE, lengths[1] % TILE) == 0,
        machine=machine(query.device.index or 0),
    )


def seen_dtype(query: Tensor) -> torch.dtype:
    """The precision that the backend will see, which autocast lowers."""
    if query.dtype != torch.float64 and torch.is_autocast_enabled(query.device.type):
        return torch.get_autocast_dtype(query.device.type)
    return query.dtype


def plainly_causal(request: Request) -> bool:
    """Backends' own causal mask begins at the first key; an exported graph keeps a mask, which fits any lengths."""
    if type(request.scope) is not Causal or torch.compiler.is_exporting():
        return False
    return not isinstance(request.offset, Tensor) and request.offset == 0


def choose(asked: Kind) -> Choice:
    """What to do with a kind, decided once."""
    if torch.compiler.is_compiling():  # a graph holds the decision, and would guard on all that were made before
        return Choice(order(asked), unfused(asked))
    found = KNOWN.get(asked)
    if found is None:
        found = KNOWN[asked] = Choice(order(asked), unfused(asked))
    return found


def order(asked: Kind) -> Order:
    """FAST where cuDNN is both right and quick. What it cannot do besides, PyTorch finds out and asks the next."""
    wrong = asked.masked or asked.grouped or asked.single or (asked.causal and not asked.square)
    right = not wrong and (asked.machine.cudnn >= FIXED or asked.whole)
    return FAST if right and asked.machine.capability[0] in PREFERRED else SAFE


def unfused(asked: Kind) -> str | None:
    """Why every backend but math would refuse, or None."""
    if asked.machine.hip or flash(asked):
        return None  # AMD's backends have rules of their own
    modern = asked.machine.capability[0] >= 8
    if asked.dtype not in (torch.float32, torch.float16, *((torch.bfloat16,) if modern else ())):
        return f"needs float32, float16 or bfloat16 that this GPU computes in, got {str(asked.dtype).removeprefix('torch.')}"
    step = _step(asked)
    if asked.size % step or asked.value % step:
        why = "under a mask " if asked.masked else ""
        return f"needs heads of a multiple of {step} {why}to be fused on a GPU, got {asked.size} and {asked.value}"
    return None


def _step(asked: Kind) -> int:
    """What the memory-efficient backend needs the size of a head to be a multiple of."""
    generation = asked.machine.capability[0]
    if asked.dtype in HALVES:
        return 8 if generation >= 7 else 1
    return 4 if generation >= 8 else 1


def flash(asked: Kind) -> bool:
    """Whether the flash backend takes it, which pads heads of any size and knows groups of heads."""
    fits = asked.size == asked.value <= 256 and not asked.masked and (asked.square or not asked.causal)
    return fits and asked.dtype in HALVES and asked.machine.capability[0] >= 8
