"""onnxruntime engine: answers from exported graphs, in float32 or int8."""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.alignment.heads import Head
from regard.data.image.codec import ImageTextCodec
from regard.data.text.codec import TextCodec
from regard.errors import DamagedError, RefusedError
from regard.inference.predictor import Input, split_inputs
from regard.inference.sequence_predictor import SequencePredictor, SequenceTask
from regard.interop.engine_cache import cache_engine
from regard.interop.onnx.graphs import OUTPUT
from regard.interop.onnx.sessions import ENCODER, Sessions
from regard.interop.onnx.sources import source_limit
from regard.tasks import TaskConfig
from regard.training.run_directory import STEP

if TYPE_CHECKING:
    from regard.viewer.trace import Trace


def opened(directory: Path, device: str = "auto", precision: str = "float32") -> "Onnx":
    """Load a run directory for this engine; its graphs are exported once, into the cache of the user.

    What `regard export --to onnx` wrote, a directory or one file, has its graphs already, in the precision of its export.
    """
    if device not in ("auto", "cpu"):
        raise RefusedError(f"the engine onnx runs on the CPU here, got --device {device}; leave one of the two out")
    from regard.interop.onnx.write import graphs, writer

    trained = writer(directory)
    allow(trained, precision)
    if isinstance(trained, Onnx):
        return trained

    home = cache_engine(
        directory, f"onnx-{precision}", lambda: dict(zip((ENCODER, STEP), graphs(trained, precision), strict=True))
    )
    files = {name: (home / name).read_bytes() for name in (ENCODER, STEP)}
    return Onnx(trained.task, trained.config, trained.codec, files, trained.head)


def allow(trained: SequencePredictor, precision: str) -> None:
    """Raise for another precision than that of the export."""
    if isinstance(trained, Onnx) and precision not in ("auto", "float32"):
        raise RefusedError(f"an exported model keeps the precision of its export: leave --precision {precision} out")


def exported(trained: SequencePredictor, precision: str = "float32") -> "Onnx":
    """The model with graphs exported in memory."""
    from regard.interop.onnx.write import graphs

    exported_graphs = dict(zip((ENCODER, STEP), graphs(trained, precision), strict=True))
    return Onnx(trained.task, trained.config, trained.codec, exported_graphs, trained.head)


class Onnx(SequencePredictor):
    """A trained model that answers through onnxruntime, on the CPU. Search, alignments and measures are ours.

    `graphs` are the bytes of encoder.onnx and step.onnx, by these names.
    """

    def __init__(
        self,
        task: SequenceTask,
        config: TaskConfig,
        codec: TextCodec | ImageTextCodec,
        graphs: Mapping[str, bytes],
        head: Head = Head(),
    ):
        for needed in (ENCODER, STEP):
            if needed not in graphs:
                raise DamagedError(f"an exported model needs {needed}, and its manifest has none; export it again")
        sessions = Sessions(graphs[ENCODER], graphs[STEP], source_limit(config))
        width = sessions.decoder.graph.widths.get(OUTPUT)
        if isinstance(width, int) and width != codec.target.size:
            raise DamagedError(
                f"{STEP} chooses among {width} tokens, and the codec beside it {codec.target.size}: take both of one export"
            )
        config = replace(
            config, search=replace(config.search, precision="float32")
        )  # the graphs have a precision of their own
        super().__init__(task, config, codec, sessions, head)

    def trace(self, inputs: Input | Iterable[Input], **options: Any) -> "Trace":
        """Attention weights of the decoder while it answers, without those of the encoder, and without the network."""
        from regard.interop.onnx.trace import trace

        with nullcontext() if self.recorder is None else self.recorder.pause():
            return trace(self, split_inputs(inputs)[1], **options)
