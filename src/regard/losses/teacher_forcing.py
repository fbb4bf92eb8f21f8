"""Teacher-forced training loss; all losses are sums over the kept tokens, so that batches and their parts add up."""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.config import Train
from regard.data.batch import Padded, shifted
from regard.data.modality import AnyBatch, Source
from regard.decoding.attention_weights import find_source_mask
from regard.losses.attention_penalties import (
    coverage_loss,
    doubly_stochastic_loss,
    guided_attention_loss,
    list_cross_attentions,
)
from regard.losses.cross_entropy import Logits, fused_likelihood_loss, is_plain_projection, likelihood_loss
from regard.losses.guided_alignment import Guide, guided, guided_alignment_loss
from regard.losses.hard_attention import Reinforce, Tokens, find_hard_attentions, set_soft_share
from regard.losses.moment_matching import moment_matching_loss
from regard.losses.sequence_risk import Risk
from regard.losses.types import Loss, Progress
from regard.models.decoders.scheduled_sampling import sampling_probability
from regard.models.packing import check_settings
from regard.models.types import Step
from regard.tree import Tree


def teach(
    model: nn.Module,
    batch: AnyBatch,
    *,
    smoothing: float = 0.0,
    confidence: float = 0.0,
    own: float = 0.0,
    coverage: float = 0.0,
    doubly_stochastic: float = 0.0,
    diagonal: float = 0.0,
    looks: Reinforce | None = None,
    guide: Guide | None = None,
    statistics: float = 0.0,
    risk: Risk | None = None,
) -> Loss:
    """Training loss of a model with teacher forcing, or scheduled sampling with probability `own`, and optional penalties.

    `coverage`, `doubly_stochastic` and `diagonal` are the weights of penalties on attention: to repeated positions, to
    positions whose total is not one, and far from the diagonal. `looks` is the REINFORCE loss of hard attentions. `guide`
    names the attention that is trained on the links of the batch's records. `statistics` is the weight of moment matching
    between contexts and source, and `risk` adds sequence-level training to the likelihood, or replaces it. Packed rows take
    the likelihood of targets alone.
    """
    target = batch.target
    if target is None:
        raise ValueError("teach needs a batch with targets, and this one has only sources")
    priced = coverage or doubly_stochastic or diagonal or guide
    if target.documents is not None and (own or priced or statistics or looks is not None or risk is not None):
        raise ValueError(
            "teach goes by whole rows for all but the likelihood of targets, got packed rows and own, coverage, "
            "doubly_stochastic, diagonal, guide, statistics, looks or risk; leave these out, or give each example a row"
        )
    options: dict[str, Any] = ({"own": own} if own else {}) | ({"weights": True} if priced else {})
    bare = not own and looks is None and is_plain_projection(model)
    options |= {"project": False} if bare else {}
    options |= {} if target.documents is None else {"documents": target.documents}
    fed = shifted(target.data, target.documents)
    step, memory = run_model(model, batch.source, fed, bool(statistics or doubly_stochastic), **options)
    if bare:
        loss = fused_likelihood_loss(model, step.output, target, smoothing, confidence)
    else:
        loss = likelihood_loss(step.output, target, smoothing, confidence)
    if risk is not None:
        loss = risk(model, batch, loss)
    if statistics:
        loss = add_term(
            loss, statistics * (moved := moment_matching_loss(model, step, memory, target.keep)), {"moment_matching": moved}
        )
    if coverage:
        loss = add_term(loss, coverage * (repeated := coverage_loss(step.attended, target.keep)), {"coverage": repeated})
    if doubly_stochastic:
        uneven = doubly_stochastic_loss(step.attended, target.keep, find_source_mask(memory))
        loss = add_term(loss, doubly_stochastic * uneven, {"doubly_stochastic": uneven})
    if diagonal:
        loss = add_term(
            loss,
            diagonal * (far := guided_attention_loss(step.attended, batch.source.keep, target.keep)),
            {"guided_attention": far},
        )
    if guide:
        strayed = guided_alignment_loss(step.attended, batch.records, target.keep, guide.head)
        loss = add_term(loss, guide.weight * strayed, {"guided_alignment": strayed})
    if looks is not None and any(each.sampled is not None for each in step.attended.values()):
        loss = add_term(loss, *looks(step.attended, target.keep, compute_target_logprobs(step.output, target)))
    return loss


