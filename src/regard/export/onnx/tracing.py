"""From a module to a graph of ONNX whose lengths stay open."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.export.onnx.graphs import Encoding, Sizes, Stepping, example, outputs
from regard.models.seq2seq import Seq2Seq
from regard.training.errors import RefusedError

OPSET = 20
PART = "sources", "beams", "keys", "written"


def encoder(model: Seq2Seq, longest: int) -> bytes:
    """The graph that reads sources of at most so many tokens."""
    given = example(model, usual(longest))
    inputs = {"source": given.source.data, "keep": given.source.keep}
    found = outputs(model, given)
    axes = {name: {0: "sources", 1: "keys"} for name in inputs}
    return traced(Encoding(model), inputs, axes, [*found.memory, *found.state], longest)


def step(model: Seq2Seq, longest: int) -> bytes:
    """The graph that writes one token for each beam of each source."""
    given = example(model, usual(longest))
    found = outputs(model, given)
    module = Stepping(model, given.memory, given.state)
    return traced(module, given.inputs, open_axes(model, longest), [found.said, *found.next, *found.weights], longest)


def usual(longest: int) -> Sizes:
    """The sizes that a graph is drawn at: a source is not the longest, and of two tokens at least."""
    return Sizes(keys=min(Sizes().keys, most(longest)))


def most(longest: int) -> int:
    """The most tokens of a source that are spoken of: a table of places is taken whole for more, and looks special."""
    return max(longest - 1, 2)


def open_axes(model: Seq2Seq, longest: int) -> dict[str, dict[int, str]]:
    """Which axes of a step's inputs grow with what: those that differ when a source or a target is one token longer."""
    sizes = usual(longest)
    given, longer, later = (
        example(model, each).inputs
        for each in (sizes, sizes._replace(keys=sizes.keys + 1), sizes._replace(written=sizes.written + 1))
    )
    found: dict[str, dict[int, str]] = {}
    for name, tensor in given.items():
        both = name == "token" or name.startswith("state.")
        found[name] = {0: "sources", **({1: "beams"} if both else {})}
        for axis, size in enumerate(tensor.shape):
            if longer[name].shape[axis] != size:
                found[name][axis] = "keys"
            elif later[name].shape[axis] != size:
                found[name][axis] = "written"
    return found


def traced(
    module: nn.Module,
    inputs: Mapping[str, Tensor],
    axes: Mapping[str, Mapping[int, str]],
    found: Sequence[str],
    longest: int,
) -> bytes:
    """The bytes of a graph, weights and all, with inputs and outputs of these names."""
    dims = {name: torch.export.Dim(name, max=most(longest) if name == "keys" else None) for name in PART}
    shapes = [{axis: dims[size] for axis, size in axes[name].items()} for name in inputs]
    try:
        with torch.no_grad(), quietly(), uncached():
            program = torch.export.export(module.eval(), tuple(inputs.values()), dynamic_shapes=_packed(module, shapes))
            names: dict[str, Any] = {"input_names": list(inputs), "output_names": list(found)}
            made = torch.onnx.export(program, opset_version=OPSET, dynamo=True, verbose=False, **names)
    except Exception as error:  # whatever an operator, a guard or a translation has against it
        raise RefusedError(
            f"onnx cannot express this model: its {type(module).__name__.lower()} has no graph whose lengths stay open "
            f"({' '.join(str(error).split())[:300]}); `regard predict` without --engine runs it"
        ) from error
    assert made is not None, "it is None only where a file is written"
    data: bytes = made.model_proto.SerializeToString()
    return data


def _packed(module: nn.Module, shapes: Sequence[Mapping[int, Any]]) -> tuple[Any, ...]:
    """The shapes as the module's own arguments are: what a step gets behind its first two is one tuple."""
    return tuple(shapes) if isinstance(module, Encoding) else (*shapes[:2], tuple(shapes[2:]))


def uncached() -> AbstractContextManager[None]:
    """Without looking up what an operator gave for such shapes before: with open lengths that takes longer than asking."""
    found: AbstractContextManager[None] = torch._dynamo.config.patch(fake_tensor_cache_enabled=False)
    return found


@contextmanager
def quietly() -> Iterator[None]:
    """Without what the exporter says to those who write exporters."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)
