"""From a module to a graph of ONNX whose lengths stay open."""

import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from regard.data.image.batch import Images
from regard.errors import RefusedError
from regard.interop.onnx.graphs import KEPT, Encoding, Stepping, example, outputs
from regard.interop.onnx.sources import LEAST, Longest, below, usual
from regard.models.seq2seq import Seq2Seq

OPSET = 20
AXES = {"sources": "batch", "keys": "source", "written": "target"}
"""The names of open axes in a graph, where others are meant than those of the sizes here."""
SYMBOL = re.compile(r"[A-Za-z_]\w*")
PART = "sources", "beams", "keys", "written", "rows", "columns"
READ = {0: "sources", 1: "keys"}, {0: "sources", 1: "keys"}
SEEN = {0: "sources", 2: "height", 3: "width"}, {0: "sources", 1: "height", 2: "width"}
"""What is open of a source and of its `keep`: of texts, and of pictures."""


def encoder(model: Seq2Seq, longest: Longest) -> bytes:
    """The graph that reads sources of at most so many tokens, or pictures whose maps are at most so large."""
    given = example(model, usual(longest))
    inputs = {"source": given.source.data, "keep": given.source.keep}
    sees, found = isinstance(given.source, Images), outputs(model, given)
    axes = dict(zip(inputs, SEEN if sees else READ, strict=True))
    return traced(Encoding(model), inputs, axes, [*[KEPT] * sees, *found.memory, *found.state], longest)


def step(model: Seq2Seq, longest: Longest) -> bytes:
    """The graph that writes one token for each beam of each source."""
    given = example(model, usual(longest))
    found = outputs(model, given)
    module = Stepping(model, given.memory, given.state)
    return traced(module, given.inputs, open_axes(model, longest), [found.said, *found.next, *found.weights], longest)


def open_axes(model: Seq2Seq, longest: Longest) -> dict[str, dict[int, str]]:
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
    if given["keep"].dim() == 3:
        found["keep"] = {0: "sources", 1: "rows", 2: "columns"}
    return found


def dimensions(longest: Longest) -> dict[str, Any]:
    """What is open, by name. Pictures are as high and as wide as whole places of their map, whose keys are all places."""
    dims: dict[str, Any] = {name: torch.export.Dim(name) for name in PART}
    if isinstance(longest, int):
        return dims | {"keys": torch.export.Dim("keys", max=below(longest))}
    rows, columns = (max(below(side), LEAST + 1) for side in (longest.rows, longest.columns))  # one number is not open
    dims |= {"rows": torch.export.Dim("rows", max=rows), "columns": torch.export.Dim("columns", max=columns)}
    dims |= {"height": longest.stride * dims["rows"], "width": longest.stride * dims["columns"]}
    return dims | {"keys": torch.export.Dim("keys", min=LEAST**2, max=rows * columns)}


def traced(
    module: nn.Module,
    inputs: Mapping[str, Tensor],
    axes: Mapping[str, Mapping[int, str]],
    found: Sequence[str],
    longest: Longest,
) -> bytes:
    """The bytes of a graph, weights and all, with inputs and outputs of these names."""
    dims = dimensions(longest)
    shapes = [{axis: dims[size] for axis, size in axes[name].items()} for name in inputs]
    try:
        with torch.no_grad(), quietly(), uncached():
            program = torch.export.export(
                module.eval(),
                tuple(inputs.values()),
                dynamic_shapes=_packed(module, shapes),
                prefer_deferred_runtime_asserts_over_guards=not isinstance(longest, int),  # keys = rows x columns
            )
            names: dict[str, Any] = {"input_names": list(inputs), "output_names": list(found)}
            made = torch.onnx.export(program, opset_version=OPSET, dynamo=True, verbose=False, **names)
    except Exception as error:  # whatever an operator, a guard or a translation has against it
        raise RefusedError(
            f"onnx cannot express this model: its {type(module).__name__.lower()} has no graph whose lengths stay open "
            f"({' '.join(str(error).split())[:300]}); `regard predict` without --engine runs it"
        ) from error
    assert made is not None, "it is None only where a file is written"
    model = made.model_proto
    name_axes(model.graph, axes)
    data: bytes = model.SerializeToString()
    return data


def name_axes(graph: Any, axes: Mapping[str, Mapping[int, str]]) -> None:
    """Give the open axes of a graph their names; torch numbers them, and writes expressions of these numbers."""
    named = dict[str, str]()
    for value in graph.input:
        shape = value.type.tensor_type.shape.dim
        named |= {shape[axis].dim_param: AXES.get(name, name) for axis, name in axes[value.name].items()}
    for value in (*graph.input, *graph.output, *graph.value_info):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param:
                size.dim_param = named.get(size.dim_param) or SYMBOL.sub(
                    lambda found: named.get(found[0], found[0]), size.dim_param
                )


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
