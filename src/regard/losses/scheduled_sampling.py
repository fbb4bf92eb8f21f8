"""Schedules of scheduled sampling (self-decoding): the probability that a model in training is fed its own prediction.

Bengio et al. 2015, section 2.4, https://arxiv.org/abs/1506.03099, there called scheduled sampling. The paper's ε is the
share of true tokens; here `own` is 1 - ε, scaled so that each schedule goes from 0 to exactly `most` in `steps` steps:

    constant          own = most
    linear            ε = 1 - i / steps
    exponential       ε = k^i                   k^steps = 1 %
    inverse_sigmoid   ε = k / (k + exp(i / k))  half-way at steps / 2
"""

import math

from regard.config import Train


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
