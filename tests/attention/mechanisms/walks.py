"""What the tests of monotonic and mocha share: energies that are given, and energies that are counted."""

from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from regard.attention import Encoded


class Given(nn.Module):
    """A query holds the energy of each key, one after the other, and then, where there is a chunk, those of the chunk."""

    def prepare(self, key):
        return key

    def forward(self, query, prepared):
        return query[..., : prepared.shape[-1]] @ prepared.mT

    def score_chunk(self, query, prepared):
        return query[..., prepared.shape[-1] :] @ prepared.mT


def given(made, energies, keep=None, mode=False):
    """The mechanism with given energies, and a memory in which key j is the j-th unit vector."""
    made.score = Given()
    rows, keys = energies.shape[0], energies.shape[2] // (2 if hasattr(made, "chunk") else 1)
    made.train(mode)
    return made, made.remember(Encoded(torch.eye(keys, dtype=energies.dtype).expand(rows, -1, -1), keep))


@contextmanager
def counted(score):
    """How many energies a score computes."""
    found = [0]
    hook = score.register_forward_hook(lambda module, inputs, output: found.__setitem__(0, found[0] + output.numel()))
    yield found
    hook.remove()


class Largest(TorchDispatchMode):
    """The most numbers in any tensor that is made, views not counted."""

    def __init__(self):
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        known = {each.untyped_storage().data_ptr() for each in args if isinstance(each, Tensor)}
        if isinstance(found, Tensor) and found.untyped_storage().data_ptr() not in known:
            self.numbers = max(self.numbers, found.numel())
        return found
