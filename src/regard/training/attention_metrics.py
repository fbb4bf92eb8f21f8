"""Attention health: a few numbers that tell early whether the attentions of a model learn to look.

Taken on one small batch now and then, and never for more than a fiftieth of the time. A model whose forward takes no
`statistics`, or that has no attention, simply has none.
"""

import inspect
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.types import Attended
from regard.data.batch import Padded, shifted
from regard.data.modality import AnyBatch
from regard.losses.cross_entropy import cross_entropy
from regard.training.experiment import Experiment

STATISTICS = ("entropy", "max", "argmax", "mean_position", "received", "uniform")
SHARE = 0.02
"""The most of the training time that looking may take."""
ROWS = 8
LONGEST = 32
SAME = 0.99
"""From this share of the possible on, a head is called even, or stuck."""


class AttentionMetrics:
    """Looks at a model's attentions through one batch that stays the same."""

    def __init__(self, experiment: Experiment, device: torch.device):
        self.experiment, self.device = experiment, device
        self.possible = takes_statistics(experiment.model)
        self.batch: AnyBatch | None = None
        self.spent = self.last = 0.0

    def measure(self, model: nn.Module, elapsed: float) -> dict[str, dict[str, float | int]]:
        """The figures of each attention by its name, or nothing where there is nothing to see or no time for it."""
        if not self.possible or self.spent + self.last > SHARE * elapsed:
            return {}
        begun = time.monotonic()
        if self.batch is None:
            self.batch = build_probe(self.experiment.train.batch(0)).to(self.device)
        try:
            measured = measure_attentions(model, self.batch)
        except TypeError:  # a model of open options, whose parts do not take these
            measured = {}
        self.possible = bool(measured)
        self.last = time.monotonic() - begun
        self.spent += self.last
        return measured


def takes_statistics(model: nn.Module) -> bool:
    """Return True if a model can compute attention statistics."""
    wanted = inspect.signature(model.forward).parameters
    return {"statistics", "weights"} <= set(wanted) or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in wanted.values()
    )


def build_probe(batch: AnyBatch) -> AnyBatch:
    """A few examples with targets of one length, a row each, so that no padded query blurs the picture."""
    if batch.target is None:
        return batch
    batch = batch.unpack()
    assert batch.target is not None
    lengths = batch.target.keep.sum(1).tolist()
    short = [length for length in lengths if 1 < length <= LONGEST] or [min(lengths)]
    chosen, _ = Counter(short).most_common(1)[0]
    return batch.select_rows([row for row, length in enumerate(lengths) if length == chosen][:ROWS])


def measure_attentions(model: nn.Module, batch: AnyBatch) -> dict[str, dict[str, float | int]]:
    """Look at every attention that the model reports, and at how much gradient reaches its weights."""
    if batch.target is None:
        return {}
    training = model.training
    model.eval()
    try:  # cuDNN's recurrent networks have no gradient in evaluation mode
        with torch.backends.cudnn.flags(enabled=False), torch.enable_grad(), capture_weights(model) as weights:
            step = model(batch.source, shifted(batch.target.data), weights=True, statistics=STATISTICS)
            metrics = {name: summarise(attended) for name, attended in step.attended.items() if attended.statistics}
            for name, value in gradients(step.output, batch.target, weights).items():
                metrics.setdefault(name, {})["gradient"] = value
    finally:
        model.train(training)
    return metrics


@contextmanager
def capture_weights(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Inside, the weights of every call of every attention are kept by its name: a recurrent decoder makes many calls."""
    weights: dict[str, list[Tensor]] = {}

    def keep(name: str, module: nn.Module, inputs: Any, attended: Attended) -> None:
        if attended.weights is not None and attended.weights.requires_grad:
            weights.setdefault(name, []).append(attended.weights)

    attentions = ((name, module) for name, module in model.named_modules() if isinstance(module, Attention))
    hooks = [module.register_forward_hook(partial(keep, name)) for name, module in attentions]
    try:
        yield weights
    finally:
        for hook in hooks:
            hook.remove()


def summarise(attended: Attended) -> dict[str, float | int]:
    """Summary of the statistics of one attention.

    entropy      mean over queries of H / log(keys in sight): 0 looks at one key, 1 at all alike
    coverage     mean over keys of min(1, received / what an even spread would give): 1 when nothing is overlooked
    diagonality  correlation of a query's place with the place it looks at: 1 straight on, -1 backwards, 0 neither
    dead         heads that look everywhere alike, or that look at one same key whatever the query
    heads        how many there are
    """
    statistics = attended.statistics
    allowed = (statistics["uniform"] > 0).sum(-1, keepdim=True)  # batch heads 1
    possible = allowed.clamp_min(2).to(statistics["entropy"].dtype).log()
    share = statistics["entropy"] / possible
    fair = statistics["received"] / statistics["uniform"].clamp_min(1e-9)
    covered = torch.where(statistics["uniform"] > 0, fair.clamp(max=1.0), 0.0).sum(-1) / allowed[..., 0].clamp_min(1)
    even = (share >= SAME).flatten(2).all(-1).all(0)
    first = statistics["argmax"][:, :, :1]
    stuck = ((statistics["argmax"] == first) & (statistics["max"] >= SAME)).all(-1).all(0)
    several = statistics["argmax"].shape[-1] > 1 and bool((allowed > 1).all())
    dead = int((even | stuck).sum()) if several else 0
    return {
        "entropy": share.mean().item(),
        "coverage": covered.mean().item(),
        "diagonality": correlation(statistics["mean_position"]).mean().item(),
        "dead": dead,
        "heads": int(even.numel()),
    }


def correlation(places: Tensor) -> Tensor:
    """Pearson's correlation of each row with 0, 1, 2, ...; 0 for a row that does not change."""
    ruler = torch.arange(places.shape[-1], dtype=places.dtype, device=places.device)
    ruler, places = ruler - ruler.mean(), places - places.mean(-1, keepdim=True)
    scale = ruler.norm() * places.norm(dim=-1)
    return torch.where(scale > 1e-6, (places * ruler).sum(-1) / scale.clamp_min(1e-6), 0.0)


def gradients(output: Tensor, target: Padded, calls_by_name: Mapping[str, list[Tensor]]) -> dict[str, float]:
    """|d loss per token / d weights| for each attention whose weights the output depends on."""
    weights = [call for calls in calls_by_name.values() for call in calls]
    if not weights:
        return {}
    loss = cross_entropy(output, target) / target.keep.sum()
    gradients_of_weights = iter(torch.autograd.grad(loss, weights, allow_unused=True))
    squares = {
        name: [d.square().sum() for _ in calls if (d := next(gradients_of_weights)) is not None]
        for name, calls in calls_by_name.items()
    }
    lengths = {name: torch.stack(square).sum().sqrt().item() for name, square in squares.items() if square}
    return {name: length for name, length in lengths.items() if math.isfinite(length)}
