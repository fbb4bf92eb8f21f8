"""Settings of learning routes."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from regard.config import Train
from regard.config.section import Section


@dataclass(frozen=True)
class RouteData(Section):
    """Instances of points, which are generated anew for each step unless a file has some."""

    columns: ClassVar[tuple[str, ...]] = ()

    train: str | None = None
    """JSON lines with instances to train on, each {"points": [[x, y], ...]}; None: points generated at random."""
    valid: str | None = None
    """Instances to validate on; None: about one in ten of data.train, or others generated at random."""
    test: str | None = None
    """Instances to evaluate the trained model on."""
    points: int = 20
    """Number of points of a generated instance."""
    samples: int = 200
    """Number of generated instances to validate on."""
    batch_size: int = 64
    """Batch size in instances."""
    max_points: int = 500
    """The most points of an instance."""
    max_bytes: int | None = None
    """Bytes that a compressed file may unpack to; None: 32 MiB, or 100 times its size where that is more."""
    max_records: int | None = None
    """Records of a compressed file; None: 500,000, or one for each of its bytes where that is more."""


@dataclass(frozen=True)
class RouteModel(Section):
    """A Transformer encoder of points without positions, and a pointer decoder that names one point after the other."""

    hidden_size: int = 64
    """Size of the vectors of points."""
    layers: int = 2
    """Layers of the encoder."""
    heads: int = 4
    """Heads of self-attention and of the decoder's glimpse."""
    feedforward_size: int = 128
    """Inner size of feed-forward sublayers."""
    cap: float = 10.0
    """Bound of the pointer's logits: cap tanh(logit / cap)."""


@dataclass(frozen=True)
class RouteTrain(Train):
    """Training by policy gradient."""

    baseline: Literal["starts", "greedy", "none"] = "starts"
    """Baseline of REINFORCE: the mean length of routes from several starts, the greedy route from the same
    start, or none."""
    starts: int = 8
    """Routes that are sampled for each instance, each from a start of its own."""
