"""Choice of the SDPA backends: their priority for a request, and the reason where none of them is fused.

On an H200 cuDNN is 1.5 to 1.8 times as fast as PyTorch's flash backend. It has bugs, so that it is not used for:

    a mask           the gradient of queries is NaN at lengths of 64 modulo 128, https://github.com/pytorch/pytorch/issues/196678
    grouped heads    wrong answers on a B200, https://github.com/pytorch/pytorch/issues/193893
    one query        gradients of the memory are NaN, https://github.com/NVIDIA/cudnn-frontend/issues/1072
    before 9.15.1    lengths that are no multiple of 128, https://github.com/pytorch/pytorch/issues/169849

PyTorch's own order may begin with it in all of these except the last. A request that no fused backend takes would go to
"math", which forms queries x keys: `unfused` gives the reason instead, and dispatch selects another kernel.

`set_priority` sets an order for one call. torch.nn.attention.sdpa_kernel does this but also disables and enables every
backend, which takes tens of microseconds on a busy host, as long as a short attention runs. Setting the order alone takes
one or two, and respects what the user has disabled. The order is global to the process, so that threads hold a lock.
"""

from contextlib import AbstractContextManager
from threading import RLock
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.types import Request

DEVICES = ("cuda",)
"""Devices with a choice of backends. Tests add the CPU, which has none."""

CUDNN, FLASH = SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION
EFFICIENT, MATH = SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH
Order = tuple[SDPBackend, ...]
FAST: Order = (CUDNN, FLASH, EFFICIENT, MATH)
SAFE: Order = (FLASH, EFFICIENT, MATH)
"""Priority without cuDNN: backends after math are never reached."""

HALVES = (torch.float16, torch.bfloat16)
PREFERRED = (9, 10)
"""Major compute capabilities on which cuDNN is faster: Hopper and Blackwell."""
FIXED, TILE = 91501, 128
"""The first version of cuDNN that is correct at every length, and the multiple that lengths needed before."""


class Machine(NamedTuple):
    """A GPU's compute capability, version of cuDNN (0: none), and whether it is AMD's."""

    capability: tuple[int, int]
    cudnn: int
    hip: bool = False


class BackendRequest(NamedTuple):
    """Properties of a request that the choice depends on."""

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
    """Backends in their priority, and the reason why only math would run, or None."""

    order: Order
    unfused: str | None


MACHINES: dict[int, Machine] = {}
CHOICES: dict[BackendRequest, Choice] = {}


def find_machine(index: int) -> Machine:
    """The GPU of this index, cached; a constant of a compiled graph."""
    if index not in MACHINES:
        version = torch.backends.cudnn.version()  # type: ignore[no-untyped-call]
        MACHINES[index] = Machine(torch.cuda.get_device_capability(index), version or 0, torch.version.hip is not None)
    return MACHINES[index]


find_machine._dynamo_marked_constant = True  # type: ignore[attr-defined]  # assume_constant_result, which imports the compiler


def describe_request(request: Request) -> BackendRequest:
    """The properties of a request."""
    query, keys, values = request.query, request.keys, request.values
    lengths = query.shape[2], keys.shape[2]
    causal = is_plainly_causal(request)
    return BackendRequest(
        dtype=find_dtype(query),
        size=keys.shape[3],  # of the products, which a score may form from smaller queries
        value=values.shape[3],
        masked=not causal and type(request.scope) is not Everywhere,
        causal=causal,
        grouped=not query.shape[1] == keys.shape[1] == values.shape[1],
        single=min(lengths) == 1,
        square=lengths[0] == lengths[1],
        whole=max(lengths[0] % TILE, lengths[1] % TILE) == 0,
        machine=find_machine(query.device.index or 0),
    )


def find_dtype(query: Tensor) -> torch.dtype:
    """The dtype that the backend gets, under autocast the lower one."""
    if query.dtype != torch.float64 and torch.is_autocast_enabled(query.device.type):
        return torch.get_autocast_dtype(query.device.type)
    return query.dtype


