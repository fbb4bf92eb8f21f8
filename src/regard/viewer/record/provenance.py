"""Following tensors: of every tensor, which boxes of a network it comes from, through whatever is done between them."""

import inspect
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

BLANK = {"new_zeros", "new_ones", "new_empty", "new_full", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like"}
"""Operations that take no more than a shape from what they are given."""

SUMS = {"add", "__add__", "__radd__", "add_", "__iadd__", "sub", "__sub__"}
"""Operations by which what went around a box meets what came out of it: from there on only the box is told."""

Names = frozenset[str]


class Following(TorchFunctionMode):
    """Knows of every tensor which boxes it comes from, and of which boxes' parameters it is made."""

    def __init__(
        self,
        owners: Mapping[int, str],
        ran: Callable[[str, Tensor, Names], None],
        before: Callable[[str], set[str]],
    ):
        super().__init__()
        self.owners, self.ran, self.before = owners, ran, before
        self.origins: MutableMapping[Tensor, Names] = WeakTensorKeyDictionary()
        self.learned: MutableMapping[Tensor, Names] = WeakTensorKeyDictionary()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        output = func(*args, **(kwargs or {}))
        if isinstance(output, torch.Size) or not isinstance(output, Tensor | tuple | list):  # a look at a shape or a type
            return output
        outputs = [tensor for tensor in tensors(output) if tensor.dtype != torch.bool]
        name = getattr(func, "__name__", "")
        if outputs and name not in BLANK:
            self.follow(list(tensors((args, kwargs or {}))), outputs, name in SUMS)
        return output

    def follow(self, inputs: list[Tensor], outputs: list[Tensor], sums: bool = False) -> None:
        """One operation."""
        learned_from = frozenset().union(*(self.parameter_boxes(tensor) for tensor in inputs))
        data = [tensor for tensor in inputs if tensor.dtype != torch.bool and not self.parameter_boxes(tensor)]
        origin = frozenset().union(*(self.origin(tensor) for tensor in data))
        if learned_from and data and origin:
            for name in learned_from:
                for tensor in data:
                    self.ran(name, tensor, self.origin(tensor))
            origin, learned_from = learned_from, frozenset()
        if sums and len(origin) > 1:
            origin = self.last(origin)
        for tensor in outputs:
            self.origins[tensor], self.learned[tensor] = origin, learned_from

    def last(self, names: Names) -> Names:
        """Those of the boxes from which no other of them follows: x + f(x) comes from f."""
        before = {name: self.before(name) for name in names}
        gone = {one for one in names for other in names - {one} if one in before[other] and other not in before[one]}
        return names - gone

    def origin(self, tensor: Tensor) -> Names:
        """The boxes that a tensor comes from."""
        return self.origins.get(tensor, frozenset())

    def parameter_boxes(self, tensor: Tensor) -> Names:
        """The boxes whose parameters a tensor is, or is made of."""
        if id(tensor) in self.owners and isinstance(tensor, nn.Parameter):
            return frozenset((self.owners[id(tensor)],))
        return self.learned.get(tensor, frozenset())


def bind_arguments(module: nn.Module, args: Any, kwargs: Any, forward: Callable[..., Any] | None = None) -> dict[str, Any]:
    """Arguments that a module is called with, by name; positional ones beyond its signature are numbered."""
    names = list(inspect.signature(forward or type(module).forward).parameters)[1:]  # the first is the module
    return dict(zip([*names, *(f"input {number}" for number in range(len(names), len(args)))], args, strict=False)) | kwargs


def arguments(module: nn.Module, args: Any, kwargs: Any) -> Iterator[tuple[str, Tensor]]:
    """Every tensor that a module is called with, by the name of the argument that it is in."""
    for name, value in bind_arguments(module, args, kwargs).items():
        for tensor in tensors(value):
            yield name, tensor


def tensors(tree: Any) -> Iterator[Tensor]:
    """The tensors in a tree of tuples, lists and dicts."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, dict):
        for node in tree.values():
            yield from tensors(node)
    elif isinstance(tree, tuple | list):
        for node in tree:
            yield from tensors(node)
