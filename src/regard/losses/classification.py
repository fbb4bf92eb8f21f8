"""Classification: single-label and multi-label losses, accuracy and F₁."""

from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.losses.types import Loss

Logits = Float[Tensor, "batch labels"]


def single_label_loss(logits: Logits, labels: Int[Tensor, " batch"], smoothing: float = 0.0) -> Loss:
    """Cross-entropy of a single label, summed over pictures: -log softmax(logits)_y."""
    total = F.cross_entropy(logits.float(), labels, reduction="sum", label_smoothing=smoothing)
    return Loss(total, len(labels), {"nll": total.detach(), "right": compute_credit(logits.detach(), labels).sum()})


def multi_label_loss(logits: Logits, labels: Bool[Tensor, "batch labels"], smoothing: float = 0.0) -> Loss:
    """Binary cross-entropy of a multi-label classifier, summed over labels and pictures.

    Σ_l -y_l log σ(z_l) - (1 - y_l) log σ(-z_l),    y_l = 1 - ε/2 where the label holds, else ε/2
    """
    if labels.shape != logits.shape:
        raise ValueError(
            f"multi-label targets need the shape of the logits, {tuple(logits.shape)} (batch, labels), got "
            f"{tuple(labels.shape)}; for one label a picture use single_label_loss"
        )
    target = labels.float() * (1 - smoothing) + smoothing / 2
    total = F.binary_cross_entropy_with_logits(logits.float(), target, reduction="sum")
    right = ((logits > 0) == labels).all(-1).sum()
    return Loss(total, len(labels), {"nll": total.detach(), "right": right})


def compute_f1(logits: Logits, labels: Bool[Tensor, "batch labels"]) -> float:
    """Micro-averaged F₁ of multi-label predictions: 2 TP / (2 TP + FP + FN), 1 with none at all."""
    predicted = logits > 0
    true_positives, positives = int((predicted & labels).sum()), int(predicted.sum()) + int(labels.sum())
    return 2 * true_positives / positives if positives else 1.0


def compute_accuracy(logits: Logits, labels: Int[Tensor, " batch"]) -> float:
    """Accuracy of the label with the highest logit; of n tied labels each counts 1/n."""
    return float(compute_credit(logits, labels).mean()) if len(labels) else float("nan")


def compute_credit(logits: Logits, labels: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """Credit of each prediction: 1 where the highest label is right, 1/n where it is one of n tied, else 0."""
    highest = logits == logits.max(-1, keepdim=True).values
    return highest.gather(1, labels[:, None])[:, 0] / highest.sum(-1)
