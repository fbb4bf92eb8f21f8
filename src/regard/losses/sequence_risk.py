"""Sequence-level training: the risk of a model's own outputs under a metric, as a loss."""

from typing import cast

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from regard.config import Train
from regard.data.modality import AnyBatch, Source
from regard.decoding.max_length import limit_lengths
from regard.losses.candidates import Outputs, decode_greedily, sample_outputs, score_outputs
from regard.losses.types import Loss
from regard.metrics.reward import Reward
from regard.models.seq2seq import Seq2Seq


class Risk:
    """Risk of a batch, by minimum-risk or self-critical training, interpolated with the loss on its targets.

        share Σ_x |y*| risk(x) + (1 - share) loss

    with |y*| the length of the target: a loss is a sum over tokens, and each of them is charged the risk of its sentence.
    (The papers weight all sentences equally. Sentences of a batch are about as long, so that it hardly differs.) `length` is
    the maximum length of an output, and `times` that in multiples of its source's, as in search.
    """

    def __init__(self, settings: Train, reward: Reward, length: int = 200, times: float = 3.0):
        self.settings, self.reward, self.length, self.times = settings, reward, length, times

    def __call__(self, model: nn.Module, batch: AnyBatch, loss: Loss) -> Loss:
        """Interpolated loss; `parts` has the risk alone."""
        source, references = batch.source, self.references(batch)
        network = cast(Seq2Seq, model)
        outputs = self.outputs(network, source, references)
        rewards = self.rewards(outputs, references).to(source.data.device)
        log_probabilities, keep = score_outputs(network, source, outputs)
        if self.settings.sequence_loss == "minimum_risk":
            risks = minimum_risk(log_probabilities, rewards, keep, self.settings.minimum_risk_alpha)
        else:
            greedy = [[output] for output in decode_greedily(network, source, self.limits(source))]
            risks = self_critical(
                log_probabilities, rewards, keep, self.rewards(greedy, references)[:, 0].to(rewards.device)
            )
        weights = torch.tensor([len(reference) for reference in references], device=risks.device)
        risk, share = (weights * risks).sum(), self.settings.sequence_weight
        total = risk if share == 1 else share * risk + (1 - share) * loss.total
        return Loss(total, loss.tokens, {**loss.parts, "risk": risk.detach()})

    def outputs(self, model: Seq2Seq, source: Source, references: list[list[int]]) -> Outputs:
        """Sampled outputs of each source; for minimum risk a set without duplicates, which may include the target."""
        candidates = sample_outputs(model, source, self.limits(source), self.settings.sequence_samples)
        if self.settings.sequence_loss == "self_critical":
            return candidates
        if self.settings.minimum_risk_reference:
            candidates = [[reference, *sampled] for reference, sampled in zip(references, candidates, strict=True)]
        return [[list(candidate) for candidate in dict.fromkeys(map(tuple, sampled))] for sampled in candidates]

    def rewards(self, outputs: Outputs, references: list[list[int]]) -> Float[Tensor, "batch outputs"]:
        """Reward of each output, 0 where a source has fewer; equal outputs are scored once."""
        table = torch.zeros(len(outputs), max(map(len, outputs)))
        for row, (candidates, reference) in enumerate(zip(outputs, references, strict=True)):
            reward_of = {candidate: self.reward(candidate, reference) for candidate in dict.fromkeys(map(tuple, candidates))}
            table[row, : len(candidates)] = torch.tensor([reward_of[tuple(candidate)] for candidate in candidates])
        return table

    def references(self, batch: AnyBatch) -> list[list[int]]:
        """Targets as token ids with EOS."""
        if batch.target is None:
            raise ValueError("train.sequence_loss needs a batch with targets, and this one has only sources")
        rows = zip(batch.target.data.tolist(), batch.target.keep.sum(1).tolist(), strict=True)
        return [row[:length] for row, length in rows]

    def limits(self, source: Source) -> list[int]:
        """Maximum output length for each source."""
        return limit_lengths(source, self.length, self.times)


def minimum_risk(
    log_probabilities: Float[Tensor, "batch outputs"],
    rewards: Float[Tensor, "batch outputs"],
    keep: Bool[Tensor, "batch outputs"],
    alpha: float,
) -> Float[Tensor, " batch"]:
    """Expected risk of each source over a set of outputs, weighted by the model's sharpened probabilities.

        risk = Σ_y Q(y | x) Δ(y),    Q(y | x) = p(y | x)^α / Σ_y' p(y' | x)^α,    Δ = 1 - reward

    with y, y' among the outputs of the source. A small α makes Q uniform, α = 1 keeps the model's own proportions: over all
    possible outputs, the risk is then the expected loss.
    Shen et al. 2016, https://arxiv.org/abs/1512.02433
    """
    shares = (alpha * log_probabilities).masked_fill(~keep, -torch.inf).softmax(-1)
    return (shares * (1 - rewards)).masked_fill(~keep, 0.0).sum(-1)


def self_critical(
    log_probabilities: Float[Tensor, "batch outputs"],
    rewards: Float[Tensor, "batch outputs"],
    keep: Bool[Tensor, "batch outputs"],
    expected: Float[Tensor, " batch"],
) -> Float[Tensor, " batch"]:
    """Risk of each source: the mean of 1 - reward over the outputs sampled for it.

        its gradient is that of  -(r(y) - r(ŷ)) log p(y | x),    y sampled, ŷ by greedy search

    whose mean is that of the expected loss: the baseline `expected`, r(ŷ), does not depend on the sample, and only lowers
    the variance. Rennie et al. 2017, https://arxiv.org/abs/1612.00563
    Unlike the paper, several outputs may be sampled for one source, and their mean is taken. The policy gradient term adds
    to the gradient and 0 to the value.
    """
    policy = -(rewards - expected[:, None]) * log_probabilities
    risks = (1 - rewards + policy - policy.detach()).masked_fill(~keep, 0.0)
    return risks.sum(-1) / keep.sum(-1)
