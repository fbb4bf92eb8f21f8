"""Route: points in, a short route through all of them out, learned by policy gradient."""

from dataclasses import dataclass, field

from regard.config import Dropout
from regard.tasks.route.config import RouteData, RouteModel, RouteTrain
from regard.tasks.route.experiment import RouteConfig, generate_instances
from regard.tasks.route.records import Instance


@dataclass(frozen=True)
class Config(RouteConfig):
    """An attention model over 20 generated points, trained by REINFORCE with a baseline of several starts."""

    data: RouteData = field(default_factory=RouteData)
    model: RouteModel = field(default_factory=RouteModel)
    dropout: Dropout = field(default_factory=lambda: Dropout(embedding=0.0, residual=0.0))
    train: RouteTrain = field(
        default_factory=lambda: RouteTrain(
            max_steps=800, learning_rate=1e-3, schedule="cosine", warmup_steps=40, evaluate_every=200, monitor="gap"
        )
    )


def prepare(record: Instance) -> Instance:
    """The record unchanged."""
    return record


def synthesise(samples: int, seed: int) -> tuple[list[Instance], list[Instance]]:
    """Instances of 20 points; a training generates its own for each step."""
    instances = generate_instances(2 * samples, 20, seed)
    return instances[samples:], instances[:samples]
