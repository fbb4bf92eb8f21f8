"""A Transformer's matrices in half precision for one update, all rounded in one go, and packed where one product will do.

Autocast rounds every matrix by itself, and every gradient back by itself: hundreds of small kernels that take longer to
begin than to run. The layers only see the copies while an update is computed.
"""

from collections.abc import Iterator
from types import TracebackType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.multihead import MultiHead, PackedProjection
from regard.models.decoders.transformer import Layer as DecoderLayer
from regard.models.encoders.transformer import Layer as EncoderLayer
from regard.models.layers.residual import Residual

LAYERS = (EncoderLayer, DecoderLayer)


class CopyTarget(NamedTuple):
    """Module that computes with copies: an attention whose projections are packed, or a single linear layer.

    `around` adds the bias in place of a layer whose output nobody else looks at.
    """

    to: nn.Module
    parts: tuple[nn.Linear, ...]
    around: Residual | None = None

    @property
    def biased(self) -> bool:
        """True if the module adds a bias of its own."""
        return self.parts[0].bias is not None and self.around is None

    def lend(self, weight: Tensor, bias: Tensor | None) -> None:
        """Hide parameters behind their copies: what stands in a module's dictionary is found first."""
        if self.around is not None:
            self.around.__dict__["added"] = self.parts[0].bias
        if isinstance(self.to, MultiHead):
            self.to.__dict__["packed"] = PackedProjection(weight, bias, len(self.parts))
        else:
            self.to.__dict__.update(weight=weight, bias=bias)

    def take_back(self) -> None:
        """Show the parameters again."""
        for name in ("packed", "weight", "bias"):
            self.to.__dict__.pop(name, None)
        if self.around is not None:
            self.around.__dict__.pop("added", None)


class CastWeights:
    """While it is entered under autocast, the layers of a model multiply by copies of their matrices in half precision."""

    def __init__(self, model: nn.Module):
        self.lent = [group for layer in model.modules() if type(layer) in LAYERS for group in list_targets(layer)]

    def __enter__(self) -> None:
        device = self.lent[0].parts[0].weight.device.type if self.lent else "cpu"
        if not self.lent or not torch.is_autocast_enabled(device):
            return
        biased = [group for group in self.lent if group.biased]
        sizes = [len(group.parts) for group in (*self.lent, *biased)]
        parameters = [part.weight for group in self.lent for part in group.parts]
        parameters += [part.bias for group in biased for part in group.parts]
        halves = iter(CastTogether.apply(torch.get_autocast_dtype(device), sizes, *parameters))  # type: ignore[no-untyped-call]
        weights = [next(halves) for _ in self.lent]
        for group, weight in zip(self.lent, weights, strict=True):
            group.lend(weight, next(halves) if group.biased else None)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for group in self.lent:
            group.take_back()


def list_targets(layer: Any) -> Iterator[CopyTarget]:
    """The linear layers of a Transformer's layer; those that read the same data together, where they are alike."""
    yield from list_attention_targets(layer.self, layer.around_self)
    if isinstance(getattr(layer, "cross", None), MultiHead):
        yield from list_attention_targets(layer.cross)
    first, *_, last = layer.feedforward
    yield from list_linear_targets(first)
    yield from list_linear_targets(last, layer.around_feedforward)


def list_attention_targets(attention: MultiHead, around: Residual | None = None) -> Iterator[CopyTarget]:
    """The projections of an attention: of itself, where it has a way around it, all three in one, else keys and values.

    What is read from a source losses look at too, so that its bias stays where it is.
    """
    query, key, value = attention.query, attention.key, attention.value
    together = (key, value) if around is None else (query, key, value)
    if can_pack(together):
        yield CopyTarget(attention, together)  # type: ignore[arg-type]
    for projection in (query, key, value):
        if not can_pack(together) or projection not in together:
            yield from list_linear_targets(projection)
    yield from list_linear_targets(attention.output, around)


def list_linear_targets(layer: nn.Module, around: Residual | None = None) -> Iterator[CopyTarget]:
    """A linear layer by itself."""
    if type(layer) is nn.Linear:
        yield CopyTarget(layer, (layer,), None if layer.bias is None else around)


def can_pack(parts: tuple[nn.Module, ...]) -> bool:
    """Return True if linear layers can be packed into one: of equal input and output sizes, all with a bias or none."""
    if not all(type(part) is nn.Linear for part in parts):
        return False
    return len({(part.weight.shape, part.bias is None) for part in parts}) == 1


class CastTogether(torch.autograd.Function):
    """Tensors in half precision, neighbours joined as `sizes` says; their gradients in the precision of the originals."""

    @staticmethod
    def forward(ctx: Any, half: torch.dtype, sizes: list[int], *weights: Tensor) -> tuple[Tensor, ...]:
        ctx.sizes, ctx.kinds = sizes, [(len(weight), weight.dtype) for weight in weights]
        ctx.set_materialize_grads(False)
        remaining = iter(weights)
        groups = [[next(remaining) for _ in range(size)] for size in sizes]
        halves = [group[0].new_empty((sum(map(len, group)), *group[0].shape[1:]), dtype=half) for group in groups]
        wholes = zip(halves, groups, strict=True)
        rows = [part for whole, group in wholes for part in torch.split(whole, list(map(len, group)))]
        torch._foreach_copy_(rows, list(weights))
        return tuple(halves)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *flowing: Tensor | None) -> tuple[Any, ...]:
        kinds = iter(ctx.kinds)
        rows: list[Tensor | None] = []
        wide: list[torch.dtype] = []
        for size, gradient in zip(ctx.sizes, flowing, strict=True):
            mine = [next(kinds) for _ in range(size)]
            rows += [None] * size if gradient is None else torch.split(gradient, [length for length, _ in mine])
            wide += [kind for _, kind in mine]
        gradients = [
            None if row is None else torch.empty_like(row, dtype=kind) for row, kind in zip(rows, wide, strict=True)
        ]
        pairs = [(new, row) for new, row in zip(gradients, rows, strict=True) if new is not None and row is not None]
        if pairs:
            torch._foreach_copy_([new for new, _ in pairs], [row for _, row in pairs])
        return None, None, *gradients
