"""Words of the sources: module docstrings are sentences or noun phrases, and public names say what they hold."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import regard

SOURCE = Path(regard.__file__).parent
FILES = {str(path.relative_to(SOURCE)): path for path in sorted(SOURCE.rglob("*.py"))}
RELATIVE_CLAUSE = re.compile(r"(What|How|Whether|Where|Which|When|Who|That|The same)\b")
EMPTY_WORDS = {"found", "told", "made", "given", "kept", "asked", "seen", "held", "drawn", "looked"}
Function = ast.FunctionDef | ast.AsyncFunctionDef

REMAINING = {
    "decoding/attention_weights.py",
    "decoding/backpointers.py",
    "decoding/beam.py",
    "decoding/constraints/spec.py",
    "decoding/engines/cpp/build.py",
    "decoding/engines/cpp/convolution.py",
    "decoding/engines/cpp/lstm_encoder.py",
    "decoding/engines/cpp/ragged.py",
    "decoding/engines/cpp/recurrent.py",
    "decoding/engines/cpp/transformer.py",
    "decoding/engines/cuda/add_norm.py",
    "decoding/engines/cuda/add_norm_triton.py",
    "decoding/engines/cuda/beam.py",
    "decoding/engines/cuda/fused_layer.py",
    "decoding/engines/cuda/generic.py",
    "decoding/engines/cuda/greedy.py",
    "decoding/engines/cuda/layer.py",
    "decoding/engines/cuda/results.py",
    "decoding/engines/cuda/search.py",
    "decoding/engines/cuda/topk.py",
    "decoding/engines/cuda/transformer.py",
    "decoding/engines/cuda/types.py",
    "decoding/engines/eager/beam.py",
    "decoding/engines/eager/recurrent.py",
    "decoding/mbr.py",
    "decoding/search.py",
    "decoding/search_tree.py",
    "inference/backtranslate.py",
    "inference/ensemble/average.py",
    "inference/forward_predictor.py",
    "inference/init_from.py",
    "inference/sequence_predictor.py",
    "inference/streaming.py",
    "interop/compat.py",
    "interop/engine_cache.py",
    "interop/huggingface/run_directory.py",
    "interop/huggingface/settings.py",
    "interop/huggingface/vision_encoder_decoder/gpt2.py",
    "interop/huggingface/vision_encoder_decoder/importer.py",
    "interop/huggingface/vision_encoder_decoder/parameters.py",
    "interop/huggingface/vision_encoder_decoder/trocr.py",
    "interop/huggingface/vision_encoder_decoder/vit.py",
    "interop/huggingface/write_vision_encoder_decoder.py",
    "interop/onnx/graphs.py",
    "interop/onnx/parity.py",
    "interop/onnx/sources.py",
    "interop/onnx/trace.py",
    "interop/onnx/tracing.py",
    "interop/output.py",
    "kernels/flash.py",
    "kernels/runtime/compile.py",
    "kernels/runtime/launch_cache.py",
    "kernels/runtime/smoke_test.py",
    "kernels/sdpa_backends/choice.py",
    "kernels/triton/add_norm/kernel.py",
    "kernels/triton/add_norm/launch.py",
    "kernels/triton/additive/arguments.py",
    "kernels/triton/additive/backward.py",
    "kernels/triton/additive/backward_qkv.py",
    "kernels/triton/additive/bitmask.py",
    "kernels/triton/additive/chunks.py",
    "kernels/triton/additive/forward.py",
    "kernels/triton/additive/launch.py",
    "kernels/triton/additive/launch_backward.py",
    "kernels/triton/additive/mask.py",
    "kernels/triton/additive/operator.py",
    "kernels/triton/additive/precompute_exp.py",
    "kernels/triton/additive/precompute_mma.py",
    "kernels/triton/cross_entropy/kernel.py",
    "kernels/triton/decode/split_k.py",
    "kernels/triton/decode_step/cross_attention.py",
    "kernels/triton/decode_step/embed_argmax.py",
    "kernels/triton/decode_step/matmul.py",
    "kernels/triton/decode_step/self_attention.py",
    "kernels/triton/entmax/backward.py",
    "kernels/triton/entmax/forward.py",
    "kernels/triton/entmax/probabilities.py",
    "kernels/triton/flash/backward.py",
    "kernels/triton/flash/backward_windows.py",
    "kernels/triton/flash/column_sums.py",
    "kernels/triton/flash/forward.py",
    "kernels/triton/flash/launch.py",
    "kernels/triton/flash/operator.py",
    "kernels/triton/flash/statistics.py",
    "kernels/triton/flash/tile.py",
    "kernels/triton/flash/topk.py",
    "kernels/triton/flash/weights.py",
    "kernels/triton/flash/window_sort.py",
    "kernels/triton/flash/windows.py",
    "kernels/triton/lstm_decoder/cell.py",
    "kernels/triton/lstm_decoder/steps.py",
    "kernels/triton/monotonic/kernel.py",
    "models/decoders/convolution.py",
    "models/decoders/recurrent_fused.py",
    "models/decoders/transformer.py",
    "models/encoders/positions2d.py",
    "models/layers/add_norm.py",
    "models/layers/cells.py",
    "models/layers/deferred_grad.py",
    "models/layers/residual.py",
    "models/readout.py",
    "tasks/classify/predictor.py",
    "tasks/classify/video_predictor.py",
    "tasks/detect/predictor.py",
    "tasks/retrieve/predictor.py",
    "tasks/vqa/predictor.py",
    "training/attention_metrics.py",
    "training/entries.py",
    "training/gpu_idle.py",
    "training/mixed_precision.py",
    "training/progress.py",
    "training/state.py",
    "training/step_result.py",
    "training/throughput.py",
    "viewer/arrays.py",
    "viewer/figure/fonts.py",
    "viewer/figure/maps.py",
    "viewer/figure/overlay.py",
    "viewer/figure/strength.py",
    "viewer/figure/style.py",
    "viewer/figure/subject.py",
    "viewer/gold.py",
    "viewer/html/budget.py",
    "viewer/html/payload.py",
    "viewer/html/view.py",
    "viewer/huggingface/decoding.py",
    "viewer/huggingface/generate.py",
    "viewer/huggingface/ids.py",
    "viewer/huggingface/reading.py",
    "viewer/huggingface/stacks.py",
    "viewer/io/check_attention.py",
    "viewer/io/check_axes.py",
    "viewer/io/check_decoding.py",
    "viewer/io/check_gold.py",
    "viewer/metrics/alignment.py",
    "viewer/metrics/masks.py",
    "viewer/metrics/strength.py",
    "viewer/record/assemble.py",
    "viewer/record/graph_nodes.py",
    "viewer/record/image.py",
    "viewer/record/patches.py",
    "viewer/record/places.py",
    "viewer/record/predicted.py",
    "viewer/record/provenance.py",
    "viewer/source.py",
}
"""Files that still have such words. The list only shrinks."""


def decorators(node: Function | ast.ClassDef) -> str:
    return " ".join(ast.unparse(decorator) for decorator in node.decorator_list)


def parameters(function: Function) -> list[str]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [argument.arg for argument in named if argument is not None]


def fields(node: ast.ClassDef) -> list[str]:
    """Fields of a NamedTuple or dataclass."""
    if "NamedTuple" not in map(ast.unparse, node.bases) and "dataclass" not in decorators(node):
        return []
    return [item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)]


def names(tree: ast.Module) -> Iterator[str]:
    """Classes, fields, public functions and methods with their parameters, and arguments of Triton kernels."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from (node.name.strip("_").lower(), *fields(node))
        elif isinstance(node, Function) and (not node.name.startswith("_") or "triton" in decorators(node)):
            yield from (node.name, *parameters(node))


