"""What labels of a picture cost, and how many of them are right."""

from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.losses.types import Loss

Logits = Float[Tensor, "batch labels"]


def one_label(logits: Logits, wanted: Int[Tensor, " batch"], smoothing: float = 0.0) -> Loss:
    """Where exactly one label holds: -log softmax(logits)_y, summed over pictures."""
    total = F.cross_entropy(logits.float(), wanted, reduction="sum", label_smoothing=smoothing)
    return Loss(total, len(wanted), {"nll": total.detach(), "right": credit(logits.detach(), wanted).sum()})


def any_labels(logits: Logits, wanted: Bool[Tensor, "batch labels"], smoothing: float = 0.0) -> Loss:
    """Where any number of labels may hold: each is a question of its own, and a picture costs the sum of its answers.

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
    """F₁ of labels that may hold together, all of them counted as one list: 2 TP / (2 TP + FP + FN), 1 with none at all."""
    said = logits > 0
    both, either = int((said & wanted).sum()), int(said.sum()) + int(wanted.sum())
    return 2 * both / either if either else 1.0


def accuracy(logits: Logits, wanted: Int[Tensor, " batch"]) -> float:
    """The share of pictures whose highest label is the right one; labels that are equally high share the credit."""
    return float(credit(logits, wanted).mean()) if len(wanted) else float("nan")


def credit(logits: Logits, wanted: Int[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """1 where the highest label is the right one, else 0; 1/n where it is one of n that are equally high."""
    highest = logits == logits.max(-1, keepdim=True).values
    return highest.gather(1, wanted[:, None])[:, 0] / highest.sum(-1)
