"""Early warning of a training whose attention does not learn to read, with advice."""

from collections.abc import Sequence
from typing import Any

LEAST = 0.6
"""Diagonality below which the attention does not read straight on."""
GAIN = 0.03
"""Gain of diagonality since the evaluation before that is worth waiting for."""
PATIENCE = 3
"""Evaluations before the first warning."""


def advise(diagonality: Sequence[float], misread: float, config: Any) -> str | None:
    """Warning and advice from the diagonality of all evaluations so far and the share of misread words; None: all is well.

    An attention that has not found the diagonal early on rarely does so later: the decoder has learned to continue the
    frames without reading the text.
    """
    if len(diagonality) < PATIENCE:
        return None
    now, before = diagonality[-1], diagonality[-2]
    if now < LEAST and now - before < GAIN:
        return (
            f"the attention does not read the text from its beginning to its end: diagonality {now:.2f} after "
            f"{len(diagonality)} evaluations, where {LEAST} and more is expected; {_list_remedies(config)}"
        )
    if now >= LEAST and misread > 0.1:
        return (
            f"the attention reads straight on with teacher forcing, and free running it skips or repeats {misread:.0%} of "
            f"the words; train longer, or take an attention that only moves forward{_name_forward(config)}"
        )
    return None


def _list_remedies(config: Any) -> str:
    """Advice on settings that are not yet as they should be."""
    remedies = []
    if config.train.guided_attention < 5:
        remedies.append(f"a stronger guidance (train.guided_attention=10, now {config.train.guided_attention:g})")
    if config.model.reduction < 5:
        remedies.append(f"fewer and longer steps (model.reduction=5, now {config.model.reduction})")
    if forward := _name_forward(config):
        remedies.append(f"an attention that only moves forward{forward}")
    remedies.append("shorter recordings (data.max_seconds), and silence cut from their ends")
    return "try " + "; ".join(remedies)


def _name_forward(config: Any) -> str:
    names = {"forward", "gmm", "dynamic_convolution"} & set(config.model.attention.name.split("+"))
    if names or config.model.network != "tacotron":
        return "" if names else " (model.network=tacotron with model.attention=dynamic_convolution)"
    return " (model.attention=dynamic_convolution or forward)"