def offences(text: str) -> list[str]:
    """Names without a meaning of their own, and a module docstring that begins with a relative clause."""
    tree = ast.parse(text)
    docstring = ast.get_docstring(tree) or ""
    return sorted(set(names(tree)) & EMPTY_WORDS) + [docstring.partition("\n")[0]] * bool(RELATIVE_CLAUSE.match(docstring))


@pytest.mark.parametrize("name", FILES)
def test_a_file_has_words_of_the_field(name):
    left = offences(FILES[name].read_text(encoding="utf-8"))
    if name in REMAINING:
        assert left, f"{name} is clean: take it off REMAINING"
    else:
        assert not left, f"{name}: {left}; docs/glossary.md has the field's words"


def test_the_list_has_no_files_that_are_gone():
    assert set(FILES) >= REMAINING


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('"""How scores are shared."""', ["How scores are shared."]),
        ('"""Howe attention."""', []),
        ("def found(): ...", ["found"]),
        ("def select(*, given, kernel): ...", ["given"]),
        ("def _select(given): ...", []),
        ("@triton.jit\ndef _kernel(seen, q): ...", ["seen"]),
        ("class Looked:\n    pass", ["looked"]),
        ("class Plan(NamedTuple):\n    kept: int", ["kept"]),
        ("@dataclass(frozen=True)\nclass Plan:\n    told: int", ["told"]),
        ("class Plan:\n    told: int", []),
        ("class Plan:\n    def choose(self, asked): ...", ["asked"]),
    ],
)
def test_the_rule_bites(text, left):
    assert offences(text) == left
