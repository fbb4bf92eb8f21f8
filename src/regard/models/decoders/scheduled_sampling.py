"""Scheduled sampling (self-decoding): the decoder is fed its own predictions, with a probability that follows a schedule.

Bengio et al. 2015, section 2.4, https://arxiv.org/abs/1506.03099. The paper's ε is the share of true tokens; here `own` is
1 - ε, scaled so that each schedule goes from 0 to exactly `most` in `steps` steps:

    constant          own = most
    linear            ε = 1 - i / steps
    exponential       ε = k^i                   k^steps = 1 %
    inverse_sigmoid   ε = k / (k + exp(i / k))  half-way at steps / 2
"""

import math
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from regard.attention.stateful import concatenate_steps
from regard.config import Train
from regard.models.decoders import DecoderMemory
from regard.models.layers.beam_attention import measure_weights
from regard.models.types import Step


def forward_scheduled(
    decoder: Any,
    target: Shaped[Tensor, "batch time *channels"],
    memory: DecoderMemory,
    *,
    own: float,
    draws: Float[Tensor, "batch time"] | None = None,
    weights: bool = False,
    statistics: tuple[str, ...] = (),
) -> Step:
    """Forward with scheduled sampling: each input after the first is the decoder's own with probability `own`.

        y_t = feedback output_{t-1}  if u_t < own  else  target_t,    u_t ~ uniform(0, 1)

    Bengio et al. 2015, "scheduled sampling", https://arxiv.org/abs/1506.03099; own=1 reads no more of the target than its
    first token. The choice passes no gradient; everything else does. `draws` are the u, for reproducible runs.
    """
    if not 0 <= own <= 1:
        raise ValueError(f"own needs to be a probability from 0 to 1, got {own}")
    if draws is None:
        draws = torch.rand(target.shape[:2], device=target.device)
    state, steps = decoder.start(memory), list[Step]()
    for place in range(target.shape[1]):
        token = target[:, place]
        if steps:
            use_own = (draws[:, place] < own).view(-1, *(1 for _ in token.shape[1:]))
            token = torch.where(use_own, decoder.feedback.feedback(steps[-1].output).to(token.dtype), token)
        steps.append(decoder.step(token, memory, state, weights=weights or bool(statistics)))
        state = steps[-1].state
    attended = {}
    for name in steps[0].attended:
        attention = decoder.get_submodule(name.partition(".")[2])
        keep = memory.memories[name].keep if name in memory.memories else None
        joined = concatenate_steps([step.attended[name] for step in steps])
        attended[name] = measure_weights(attention, joined, keep, weights=weights, statistics=statistics)
    return Step(torch.stack([step.output for step in steps], dim=1), state, attended)


def sampling_probability(train: Train, step: int) -> float:
    """Scheduled sampling probability at a step."""
    if train.scheduled_sampling == "none":
        return 0.0
    if not 0 <= train.scheduled_sampling_max <= 1:
        raise ValueError(f"train.scheduled_sampling_max needs to be from 0 to 1, got {train.scheduled_sampling_max}")
    steps = max(1, train.scheduled_sampling_steps)
    if train.scheduled_sampling == "constant" or step >= steps:
        return train.scheduled_sampling_max
    first, now, last = (teacher_forcing_share(train.scheduled_sampling, i, steps) for i in (0, step, steps))
    return train.scheduled_sampling_max * (first - now) / (first - last)


def teacher_forcing_share(kind: str, i: int, steps: int) -> float:
    """Teacher-forcing share ε of the paper at step i."""
    if kind == "linear":
        return 1 - i / steps
    if kind == "exponential":
        return float(0.01 ** (i / steps))
    k = solve_half_way(steps / 2)
    return k / (k + math.exp(i / k))


def solve_half_way(i: float) -> float:
    """Parameter k for which ε is 1/2 at step i: k log k = i, by Newton's method."""
    k = max(i, 1.5)
    for _ in range(50):
        k -= (k * math.log(k) - i) / (math.log(k) + 1)
    return k
