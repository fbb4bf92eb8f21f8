"""Base class of decoders: one step at a time, or the whole target with teacher forcing."""

from abc import abstractmethod
from typing import Any, ClassVar

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.models.decoders import DecoderMemory
from regard.models.decoders.scheduled_sampling import forward_scheduled
from regard.models.layers.attention_output import AttentionOutput
from regard.models.output_heads.projection import Projection
from regard.models.types import Step


class BaseDecoder(nn.Module):
    """Decoder whose `write` advances a state by any number of tokens; a step is one token of it."""

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
        tokens: Int[Tensor, "rows time"],
        memory: DecoderMemory,
        state: Any,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
        project: bool = True,
    ) -> Step:
        """Advance a state by any number of tokens."""

    def step(self, token: Int[Tensor, " rows"], memory: DecoderMemory, state: Any, *, weights: bool = False) -> Step:
        """Decoding step: one token per row in, logits and the next state out."""
        step = self.write(token[:, None], memory, state, weights=weights)
        return step._replace(output=step.output[:, 0])

    def forward(
        self,
        target: Int[Tensor, "batch time"],
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
            given = f"own={own}" if own else f"a {type(self).__name__.lower()} decoder"
            raise ValueError(
                f"packed rows need a transformer decoder that is fed the target alone, got {given}; give each example a row"
            )
        if not project and (own or self.outcome is not None or not isinstance(self.output, Projection)):
            raise ValueError(
                "project=False needs an output that is nothing but a projection, and targets alone as its input"
            )
        if own:
            return forward_scheduled(self, target, memory, own=own, draws=draws, weights=weights, statistics=statistics)
        told: dict[str, Any] = {} if documents is None else {"documents": documents}
        told |= {"weights": weights, "statistics": statistics, "project": project}
        return self.write(target, memory, self.start(memory), **told)
