"""Feedback of decoders: the first input, the input of each later step, and the stop rule, for tokens and for numbers.

tokens     BOS, then the token of the highest logit, until EOS
numbers    the last observed value or zeros, then the value of the last step, until a length or a learned stop
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.batch import Padded, shifted
from regard.data.modality import Source
from regard.data.special_tokens import BOS, EOS


@dataclass(frozen=True)
class TokenFeedback:
    """Feedback of a decoder of tokens, whose output is logits: of greedy decoding, the simplest search."""

    def first_input(self, source: Source) -> Int[Tensor, " rows"]:
        """BOS for each source."""
        return torch.full((len(source.data),), BOS, device=source.data.device)

    def decoder_input(self, source: Source, target: Padded) -> Int[Tensor, "rows time"]:
        """Input with teacher forcing: the target one position to the right, each example after BOS."""
        return shifted(target.data, target.documents)

    def emit(self, output: Float[Tensor, "rows vocabulary"]) -> Int[Tensor, " rows"]:
        """Token of the highest logit."""
        return output.argmax(-1)

    def feedback(self, output: Float[Tensor, "rows vocabulary"]) -> Int[Tensor, " rows"]:
        """Token of the highest logit."""
        return output.argmax(-1)

    def is_end(self, output: Float[Tensor, "rows vocabulary"]) -> Bool[Tensor, " rows"]:
        """True where the token is EOS."""
        return self.emit(output) == EOS


@dataclass(frozen=True)
class NumberFeedback:
    """Feedback of a decoder of numbers: frames of a spectrogram or values of a series, `channels` in each step.

        input_1 = last observed value (`observed`), or 0
        input_t = output_{t-1}

    With `stops` the output has one number more, the logit of the stop probability, and a row ends where that is above one
    half; without, rows end at their maximum length.
    Wang et al. 2017, section 3.3, https://arxiv.org/abs/1703.10135 (the last frame); Shen et al. 2018, section 2.2,
    https://arxiv.org/abs/1712.05884 (the stop probability).
    """

    channels: int
    stops: bool = False
    observed: bool = False

    @property
    def size(self) -> int:
        """Number of outputs of each step."""
        return self.channels + self.stops

    def first_input(self, source: Source) -> Float[Tensor, "rows channels"]:
        """Last kept value of each source where it is observed, and zeros elsewhere."""
        if not self.observed:
            return torch.zeros(len(source.data), self.channels, device=source.data.device)
        last = (source.keep.long().cumsum(1) * source.keep).argmax(1)
        return source.data[torch.arange(len(last), device=last.device), last, : self.channels]

    def decoder_input(self, source: Source, target: Padded) -> Float[Tensor, "rows time channels"]:
        """Input with teacher forcing: the target one position to the right, after the first input."""
        return torch.cat((self.first_input(source)[:, None].to(target.data), target.data[:, :-1]), dim=1)

    def emit(self, output: Float[Tensor, "rows *time size"]) -> Float[Tensor, "rows *time channels"]:
        """Numbers of a step, without the stop."""
        return output[..., : self.channels]

    def feedback(self, output: Float[Tensor, "rows size"]) -> Float[Tensor, "rows channels"]:
        """Numbers of the last step."""
        return self.emit(output)

    def is_end(self, output: Float[Tensor, "rows size"]) -> Bool[Tensor, " rows"]:
        """True where the stop probability is above one half."""
        if not self.stops:
            return torch.zeros(len(output), dtype=torch.bool, device=output.device)
        return output[..., -1] > 0
