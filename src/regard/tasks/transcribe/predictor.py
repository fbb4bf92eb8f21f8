"""Predictor of transcripts: the decoder's search, joined by the CTC scores of the encoder."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from regard.attention.types import Encoded
from regard.data.modality import Source
from regard.decoding.fusion import Fusion
from regard.decoding.fusion.ctc import CtcPrefix
from regard.errors import ConfigError
from regard.inference.sequence_predictor import SequencePredictor
from regard.models.decoders import DecoderMemory
from regard.models.speech2seq import Speech2Seq


class SpeechMemory(NamedTuple):
    """Encoded recordings: the memory of the decoder, and the log-probabilities of CTC."""

    decoder: DecoderMemory
    encoded: Encoded
    ctc: Float[Tensor, "batch time vocabulary"]


class SpeechPredictor(SequencePredictor):
    """Trained speech recogniser."""

    model: Speech2Seq

    def encode(self, source: Source) -> DecoderMemory | SpeechMemory:
        """Memory of recordings, with the log-probabilities of CTC where the search needs them."""
        if not self.config.search.ctc_weight:
            return super().encode(source)
        if self.config.search.precision != "float32":
            raise ConfigError("search.ctc_weight is for search.precision=float32: the reference search adds its scores")
        encoded = self.model.read(source)
        scores = self.model.label(encoded)
        if scores is None:
            raise ConfigError(
                f"search.ctc_weight={self.config.search.ctc_weight:g} needs a model that was trained with CTC "
                "(train.ctc_weight=0.3), and this one was not; set it to 0"
            )
        return SpeechMemory(self.model.decoder.remember(encoded), encoded, scores)

    def fuse(self, memory: DecoderMemory | SpeechMemory) -> tuple[DecoderMemory, Fusion | None]:
        """The decoder's memory, and the scores of CTC."""
        if not isinstance(memory, SpeechMemory):
            return memory, None
        weight = self.config.search.ctc_weight
        return memory.decoder, Fusion((CtcPrefix(memory.ctc, memory.encoded.keep, weight),), 1 - weight)
