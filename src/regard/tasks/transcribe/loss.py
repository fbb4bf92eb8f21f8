"""Joint loss of a speech recogniser: cross-entropy of the decoder, and CTC of the encoder."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from regard.attention.types import Encoded
from regard.config import SpeechTrain
from regard.data.batch import Padded
from regard.data.modality import AnyBatch
from regard.data.special_tokens import PAD
from regard.errors import ConfigError
from regard.losses.sequence_risk import Risk
from regard.losses.teacher_forcing import TeacherForcing, add_term
from regard.losses.types import Loss, Progress
from regard.models.encoders.pyramid import Pyramid
from regard.models.seq2seq import Seq2Seq
from regard.models.speech2seq import Speech2Seq


class JointLoss(TeacherForcing):
    """Loss by the settings of a config: λ CTC + (1 - λ) teacher forcing, with λ = train.ctc_weight.

    Kim, Hori and Watanabe 2017, eq. 9, https://arxiv.org/abs/1609.06773. The sound is encoded once for both.
    """

    def __init__(self, settings: SpeechTrain, model: Speech2Seq, risk: Risk | None = None):
        super().__init__(settings, model, risk)
        self.ctc_weight = settings.ctc_weight
        self.recurrent = isinstance(model.encoder, Pyramid)
        if not 0 <= self.ctc_weight <= 1:
            raise ConfigError(f"train.ctc_weight needs to be from 0 to 1, got {self.ctc_weight}")

    @property
    def capturable(self) -> bool:
        """True if a CUDA graph may hold an update: torch's CTC loss and packed LSTMs wait for the lengths."""
        return not self.ctc_weight and not self.recurrent and super().capturable

    def forward(self, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
        if not self.ctc_weight:
            return super().forward(model, batch, progress)
        encoded: Encoded = model.read(batch.source)  # type: ignore[operator]
        loss = super().forward(EncodedModel(model, encoded), batch, progress)
        scores: Any = model.label(encoded)  # type: ignore[operator]
        assert batch.target is not None, "teacher forcing has raised for a batch without targets"
        ctc = ctc_loss(scores, encoded, batch.target)
        scaled = loss._replace(total=(1 - self.ctc_weight) * loss.total)
        return add_term(scaled, self.ctc_weight * ctc, {"ctc": ctc})


class EncodedModel(Seq2Seq):
    """Model whose source has been encoded already."""

    def __init__(self, model: Any, encoded: Encoded):
        super().__init__(model.encoder, model.decoder)
        self.encoded = encoded

    def read(self, source: Any) -> Encoded:
        """The encoded source."""
        return self.encoded


def ctc_loss(scores: Float[Tensor, "batch time vocabulary"], encoded: Encoded, target: Padded) -> Float[Tensor, ""]:
    """CTC loss, summed over the batch: the negative log-likelihood of all alignments of a target without EOS; PAD is blank.

        -log Σ_{π: B(π) = y} Π_t p(π_t | t, x)

    Graves et al. 2006, eq. 8, https://doi.org/10.1145/1143844.1143891. A target that has more tokens than positions, so that
    there is no alignment, counts 0.
    """
    assert encoded.keep is not None, "encoders of frames return a mask"
    lengths, target_lengths = encoded.keep.sum(1), (target.keep.sum(1) - 1).clamp_min(0)
    labels = target.data.masked_fill(~target.keep, PAD)
    with torch.autocast(scores.device.type, enabled=False):
        loss: Tensor = F.ctc_loss(
            scores.float().transpose(0, 1), labels, lengths, target_lengths, PAD, reduction="sum", zero_infinity=True
        )
    return loss
