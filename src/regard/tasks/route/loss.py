"""Policy gradient of routes, with baselines."""

from typing import Any

import torch

from regard.data.modality import AnyBatch
from regard.losses.types import Loss, Progress
from regard.tasks.route.batch import RouteBatch
from regard.tasks.route.config import RouteTrain
from regard.tasks.route.model import spread_starts


class RouteLoss:
    """REINFORCE: routes that are shorter than the baseline become likelier.

        Σ_r (L_r - b_r) log p(r)  +  the mean length, whose gradient is 0

    Williams 1992, https://doi.org/10.1007/BF00992696
    b is the mean length of the routes of an instance from several starts (Kwon et al. 2020,
    https://arxiv.org/abs/2010.16011), the length of the greedy route from the same start (Rennie et al. 2017,
    https://arxiv.org/abs/1612.00563), or 0.
    """

    capturable = True

    def __init__(self, train: RouteTrain):
        self.baseline, self.starts = train.baseline, train.starts

    def __call__(self, model: Any, batch: AnyBatch, progress: Progress) -> Loss:
        """Sum over instances of the mean over their routes."""
        assert isinstance(batch, RouteBatch), "points come in batches of points"
        size, points, _ = batch.source.data.shape
        starts = spread_starts(size, points, self.starts, batch.source.data.device)
        routes = model(batch.source, starts, sample=True)
        if self.baseline == "greedy":
            with torch.no_grad():
                expected = model(batch.source, starts).length
        else:
            expected = routes.length.mean(1, keepdim=True) if self.baseline == "starts" else 0.0
        advantage = (routes.length - expected).detach()
        policy = (advantage * routes.log_probabilities.sum(-1)).mean(1).sum()
        length = routes.length.detach().mean(1).sum()
        return Loss(policy - policy.detach() + length, size, {"length": length})
