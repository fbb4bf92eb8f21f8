"""Learning rates over time: a pure function of the step, except for plateau, which remembers how evaluations went."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from regard.config import Train


def compute_learning_rate(train: Train, step: int, size: int | None = None) -> float:
    """The rate of the update after `step` others. n below counts from 1, w is the warm-up, r the configured rate.

        constant, plateau   r min(1, n / w)
        noam                r size^(-1/2) min(n^(-1/2), n w^(-3/2))       Vaswani et al. 2017, eq. 3, where r = 1
        cosine              r min(1, n / w), then r (1 + cos(pi t)) / 2   Loshchilov and Hutter 2017, eq. 5, one period;
                            t runs from 0 at the end of the warm-up to 1 at the last step
        inverse_sqrt        r min(n / w, (w / n)^(1/2))

    https://arxiv.org/abs/1706.03762, https://arxiv.org/abs/1608.03983
    """
    n, warmup = step + 1, train.warmup_steps
    if train.schedule == "noam":
        return train.learning_rate * noam(n, warmup, size)
    if train.schedule == "inverse_sqrt":
        warmup = max(warmup, 1)
        return train.learning_rate * min(n / warmup, math.sqrt(warmup / n))
    warm = min(1.0, n / warmup) if warmup else 1.0
    if train.schedule == "cosine" and n > warmup:
        done = min(1.0, (step - warmup) / max(1, train.max_steps - warmup))
        return train.learning_rate * (1 + math.cos(math.pi * done)) / 2
    return train.learning_rate * warm


def noam(n: int, warmup: int, size: int | None) -> float:
    """size^(-1/2) min(n^(-1/2), n w^(-3/2))."""
    if warmup < 1:
        raise ValueError(f"the noam schedule needs train.warmup_steps of 1 or more, got {warmup}; the paper has 4000")
    if size is None:
        raise ValueError("the noam schedule needs the size of the model, and this config has no model.hidden_size")
    return float(size**-0.5 * min(n**-0.5, n * warmup**-1.5))


@dataclass
class Plateau:
    """Halve the rate when evaluations stop getting better.

        factor ← factor / 2   after `patience` evaluations without a better one

    Its state is three numbers, which belong in the checkpoint.
    """

    patience: int = 2
    factor: float = 1.0
    best: float | None = None
    stale: int = 0

    def see(self, value: float) -> None:
        """Take note of an evaluation, of which less is better."""
        if math.isfinite(value) and (self.best is None or value < self.best):
            self.best, self.stale = value, 0
            return
        self.stale += 1
        if self.stale >= self.patience:
            self.factor, self.stale = self.factor / 2, 0

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return asdict(self)

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what was kept."""
        self.patience, self.factor = int(state["patience"]), float(state["factor"])
        self.best, self.stale = state["best"], int(state["stale"])
