"""Training loss with teacher forcing: cross-entropy or regression, penalties on attention, REINFORCE and sequence risk.

All losses are sums over the kept tokens, so that batches and their parts add up.
"""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.config import Train
from regard.data.batch import Padded
from regard.data.feedback import NumberFeedback, TokenFeedback
from regard.data.modality import AnyBatch, Feedback
from regard.decoding.attention_weights import find_source_mask
from regard.losses.attention_penalties import (
    coverage_loss,
    doubly_stochastic_loss,
    guided_attention_loss,
    list_cross_attentions,
)
from regard.losses.copying import copying_loss, mixture_loss
from regard.losses.cross_entropy import Logits, fused_likelihood_loss, is_fusable, likelihood_loss
from regard.losses.guided_alignment import Guide, build_guide, guided_alignment_loss
from regard.losses.hard_attention import Reinforce, Tokens, find_hard_attentions, set_soft_share
from regard.losses.moment_matching import moment_matching_loss
from regard.losses.regression import regression_loss
from regard.losses.sequence_risk import Risk
from regard.losses.types import Loss, Progress
from regard.models.decoders.scheduled_sampling import sampling_probability
from regard.models.packing import check_settings
from regard.models.types import Step

TOKEN_SETTINGS = ("label_smoothing", "confidence_penalty", "sequence_loss", "packing_length")
"""Settings of a training that need a decoder of tokens."""


def teacher_forcing_loss(
    model: Any,
    batch: AnyBatch,
    *,
    smoothing: float = 0.0,
    confidence: float = 0.0,
    own: float = 0.0,
    coverage: float = 0.0,
    doubly_stochastic: float = 0.0,
    guided_attention: float = 0.0,
    reinforce: Reinforce | None = None,
    guide: Guide | None = None,
    moment_matching: float = 0.0,
    risk: Risk | None = None,
) -> Loss:
    """Training loss of a model with teacher forcing, or scheduled sampling with probability `own`, and optional penalties.

    `smoothing` is that of the labels and `confidence` the weight of the confidence penalty. `coverage`, `doubly_stochastic`
    and `guided_attention` are the weights of penalties on attention: to repeated positions, to positions whose total is not
    one, and far from the diagonal. `reinforce` is the loss of hard attentions. `guide` names the attention that is trained
    on the links of the batch's records. `moment_matching` is the weight of the distance between contexts and source in mean
    and scale, and `risk` adds sequence-level training to the likelihood, or replaces it. Packed rows take the likelihood of
    targets alone.
    """
    target = batch.target
    if target is None:
        raise ValueError("teacher forcing needs a batch with targets, and this one has only sources")
    needs_weights = coverage or doubly_stochastic or guided_attention or guide
    sampled = reinforce is not None or risk is not None
    if target.documents is not None and (own or needs_weights or moment_matching or sampled):
        raise ValueError(
            "packed rows can be trained by the likelihood of their targets alone, got own, coverage, doubly_stochastic, "
            "guided_attention, guide, moment_matching, reinforce or risk; leave these out, or give each example a row"
        )
    options: dict[str, Any] = ({"own": own} if own else {}) | ({"weights": True} if needs_weights else {})
    fused = not own and not confidence * copies_words(model) and reinforce is None and is_fusable(model)
    options |= {"project": False} if fused else {}
    options |= {} if target.documents is None else {"documents": target.documents}
    feedback = find_feedback(model)
    decoder_input = feedback.decoder_input(batch.source, target)
    memory: Any = None
    if moment_matching or doubly_stochastic or (guided_attention and hasattr(model, "encode")):  # they need the memory too
        memory = model.encode(batch.source)
        step: Step = model.decoder(decoder_input, memory, **options)
    else:
        step = model(batch.source, decoder_input, **options)
    if isinstance(feedback, NumberFeedback):
        loss = regression_loss(step.output, target, feedback)
    elif fused and step.copying is not None:
        loss = copying_loss(model, step.output, step.copying, target, smoothing)
    elif copies_words(model) and not confidence:
        loss = mixture_loss(step.output, target, smoothing)
    elif fused:
        loss = fused_likelihood_loss(model, step.output, target, smoothing, confidence)
    else:
        loss = likelihood_loss(step.output, target, smoothing, confidence)
    if risk is not None:
        loss = risk(model, batch, loss)
    if moment_matching:
        distance = moment_matching_loss(model, step, memory, target.keep)
        loss = add_term(loss, moment_matching * distance, {"moment_matching": distance})
    if coverage:
        repeated = coverage_loss(step.attended, target.keep)
        loss = add_term(loss, coverage * repeated, {"coverage": repeated})
    if doubly_stochastic:
        penalty = doubly_stochastic_loss(step.attended, target.keep, find_source_mask(memory))
        loss = add_term(loss, doubly_stochastic * penalty, {"doubly_stochastic": penalty})
    if guided_attention:
        source_keep = None if memory is None else find_source_mask(memory)
        off_diagonal = guided_attention_loss(
            step.attended, batch.source.keep if source_keep is None else source_keep, target.keep
        )
        loss = add_term(loss, guided_attention * off_diagonal, {"guided_attention": off_diagonal})
    if guide:
        alignment_loss = guided_alignment_loss(step.attended, batch.records, target.keep, guide.head)
        loss = add_term(loss, guide.weight * alignment_loss, {"guided_alignment": alignment_loss})
    if reinforce is not None and any(attended.sampled is not None for attended in step.attended.values()):
        loss = add_term(loss, *reinforce(step.attended, target.keep, compute_target_logprobs(step.output, target)))
    return loss


