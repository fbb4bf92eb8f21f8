"""Base class of decoders: one step at a time, or the whole target with teacher forcing."""

from abc import abstractmethod
from typing import Any, ClassVar

from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from regard.data.feedback import NumberFeedback
from regard.data.modality import Feedback
from regard.data.special_tokens import UNK
from regard.models.decoders import DecoderMemory
from regard.models.decoders.scheduled_sampling import forward_scheduled
from regard.models.layers.attention_output import AttentionOutput
from regard.models.output_heads import OutputFactory
from regard.models.output_heads.projection import Projection
from regard.models.types import Step


class BaseDecoder(nn.Module):
    """Decoder whose `write` advances a state by any number of tokens; a step is one token of it.

    With a `NumberFeedback` it reads and outputs numbers in place of tokens: frames of a spectrogram or values of a series.
    """

    feedback: Feedback
    """Input of the first step and of each later one, and the stop rule."""
    outcome: AttentionOutput | None
    output: nn.Module
    packs: ClassVar[bool] = False
    """True if `write` takes the `documents` of packed examples."""

    @abstractmethod
    def start(self, memory: DecoderMemory) -> Any:
        """Initial state, before the first token."""

    @abstractmethod
    def write(
        self,
        tokens: Shaped[Tensor, "rows time *channels"],
        memory: DecoderMemory,
        state: Any,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
        project: bool = True,
    ) -> Step:
        """Advance a state by any number of tokens."""

    def step(
        self, token: Shaped[Tensor, "rows *channels"], memory: DecoderMemory, state: Any, *, weights: bool = False
    ) -> Step:
        """Decoding step: one token or vector of numbers per row in, logits or numbers and the next state out."""
        step = self.write(self.list_tokens(token)[:, None], memory, state, weights=weights)
        return step._replace(output=step.output[:, 0])

    def forward(
        self,
        target: Shaped[Tensor, "batch time *channels"],
        memory: DecoderMemory,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
        own: float = 0.0,
        draws: Float[Tensor, "batch time"] | None = None,
        project: bool = True,
        documents: Int[Tensor, "batch time"] | None = None,
    ) -> Step:
        """Forward over all positions; `own` is the probability that an input is the decoder's own (scheduled sampling).

        Without `project` the output is the hidden state that `self.output` would project to logits: for a fused linear +
        cross-entropy loss. `documents` holds the example of each token in packed rows.
        """
        if documents is not None and (own or not self.packs):
            reason = f"own={own}" if own else f"a {type(self).__name__.lower()} decoder"
            raise ValueError(
                f"packed rows need a transformer decoder that is fed the target alone, got {reason}; give each example a row"
            )
        fusable = isinstance(self.output, Projection) and (self.outcome is None or self.outcome.fusable)
        if not project and (own or not fusable):
            raise ValueError(
                "project=False needs an output that is nothing but a projection, or one mixed with copies, and targets "
                "alone as its input"
            )
        if own:
            return forward_scheduled(self, target, memory, own=own, draws=draws, weights=weights, statistics=statistics)
        options: dict[str, Any] = {} if documents is None else {"documents": documents}
        options |= {"weights": weights, "statistics": statistics, "project": project}
        return self.write(self.list_tokens(target), memory, self.start(memory), **options)

    def list_tokens(self, tokens: Shaped[Tensor, "rows *shape"]) -> Shaped[Tensor, "rows *shape"]:
        """Tokens that the embedding lists: a word copied from outside the vocabulary is read as UNK."""
        if self.outcome is None or self.outcome.copying is None or not self.outcome.extends:
            return tokens
        return tokens.masked_fill(tokens >= self.outcome.copying.vocabulary, UNK)


def build_output(
    feedback: Feedback, output: OutputFactory, size: int, vocabulary: int, embedding: int, tie: bool
) -> nn.Module:
    """Build the output layer: of numbers where these are fed back, else that of the factory."""
    if not isinstance(feedback, NumberFeedback):
        return output(size, vocabulary, embedding, tie)
    if vocabulary != feedback.channels:
        raise ValueError(f"a decoder of numbers reads as many as it is fed back, {feedback.channels}, got {vocabulary}")
    return NumberOutput(size, feedback.size)


def check_outcome(feedback: Feedback, outcome: AttentionOutput | None) -> None:
    """Raise for an attention that takes part in an output of numbers."""
    if outcome is not None and isinstance(feedback, NumberFeedback):
        raise ValueError(
            "a decoder of numbers needs an attention that takes no part in the output: one that copies or marginalises has "
            "a probability for each token; choose another, such as additive"
        )


class NumberOutput(nn.Module):
    """Linear projection onto the numbers of a step, and onto the logit of the stop probability where it is learned.

        output = W x + b

    Wang et al. 2017, section 3.3, https://arxiv.org/abs/1703.10135; Shen et al. 2018, section 2.2,
    https://arxiv.org/abs/1712.05884
    """

    def __init__(self, size: int, outputs: int):
        super().__init__()
        self.linear = nn.Linear(size, outputs)

    def forward(
        self, data: Float[Tensor, "*rows size"], table: Float[Tensor, "embedding channels"]
    ) -> Float[Tensor, "*rows outputs"]:
        """Project; the `table` of the input layer, which an output for tokens may share, is not used."""
        output: Tensor = self.linear(data)
        return output
