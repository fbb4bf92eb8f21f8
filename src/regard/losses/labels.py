"""Classification losses and accuracy for labels of pictures."""

from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.losses.types import Loss

Logits = Float[Tensor, "batch labels"]


def one_label(logits: Logits, wanted: Int[Tensor, " batch"], smoothing: float = 0.0) -> Loss:
    """Cross-entropy of a single label, summed over pictures: -log softmax(logits)_y."""
    total = F.cross_entropy(logits.float(), wanted, reduction="sum", label_smoothing=smoothing)
    return Loss(total, len(wanted), {"nll": total.detach(), "right": compute_credit(logits.detach(), wanted).sum()})


def any_labels(logits: Logits, wanted: Bool[Tensor, "batch labels"], smoothing: float = 0.0) -> Loss:
    """Binary cross-entropy of a multi-label classifier, summed over labels and pictures.

    Σ_l -y_l log σ(z_l) - (1 - y_l) log σ(-z_l),    y_l = 1 - ε/2 where the label holds, else ε/2
    """
    if wanted.shape != logits.shape:
        raise ValueError(
            f"each of {tuple(logits.shape)} (batch, labels) needs a yes or no, got {tuple(wanted.shape)}; "
            "one number for each picture is one_label's"
        )
    aim = wanted.float() * (1 - smoothing) + smoothing / 2
    total = F.binary_cross_entropy_with_logits(logits.float(), aim, reduction="sum")
    right = ((logits > 0) == wanted).all(-1).sum()
    return Loss(total, len(wanted), {"nll": total.detach(), "right": right})


def f_measure(logits: Logits, wanted: Bool[Tensor, "batch labels"]) -> float:
    """Micro-averaged F₁ of multi-label predictions: 2 TP / (2 TP + FP + FN), 1 with none at all."""
    said = logits > 0
    both, either = int((said & wanted).sum()), int(said.sum()) + int(wanted.sum())
    return 2 * both / either if either else 1.0


def accuracy(logits: Logits, wanted: Int[Tensor, " batch"]) -> float:
    """Accuracy of the highest label; ties share the credit."""
    return float(compute_credit(logits, wanted).mean()) if len(wanted) else float("nan")


def compute_credit(logits: Logits, wanted: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """Credit of each prediction: 1 where the highest label is right, 1/n where it is one of n tied, else 0."""
    highest = logits == logits.max(-1, keepdim=True).values
    return highest.gather(1, wanted[:, None])[:, 0] / highest.sum(-1)
