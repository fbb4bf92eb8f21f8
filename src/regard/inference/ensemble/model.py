"""Several models with the face of one: whoever searches, rates or records need not know."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.types import Attended
from regard.data.modality import Source
from regard.inference.ensemble.average import AVERAGES, Average, blend, probabilities
from regard.models.layers.log_mixture import to_float32
from regard.models.seq2seq import Seq2Seq
from regard.models.types import Decoder, Step
from regard.training.state_dict import named_tensors
from regard.tree import Tree


class Ensemble(nn.Module):
    """Models of one vocabulary, averaged by their probabilities, their logits or what their encoders read.

    Member n is the submodule "n", so that its attentions are called "0.decoder.cross" and so on. The weights are shares:
    they are scaled to sum to one, and equal where none are given. `average` is

    probabilities   the mean of what the members find likely: the usual ensemble, for members of any kind
    logits          the geometric mean: for members of any kind; one that is sure of a No is heard
    memories        the mean of the encoders' outputs, which the first member's decoder reads. It costs one decoder, and
                    needs encoders whose outputs mean the same, dimension by dimension: checkpoints of one training, or
                    trainings that began with the same weights. Of trainings that began apart the mean means nothing
    """

    def __init__(self, members: Sequence[Seq2Seq], weights: Sequence[float] | None = None, average: str = "probabilities"):
        super().__init__()
        if average not in AVERAGES:
            raise ValueError(f"average needs to be one of {', '.join(AVERAGES)}, got {average!r}")
        self.average, self.weights = average, shares(len(members), weights)
        self.names = [str(number) for number in range(len(members))]
        for name, member in zip(self.names, members, strict=True):
            self.add_module(name, member)
        join = AVERAGES[average]
        if join is None:
            alike(members)
            self.decoder = EnsembleDecoder([members[0].decoder], (1.0,), probabilities)
        else:
            self.decoder = EnsembleDecoder([member.decoder for member in members], self.weights, join)

    @property
    def members(self) -> list[Seq2Seq]:
        """The models."""
        return [member for name in self.names if isinstance(member := self.get_submodule(name), Seq2Seq)]

    def encode(self, source: Source) -> Tree:
        """Memory of each decoder for a source."""
        if self.average == "memories":
            return self.decoder.remember((blend([member.read(source) for member in self.members], self.weights),))
        return tuple(member.encode(source) for member in self.members)

    def forward(self, source: Source, target: Int[Tensor, "batch time"], **options: Any) -> Step:
        """The log-probabilities of every position, given the tokens before it. Options are the decoder's."""
        step: Step = self.decoder(target, self.encode(source), **options)
        return step

    def attentions(self) -> dict[str, Attention]:
        """Every attention of every member by its module path."""
        return {name: module for name, module in self.named_modules() if isinstance(module, Attention)}


class EnsembleDecoder(nn.Module):
    """The decoders of several models as one; memory and state are a tuple of theirs.

    What the attentions of member n saw comes by their names behind its number; and, where weights are asked for, the mean
    over all members by the plain name, if every member has an attention of that name that sees as much.
    """

    def __init__(self, decoders: Sequence[Decoder], weights: Sequence[float], join: Average):
        super().__init__()
        self.decoders = tuple(decoders)  # no submodules: they are the members', and are called as they are there
        self.weights, self.join = tuple(weights), join

    def remember(self, encoded: Sequence[Any]) -> Tree:
        """Memory of each decoder for the output of its encoder."""
        return tuple(decoder.remember(source) for decoder, source in zip(self.decoders, encoded, strict=True))

    def start(self, memory: Tree) -> Tree:
        """The states before the first token."""
        return tuple(decoder.start(part) for decoder, part in zip(self.decoders, memory, strict=True))

    def step(self, token: Int[Tensor, " rows"], memory: Tree, state: Tree, *, weights: bool = False) -> Step:
        """One token for each row, and what all members together make of it."""
        every = zip(self.decoders, memory, state, strict=True)
        return self.joined([decoder.step(token, *arguments, weights=weights) for decoder, *arguments in every], weights)

    def forward(
        self, target: Int[Tensor, "batch time"], memory: Tree, *, weights: bool = False, statistics: tuple[str, ...] = ()
    ) -> Step:
        """All positions at once."""
        every = zip(self.decoders, memory, strict=True)
        options: dict[str, Any] = {"weights": weights, "statistics": statistics}
        return self.joined([decoder(target, memory, **options) for decoder, memory in every], weights)

    def joined(self, steps: Sequence[Step], weights: bool) -> Step:
        """Output of all members as one distribution."""
        output = self.join([to_float32(step.output).log_softmax(-1) for step in steps], self.weights)
        attended = {f"{number}.{name}": look for number, step in enumerate(steps) for name, look in step.attended.items()}
        if weights:
            attended |= {name: mean for name in steps[0].attended if (mean := self.mean(name, steps)) is not None}
        return Step(output, tuple(step.state for step in steps), attended)

    def mean(self, name: str, steps: Sequence[Step]) -> Attended | None:
        """Mean attention of the members; their contexts are in spaces of their own and have no mean."""
        looks = [step.attended[name].weights for step in steps if name in step.attended]
        present = [look for look in looks if look is not None]
        if len(present) < len(steps) or len({weights.shape for weights in present}) > 1:
            return None
        weights = torch.stack([share * weights for share, weights in zip(self.weights, present, strict=True)]).sum(0)
        return Attended(weights.new_zeros(len(weights), weights.shape[2], 0), weights)


def shares(count: int, weights: Sequence[float] | None) -> tuple[float, ...]:
    """Weights that sum to one, equal where none are given."""
    if count < 2:
        raise ValueError(f"an ensemble needs two members or more, got {count}; one is used as it is")
    numbers = [1.0] * count if weights is None else [float(weight) for weight in weights]
    if len(numbers) != count:
        raise ValueError(f"an ensemble of {count} members needs as many weights, got {len(numbers)}")
    if not all(0 <= number < math.inf for number in numbers) or sum(numbers) <= 0:
        raise ValueError(f"weights need to be 0 or more and finite, and one of them above 0, got {numbers}")
    return tuple(number / sum(numbers) for number in numbers)


def alike(members: Sequence[Seq2Seq]) -> None:
    """Raise unless all members have parameters of the same names and shapes."""
    first, *others = (
        {name: tuple(parameter.shape) for name, parameter in named_tensors(member).items()} for member in members
    )
    for number, other in enumerate(others, 1):
        for name in (*first, *other):
            if first.get(name) != other.get(name):
                raise ValueError(
                    f"average=memories needs members of one architecture: {name} is {first.get(name, 'missing')} in member "
                    f"0 and {other.get(name, 'missing')} in member {number}; probabilities and logits take any"
                )
