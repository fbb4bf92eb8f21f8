"""Export of a module as an ONNX graph with dynamic lengths."""

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
from regard.interop.onnx.graphs import KEEP_OUTPUT, Encoding, Stepping, example, outputs
from regard.interop.onnx.sources import LEAST, Longest, below_limit, default_sizes
from regard.models.seq2seq import Seq2Seq

OPSET = 20
AXES = {"sources": "batch", "keys": "source", "written": "target"}
"""Names of dynamic axes in a graph, where they differ from those of the sizes here."""
SYMBOL = re.compile(r"[A-Za-z_]\w*")
DYNAMIC = "sources", "beams", "keys", "written", "rows", "columns"
TEXT_AXES = {0: "sources", 1: "keys"}, {0: "sources", 1: "keys"}
PICTURE_AXES = {0: "sources", 2: "height", 3: "width"}, {0: "sources", 1: "height", 2: "width"}
"""Dynamic axes of a source and of its `keep`: of texts, and of pictures."""


def encoder(model: Seq2Seq, source_limit: Longest) -> bytes:
    """The encoder graph, for sources up to the limit."""
    inputs_of = example(model, default_sizes(source_limit))
    inputs = {"source": inputs_of.source.data, "keep": inputs_of.source.keep}
    sees, names = isinstance(inputs_of.source, Images), outputs(model, inputs_of)
    axes = dict(zip(inputs, PICTURE_AXES if sees else TEXT_AXES, strict=True))
    return export_graph(Encoding(model), inputs, axes, [*[KEEP_OUTPUT] * sees, *names.memory, *names.state], source_limit)


def step(model: Seq2Seq, source_limit: Longest) -> bytes:
    """The decoder graph, one step for each beam of each source."""
    inputs_of = example(model, default_sizes(source_limit))
    names = outputs(model, inputs_of)
    module = Stepping(model, inputs_of.memory, inputs_of.state)
    return export_graph(
        module, inputs_of.inputs, open_axes(model, source_limit), [names.output, *names.next, *names.weights], source_limit
    )


def open_axes(model: Seq2Seq, source_limit: Longest) -> dict[str, dict[int, str]]:
    """Dynamic axes of the inputs of a step: those that differ when a source or a target is one token longer."""
    sizes = default_sizes(source_limit)
    inputs_of, longer, later = (
        example(model, case).inputs
        for case in (sizes, sizes._replace(keys=sizes.keys + 1), sizes._replace(written=sizes.written + 1))
    )
    names: dict[str, dict[int, str]] = {}
    for name, tensor in inputs_of.items():
        both = name == "token" or name.startswith("state.")
        names[name] = {0: "sources", **({1: "beams"} if both else {})}
        for axis, size in enumerate(tensor.shape):
            if longer[name].shape[axis] != size:
                names[name][axis] = "keys"
            elif later[name].shape[axis] != size:
                names[name][axis] = "written"
    if inputs_of["keep"].dim() == 3:
        names["keep"] = {0: "sources", 1: "rows", 2: "columns"}
    return names


def dimensions(source_limit: Longest) -> dict[str, Any]:
    """Dynamic dimensions by name. Pictures are multiples of the stride of their map, whose keys are all places."""
    dims: dict[str, Any] = {name: torch.export.Dim(name) for name in DYNAMIC}
    if isinstance(source_limit, int):
        return dims | {"keys": torch.export.Dim("keys", max=below_limit(source_limit))}
    rows, columns = (
        max(below_limit(side), LEAST + 1) for side in (source_limit.rows, source_limit.columns)
    )  # one number is not open
    dims |= {"rows": torch.export.Dim("rows", max=rows), "columns": torch.export.Dim("columns", max=columns)}
    dims |= {"height": source_limit.stride * dims["rows"], "width": source_limit.stride * dims["columns"]}
    return dims | {"keys": torch.export.Dim("keys", min=LEAST**2, max=rows * columns)}


def export_graph(
    module: nn.Module,
    inputs: Mapping[str, Tensor],
    axes: Mapping[str, Mapping[int, str]],
    outputs: Sequence[str],
    source_limit: Longest,
) -> bytes:
    """Export a module: the bytes of a graph with its weights, and with inputs and outputs of these names."""
    dims = dimensions(source_limit)
    shapes = [{axis: dims[size] for axis, size in axes[name].items()} for name in inputs]
    try:
        with torch.no_grad(), without_logging(), without_fake_cache():
            program = torch.export.export(
                module.eval(),
                tuple(inputs.values()),
                dynamic_shapes=_packed(module, shapes),
                prefer_deferred_runtime_asserts_over_guards=not isinstance(source_limit, int),  # keys = rows x columns
            )
            names: dict[str, Any] = {"input_names": list(inputs), "output_names": list(outputs)}
            program_file = torch.onnx.export(program, opset_version=OPSET, dynamo=True, verbose=False, **names)
    except Exception as error:  # of an operator, a guard or the exporter
        raise RefusedError(
            f"onnx cannot express this model: its {type(module).__name__.lower()} has no graph whose lengths stay open "
            f"({' '.join(str(error).split())[:300]}); `regard predict` without --engine runs it"
        ) from error
    assert program_file is not None, "it is None only where a file is written"
    model = program_file.model_proto
    name_axes(model.graph, axes)
    data: bytes = model.SerializeToString()
    return data


def name_axes(graph: Any, axes: Mapping[str, Mapping[int, str]]) -> None:
    """Give the dynamic axes of a graph their names; torch numbers them, and writes expressions of these numbers."""
    named = dict[str, str]()
    for value in graph.input:
        shape = value.type.tensor_type.shape.dim
        named |= {shape[axis].dim_param: AXES.get(name, name) for axis, name in axes[value.name].items()}
    for value in (*graph.input, *graph.output, *graph.value_info):
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param:
                size.dim_param = named.get(size.dim_param) or SYMBOL.sub(
                    lambda match: named.get(match[0], match[0]), size.dim_param
                )


def _packed(module: nn.Module, shapes: Sequence[Mapping[int, Any]]) -> tuple[Any, ...]:
    """Shapes in the structure of the module's arguments: those of a step after its first two are one tuple."""
    return tuple(shapes) if isinstance(module, Encoding) else (*shapes[:2], tuple(shapes[2:]))


def without_fake_cache() -> AbstractContextManager[None]:
    """Disable the cache of fake tensors, which is slower than computing with dynamic lengths."""
    names: AbstractContextManager[None] = torch._dynamo.config.patch(fake_tensor_cache_enabled=False)
    return names


@contextmanager
def without_logging() -> Iterator[None]:
    """Silence the loggers of the exporter."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
