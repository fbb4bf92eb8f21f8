"""Nodes of the network graph: attentions, their neighbours, and the modules that contain them.

A module that contains an attention is opened, and so is a child of the whole network that has several parts, unless it is
PyTorch's own; every other module is one box with all that is inside. Norms and what learns nothing are no boxes: tensors
pass through them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from torch import nn

MOST = 80
"""Boxes that a reader can still take in; beyond that, what stands beside the attentions of a layer becomes one with it."""


@dataclass(frozen=True, eq=False)
class Folding:
    """The boxes by path, the paths of modules that are opened, and the box of every parameter, by its identity."""

    boxes: Mapping[str, nn.Module]
    opened: Mapping[str, nn.Module]
    owners: Mapping[int, str]
    attentions: Mapping[str, nn.Module] = field(default_factory=dict)

    def parent(self, path: str) -> str | None:
        """The nearest opened module around a path, but for the whole."""
        while path:
            path = path.rpartition(".")[0]
            if path and (path in self.opened or path in self.boxes):
                return path
        return None

    def module(self, path: str) -> nn.Module:
        """The module of a box or of what is opened."""
        return {**self.opened, **self.boxes, **self.attentions}[path]


def fold(model: nn.Module, attentions: Mapping[str, nn.Module]) -> Folding:
    """The boxes of a model whose attentions have these names."""
    for name in (name for name, module in attentions.items() if module is model):
        return Folding({name: model}, {}, {id(parameter): name for parameter in model.parameters()}, attentions)
    boxes, opened = _walk(model, attentions)
    if len(boxes) + len(opened) > MOST:
        boxes = {path: box for path, box in boxes.items() if path in attentions or path.count(".") < 2}
    owners: dict[int, str] = {}
    for path, module in model.named_modules():
        owner = _nearest(path, boxes, opened)
        if owner is not None and not _is_norm(module):
            for parameter in module.parameters(recurse=False):
                owners.setdefault(id(parameter), owner)
    return Folding(boxes, opened, owners, attentions)


def _walk(model: nn.Module, attentions: Mapping[str, nn.Module]) -> tuple[dict[str, nn.Module], dict[str, nn.Module]]:
    boxes: dict[str, nn.Module] = {}
    opened: dict[str, nn.Module] = {}
    waiting = [(name, child) for name, child in model.named_children()]
    while waiting:
        path, module = waiting.pop(0)
        inside = any(name.startswith(f"{path}.") for name in attentions)
        parts = [child for child in module.children() if any(True for _ in child.parameters())]
        several = "." not in path and len(parts) > 1 and not type(module).__module__.startswith("torch.")
        if path in attentions:
            boxes[path] = module
        if inside or (several and path not in attentions):
            opened[path] = module
            waiting = [(f"{path}.{name}", child) for name, child in module.named_children()] + waiting
        elif path not in attentions and not plain(module):
            boxes[path] = module
    return boxes, opened


def plain(module: nn.Module) -> bool:
    """True if tensors merely pass through: nothing inside learns, but for norms."""
    return all(_is_norm(part) or not any(True for _ in part.parameters(recurse=False)) for part in module.modules())


def parameters(module: nn.Module) -> int:
    """Number of trained parameters of a module, with all that is inside."""
    return sum(parameter.numel() for parameter in module.parameters())


def kind(module: nn.Module) -> str:
    """Kind of a box, in a word: its class, or that of the items of a list."""
    if isinstance(module, nn.ModuleList) and len(module):
        return kind(module[0])
    return type(module).__name__.lower()


def _is_norm(module: nn.Module) -> bool:
    return "norm" in type(module).__name__.lower()


def _nearest(path: str, *kinds: Iterable[str]) -> str | None:
    while path:
        if any(path in names for names in kinds):
            return path
        path = path.rpartition(".")[0]
    return None
