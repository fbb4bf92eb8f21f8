"""Version of a model's weights and hooks: checked before every batch, so it must cost next to nothing."""

from itertools import chain
from typing import Any

from torch import Tensor, nn


class ModelVersion:
    """Snapshot of a model's parts, parameters and hooks, without a reference to the model.

    Iterating over `parameters()` of a Transformer takes longer than three of its decoder's steps on a GPU. Here the
    dictionaries that hold them are read, which stay the same whatever is put into them.
    """

    def __init__(self, model: nn.Module):
        modules = list(model.modules())
        self.spaces: list[dict[str, Any]] = [module.__dict__ for module in modules]
        self.parts: list[dict[str, Any]] = [part for module in modules for part in (module._parameters, module._modules)]
        self.hooks = [hooks for module in modules for hooks in (module._forward_hooks, module._forward_pre_hooks)]
        self.tensors = list(model.parameters())
        self.then = self.now()

    def now(self) -> tuple[list[int], ...]:
        """Numbers that differ when a part, a parameter or a method is replaced, or a weight changes."""
        part_ids = list(map(id, chain.from_iterable(map(dict.values, self.parts))))
        tensor_versions = [tensor._version for tensor in self.tensors]
        return list(map(len, self.spaces)), part_ids, tensor_versions, list(map(Tensor.data_ptr, self.tensors))

    @property
    def unchanged(self) -> bool:
        """True if nothing has changed, and there are no hooks."""
        return not any(self.hooks) and self.now() == self.then
