"""Family of summaries: that of texts, with a predictor that reads documents."""

from regard.alignment.heads import Head
from regard.data.text.codec import TextCodec
from regard.models.seq2seq import Seq2Seq
from regard.tasks.kinds.text import TextConfig, build, build_small, experiment, load_codec, measure_model, read
from regard.tasks.kinds.types import BoundTask
from regard.tasks.summarise.predictor import DocumentPredictor

__all__ = ["build", "build_predictor", "build_small", "experiment", "load_codec", "measure_model", "read"]


def build_predictor(task: BoundTask, config: TextConfig, codec: TextCodec, model: Seq2Seq, head: Head) -> DocumentPredictor:
    """Predictor of a model."""
    return DocumentPredictor(task, config, codec, model, head)