def run_model(
    model: Any, source: Source, fed: Int[Tensor, "batch time"], remember: bool, **options: Any
) -> tuple[Step, Tree]:
    """Output of the decoder, and the memory of the source if asked for."""
    if not remember:
        return model(source, fed, **options), None
    memory = model.encode(source)
    return model.decoder(fed, memory, **options), memory


def add_term(loss: Loss, more: Float[Tensor, ""], parts: Mapping[str, Tensor]) -> Loss:
    """Add a term to a loss."""
    return Loss(loss.total + more, loss.tokens, {**loss.parts, **{name: part.detach() for name, part in parts.items()}})


@torch.no_grad()
def compute_target_logprobs(logits: Logits, target: Padded) -> Tokens:
    """Log-likelihood log p(y_t) of each kept token, and 0 for padding."""
    log = logits.float().log_softmax(-1).gather(-1, target.data[..., None])[..., 0]
    return log.masked_fill(~target.keep, 0.0)


class Teacher(nn.Module):
    """Training loss as a config describes it; a module, since baselines of hard attention learn too."""

    def __init__(self, settings: Train, model: nn.Module, risk: Risk | None = None):
        super().__init__()
        self.settings, self.risk = settings, risk
        check_settings(settings)
        self.looks = Reinforce(settings, drawn) if (drawn := find_hard_attentions(model)) else None
        set_soft_share(model, settings.soft_attention_rate)
        self.guide = guided(settings, model)
        if self.looks is not None and settings.sequence_loss != "none":
            raise ValueError(
                f"train.sequence_loss={settings.sequence_loss} needs an attention that weighs the source, and this model's "
                "draws where it looks, so that an output has no likelihood of its own; set it to none, or use another "
                "attention than hard"
            )
        if risk is None and settings.sequence_loss != "none":
            raise ValueError(
                f"train.sequence_loss={settings.sequence_loss} needs a Risk to go by, got none; give Teacher one"
            )
        for name in ("coverage_weight", "doubly_stochastic_weight", "guided_attention", "moment_matching"):
            if getattr(settings, name):
                found = (path for path, each in model.named_modules() if isinstance(each, Attention))
                list_cross_attentions(found, f"train.{name}")

    @property
    def repeats(self) -> bool:
        """True if batches of one shape run the same operations (nothing is sampled or looked up), as a CUDA graph needs."""
        return self.risk is None and self.guide is None and self.settings.scheduled_sampling == "none"

    def forward(self, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
        settings = self.settings
        return teach(
            model,
            batch,
            smoothing=settings.label_smoothing,
            confidence=settings.confidence_penalty,
            own=sampling_probability(settings, progress.step),
            coverage=settings.coverage_weight,
            doubly_stochastic=settings.doubly_stochastic_weight,
            diagonal=settings.guided_attention,
            looks=self.looks,
            guide=self.guide,
            statistics=settings.moment_matching,
            risk=self.risk if progress.step >= settings.sequence_start else None,
        )

    @property
    def watches(self) -> bool:
        """True if a baseline depends on the losses of earlier updates."""
        return self.looks is not None and self.looks.baseline is not None

    def see(self, loss: Loss) -> None:
        """Update the baseline with the loss of an update."""
        if self.looks is not None and self.looks.baseline is not None:
            nll, tokens = (torch.as_tensor(each) for each in (loss.parts["nll"], loss.tokens))
            self.looks.baseline.see(-nll / tokens.clamp_min(1))