def is_plainly_causal(request: Request) -> bool:
    """True if is_causal of the backends applies, whose mask is aligned to the first key; an exported graph keeps a mask."""
    if type(request.scope) is not Causal or torch.compiler.is_exporting():
        return False
    return not isinstance(request.offset, Tensor) and request.offset == 0


def choose_backends(request: BackendRequest) -> Choice:
    """The cached choice for a kind."""
    if torch.compiler.is_compiling():  # a graph has the decision as a constant, and would guard on the cache
        return Choice(select_order(request), find_unfused_reason(request))
    choice = CHOICES.get(request)
    if choice is None:
        choice = CHOICES[request] = Choice(select_order(request), find_unfused_reason(request))
    return choice


def select_order(request: BackendRequest) -> Order:
    """Backend priority: FAST where cuDNN is both correct and faster; PyTorch falls back to the next by itself."""
    wrong = request.masked or request.grouped or request.single or (request.causal and not request.square)
    right = not wrong and (request.machine.cudnn >= FIXED or request.whole)
    return FAST if right and request.machine.capability[0] in PREFERRED else SAFE


def find_unfused_reason(request: BackendRequest) -> str | None:
    """The reason why every backend but math would refuse, or None."""
    if request.machine.hip or flash_covers(request):
        return None  # AMD's backends have other rules
    modern = request.machine.capability[0] >= 8
    if request.dtype not in (torch.float32, torch.float16, *((torch.bfloat16,) if modern else ())):
        return (
            f"needs float32, float16 or bfloat16 that this GPU computes in, got {str(request.dtype).removeprefix('torch.')}"
        )
    step = _find_size_multiple(request)
    if request.size % step or request.value % step:
        why = "under a mask " if request.masked else ""
        return f"needs heads of a multiple of {step} {why}to be fused on a GPU, got {request.size} and {request.value}"
    return None


def _find_size_multiple(request: BackendRequest) -> int:
    """The multiple that the memory-efficient backend needs of the head size."""
    generation = request.machine.capability[0]
    if request.dtype in HALVES:
        return 8 if generation >= 7 else 1
    return 4 if generation >= 8 else 1


def flash_covers(request: BackendRequest) -> bool:
    """True if the flash backend takes it, which pads heads of any size and supports grouped-query attention."""
    fits = request.size == request.value <= 256 and not request.masked and (request.square or not request.causal)
    return fits and request.dtype in HALVES and request.machine.capability[0] >= 8


LOCK = RLock()
CAN_SET_ORDER = hasattr(torch._C, "_set_sdp_priority_order") and hasattr(torch._C, "_get_sdp_priority_order")
"""True if this PyTorch can set the order alone."""


def set_priority(order: tuple[SDPBackend, ...]) -> AbstractContextManager[Any]:
    """Set this backend priority; unnamed backends come last, and the last named one has to be math."""
    if torch.compiler.is_compiling() or not CAN_SET_ORDER:  # the compiler recognises PyTorch's own by name
        return sdpa_kernel(list(order), set_priority=True)
    return Priority(order)


class Priority(AbstractContextManager[None]):
    """Context manager of the order alone, restored at the end; a no-op where it is already set."""

    def __init__(self, order: tuple[SDPBackend, ...]):
        self.order = [backend.value for backend in order]

    def __enter__(self) -> None:
        LOCK.acquire()
        self.before = torch._C._get_sdp_priority_order()
        self.changes = self.before[: len(self.order)] != self.order
        if self.changes:
            torch._C._set_sdp_priority_order(
                [*self.order, *(backend for backend in self.before if backend not in self.order)]
            )

    def __exit__(self, *raised: object) -> None:
        try:
            if self.changes:
                torch._C._set_sdp_priority_order(self.before)
        finally:
            LOCK.release()