def find_feedback(model: nn.Module) -> Feedback:
    """Feedback of a model's decoder; that of tokens where it has none of its own."""
    feedback: Feedback = getattr(getattr(model, "decoder", None), "feedback", TokenFeedback())
    return feedback


def copies_words(model: nn.Module) -> bool:
    """Return True if a model mixes copies into its output."""
    outcome = getattr(getattr(model, "decoder", None), "outcome", None)
    return getattr(outcome, "copying", None) is not None


def add_term(loss: Loss, term: Float[Tensor, ""], parts: Mapping[str, Tensor]) -> Loss:
    """Add a term to a loss."""
    return Loss(loss.total + term, loss.tokens, {**loss.parts, **{name: part.detach() for name, part in parts.items()}})


@torch.no_grad()
def compute_target_logprobs(logits: Logits, target: Padded) -> Tokens:
    """Log-likelihood log p(y_t) of each kept token, and 0 for padding."""
    log_probabilities = logits.float().log_softmax(-1).gather(-1, target.data[..., None])[..., 0]
    return log_probabilities.masked_fill(~target.keep, 0.0)


def check_feedback(settings: Train, feedback: Feedback) -> None:
    """Raise for settings that need a distribution over tokens, where a decoder outputs numbers."""
    for name in TOKEN_SETTINGS if isinstance(feedback, NumberFeedback) else ():
        if (value := getattr(settings, name)) not in (0, "none"):
            raise ValueError(f"train.{name}={value} needs a decoder of tokens, and this one outputs numbers; leave it out")


def check_confidence(model: nn.Module) -> None:
    """Raise where a confidence penalty would need the entropy of a distribution over words that no vocabulary lists."""
    if getattr(getattr(getattr(model, "decoder", None), "outcome", None), "extends", False):
        raise ValueError(
            "train.confidence_penalty needs a distribution over one vocabulary, and with model.copy=true each source has "
            "words of its own; leave one of the two out"
        )


class TeacherForcing(nn.Module):
    """Training loss by the settings of a config; a module, since baselines of hard attention learn too."""

    def __init__(self, settings: Train, model: nn.Module, risk: Risk | None = None):
        super().__init__()
        self.settings, self.risk = settings, risk
        self.fixed_shapes: bool = getattr(getattr(model, "encoder", None), "capturable", True)
        check_settings(settings)
        check_feedback(settings, find_feedback(model))
        self.looks = Reinforce(settings, hard_attentions) if (hard_attentions := find_hard_attentions(model)) else None
        set_soft_share(model, settings.soft_attention_rate)
        self.guide = build_guide(settings, model)
        if self.looks is not None and isinstance(find_feedback(model), NumberFeedback):
            raise ValueError("a hard attention is rewarded by the likelihood of tokens, and this decoder outputs numbers")
        if self.looks is not None and settings.sequence_loss != "none":
            raise ValueError(
                f"train.sequence_loss={settings.sequence_loss} needs a soft attention, and this model's is hard: it samples "
                "the key that it reads, so that an output has no likelihood of its own; set it to none, or use another "
                "attention than hard"
            )
        if settings.confidence_penalty:
            check_confidence(model)
        if risk is None and settings.sequence_loss != "none":
            raise ValueError(
                f"train.sequence_loss={settings.sequence_loss} needs a Risk, got none; give one to TeacherForcing"
            )
        for name in ("coverage_weight", "doubly_stochastic_weight", "guided_attention", "moment_matching"):
            if getattr(settings, name):
                attentions = (path for path, module in model.named_modules() if isinstance(module, Attention))
                list_cross_attentions(attentions, f"train.{name}")

    @property
    def capturable(self) -> bool:
        """True if batches of one shape run the same operations (nothing is sampled or looked up), as a CUDA graph needs."""
        plain = self.risk is None and self.guide is None and self.fixed_shapes
        return plain and self.settings.scheduled_sampling == "none"

    def forward(self, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
        settings = self.settings
        return teacher_forcing_loss(
            model,
            batch,
            smoothing=settings.label_smoothing,
            confidence=settings.confidence_penalty,
            own=sampling_probability(settings, progress.step),
            coverage=settings.coverage_weight or 0.0,
            doubly_stochastic=settings.doubly_stochastic_weight,
            guided_attention=settings.guided_attention,
            reinforce=self.looks,
            guide=self.guide,
            moment_matching=settings.moment_matching,
            risk=self.risk if progress.step >= settings.sequence_start else None,
        )

    @property
    def has_baseline(self) -> bool:
        """True if a baseline depends on the losses of earlier updates."""
        return self.looks is not None and self.looks.baseline is not None

    def update_baseline(self, loss: Loss) -> None:
        """Update the baseline with the loss of an update."""
        if self.looks is not None and self.looks.baseline is not None:
            nll, tokens = torch.as_tensor(loss.parts["nll"]), torch.as_tensor(loss.tokens)
            self.looks.baseline.update(-nll / tokens.clamp_min(1))
