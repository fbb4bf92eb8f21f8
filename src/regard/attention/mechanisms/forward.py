"""Forward attention, Zhang's: at each step the alignment stays at a key or moves on to the next."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.attention.attend import run_reference
from regard.attention.mechanisms.location_sensitive import LocationSensitive
from regard.attention.normalise import Allowed, Scores, widen
from regard.attention.normalise.softmax import Softmax
from regard.attention.scan import shift
from regard.attention.scope import Offset
from regard.attention.types import Attended, Memory, State

SMALLEST = 1e-30
"""Share of the alignment below which a key counts as out of reach: the gradient of its logarithm would overflow."""


class ForwardState(NamedTuple):
    """State between two queries."""

    alignment: Float[Tensor, "batch keys"]
    history: Float[Tensor, "batch keys"]
    """The weights that the convolution of the score sees: those of the previous step, or their sum."""
    move: Float[Tensor, "batch 1"]
    """The probability to move on from each key."""


@dataclass(frozen=True, eq=False)
class PathNormaliser:
    """Softmax over the keys that some path reaches, each weighted by its paths.

    α(n) = paths(n) exp(e(n)) / Σ_m paths(m) exp(e(m))
    """

    sums_to_one: ClassVar[bool] = True
    paths: Float[Tensor, "batch 1 queries keys"]

    def __call__(self, scores: Scores, allowed: Allowed | None) -> Scores:
        reach = self.paths > SMALLEST
        weighted = widen(scores) + torch.where(reach, self.paths, 1.0).log()
        return Softmax()(weighted, reach if allowed is None else reach & allowed).to(scores.dtype)


class Forward(LocationSensitive):
    """Location-sensitive attention whose weights can only stay at a key or move on to the next.

        y_t = softmax(e_t),    α'_t(n) = ((1 - u_{t-1}) α_{t-1}(n) + u_{t-1} α_{t-1}(n-1)) y_t(n),    α_t = α'_t / Σ α'_t(n)
        u_t = sigmoid(wᵀ [c_t; s_t] + b),    u_0 = 1/2,    α_0 = one_hot(first key)

    Zhang, Ling and Dai 2018, https://arxiv.org/abs/1807.06736
    The sum over all paths to a key is the forward algorithm of a hidden Markov model in which y scores the keys and u moves:
    query t reaches the first t + 1 keys at most. `transition_agent` learns u; without it u is 1/2 throughout. The paper's
    agent sees the decoder's last output too, which a recurrent decoder has in its state s_t. `filters` convolutions of
    `kernel` keys of the previous weights enter the score e, of the sum of all weights so far with cumulative=True. The
    product is one softmax of e + log(...), which does not underflow. u stays below 1, so that the last key keeps what would
    move beyond it. A query whose keys within reach are all masked ends the alignment: later weights are 0.
    Cost: that of LocationSensitive, one query after the other.
    """

    def __init__(
        self,
        query: int,
        key: int | None = None,
        *,
        transition_agent: bool = True,
        filters: int = 32,
        kernel: int = 31,
        cumulative: bool = False,
        **options: Any,
    ):
        if "normalise" in options:
            raise ValueError(
                f"Forward normalises over the paths of its alignment, got normalise={options['normalise']!r}; leave it out"
            )
        super().__init__(query, key, filters=filters, kernel=kernel, cumulative=cumulative, **options)
        self.agent = nn.Linear(self.size + query, 1) if transition_agent else None

    def start(self, memory: Memory) -> ForwardState:
        """The state before the first query: at the first key that is not padding."""
        alignment = start_alignment(memory)
        return ForwardState(alignment, super().start(memory), memory.values.new_full((len(alignment), 1), 0.5))

    def add_coverage(self, memory: Memory, state: State) -> Memory:
        """The memory with the convolved weights in its keys."""
        return super().add_coverage(memory, state.history)

    def step(
        self, query: Float[Tensor, "batch 1 query"], memory: Memory, state: ForwardState, *, offset: Offset, weights: bool
    ) -> Attended:
        """Score the keys, and normalise over the paths to them."""
        request = self.build_request(
            self.split(self.query(query)), self.add_coverage(memory, state), offset=offset, weights=True
        )
        attended = run_reference(request._replace(normalise=PathNormaliser(self.extend_paths(state))))
        assert attended.weights is not None, "weights=True returns them"
        alignment, context = attended.weights[:, 0, 0], self.merge(attended.context)
        state = ForwardState(alignment, self.update(state.history, alignment), self.predict_move(context, query, state))
        return Attended(self.output(context), attended.weights if weights else None, state=state)

    def extend_paths(self, state: ForwardState) -> Float[Tensor, "batch 1 1 keys"]:
        """(1 - u) α(n) + u α(n-1): the paths that stay at a key and those that move to it."""
        alignment = state.alignment[:, None, None]
        move = widen(state.move[:, None, None]).clamp_max(1 - 1e-6)
        return (1 - move) * alignment + move * shift(alignment)

    def predict_move(
        self, context: Float[Tensor, "batch 1 size"], query: Float[Tensor, "batch 1 query"], state: ForwardState
    ) -> Float[Tensor, "batch 1"]:
        """u_t by the transition agent, or 1/2."""
        if self.agent is None:
            return state.move
        return torch.sigmoid(self.agent(torch.cat((context, query), -1))[:, 0])


def start_alignment(memory: Memory) -> Float[Tensor, "batch keys"]:
    """One hot at the first key that is not padding; zeros where there is none."""
    batch, _, keys, _ = memory.values.shape
    keep = memory.keep
    if keep is None:
        keep = torch.ones(batch, keys, dtype=torch.bool, device=memory.values.device)
    return find_first(keep).to(memory.values.dtype)


def find_first(keep: Bool[Tensor, "batch keys"]) -> Bool[Tensor, "batch keys"]:
    """True at the first kept key of each row."""
    return keep & (keep.cumsum(1) == 1)
