"""Rollout of a decoder of numbers: each output is the next input, until a length or a learned stop."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.batch import Padded
from regard.data.modality import Feedback, Source
from regard.decoding.attention_weights import is_cross_attention
from regard.decoding.max_length import resolve_limits
from regard.models.types import Decoder
from regard.tree import Tree


class Rollout(NamedTuple):
    """Numbers of each row, and the weights of the attentions over the source by name where they were asked for."""

    output: Padded
    weights: dict[str, Float[Tensor, "rows heads time keys"]]


@torch.no_grad()
def roll_out(
    decoder: Decoder, memory: Tree, source: Source, feedback: Feedback, *, length: int | Sequence[int], weights: bool = False
) -> Rollout:
    """Roll a decoder out: the first input follows from the source, and each later one from the output before.

        x_1 = first_input(source),   y_t = emit(step(x_t)),   x_{t+1} = feedback(step(x_t)),   until is_end or `length`

    A row that has ended is computed to the end of the longest, and is padding there; its last position is the one that ended
    it.
    """
    lengths = torch.tensor(resolve_limits(length, memory), device=source.data.device)
    state, fed = decoder.start(memory), feedback.first_input(source)
    going, emitted, keep, looks = lengths > 0, list[Tensor](), list[Tensor](), list[dict[str, Tensor]]()
    while going.any():
        step = decoder.step(fed, memory, state, weights=weights)
        emitted.append(feedback.emit(step.output))
        keep.append(going)
        looks.append({name: look.weights for name, look in step.attended.items() if look.weights is not None})
        state, fed = step.state, feedback.feedback(step.output)
        going = going & ~feedback.is_end(step.output) & (len(keep) < lengths)
    if not emitted:
        empty = fed[:, None][:, :0]
        return Rollout(Padded(empty, empty.new_zeros(empty.shape[:2], dtype=torch.bool)), {})
    names = [name for name in looks[0] if is_cross_attention(name)]
    joined = {name: torch.cat([look[name] for look in looks], dim=2) for name in names}
    mask = torch.stack(keep, dim=1)
    output = torch.stack(emitted, dim=1)
    return Rollout(Padded(output.masked_fill(~mask[..., None], 0), mask), joined)
