"""Scheduled sampling (self-decoding): the decoder is fed its own predictions."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.stateful import concatenate_steps
from regard.models.decoders import DecoderMemory
from regard.models.layers.beam_attention import measure_weights
from regard.models.types import Step


def forward_scheduled(
    decoder: Any,
    target: Int[Tensor, "batch time"],
    memory: DecoderMemory,
    *,
    own: float,
    draws: Float[Tensor, "batch time"] | None = None,
    weights: bool = False,
    statistics: tuple[str, ...] = (),
) -> Step:
    """Forward with scheduled sampling: each input after the first is the decoder's own argmax with probability `own`.

        y_t = argmax output_{t-1}  if u_t < own  else  target_t,    u_t ~ uniform(0, 1)

    Bengio et al. 2015, "scheduled sampling", https://arxiv.org/abs/1506.03099; own=1 reads no more of the target than its
    first token. The choice passes no gradient; everything else does. `draws` are the u, for reproducible runs.
    """
    if not 0 <= own <= 1:
        raise ValueError(f"own needs to be a probability from 0 to 1, got {own}")
    if draws is None:
        draws = torch.rand(target.shape, device=target.device)
    state, steps = decoder.start(memory), list[Step]()
    for place in range(target.shape[1]):
        token = target[:, place]
        if steps:
            token = torch.where(draws[:, place] < own, steps[-1].output.argmax(-1), token)
        steps.append(decoder.step(token, memory, state, weights=weights or bool(statistics)))
        state = steps[-1].state
    attended = {}
    for name in steps[0].attended:
        attention = decoder.get_submodule(name.partition(".")[2])
        keep = memory.memories[name].keep if name in memory.memories else None
        joined = concatenate_steps([step.attended[name] for step in steps])
        attended[name] = measure_weights(attention, joined, keep, weights=weights, statistics=statistics)
    return Step(torch.stack([step.output for step in steps], dim=1), state, attended)
