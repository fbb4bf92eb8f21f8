"""The other direction: a model that was trained from target to source aligns the same pairs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.alignment.heads import Merge, every
from regard.alignment.links import Links, flipped
from regard.alignment.soft import Soft, soft
from regard.data.records import Record
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import Trained


def reverse(
    trained: "Trained",
    records: Sequence[Record],
    pairs: Sequence[Soft],
    *,
    tokens: bool = False,
    threshold: float | None = None,
    by: Merge = "weights",
) -> list[Links]:
    """The links of a model of the other direction, told from source to target.

    `pairs` are the same records as the first model sees them: both have to find the same words in them.
    """
    turned = [each._replace(source=each.target or "", target=each.source) for each in records]
    others = soft(trained, turned, tokens=tokens)
    for pair, other, record in zip(pairs, others, records, strict=True):
        mine, theirs = (len(pair.source.texts), len(pair.target.texts)), (len(other.target.texts), len(other.source.texts))
        if mine != theirs:
            raise DataError(
                f"{record.where} has {mine[0]} and {mine[1]} units to one model, {theirs[0]} and {theirs[1]} to the other, "
                "and two directions need the same; align words, or train both with the same tokens"
            )
    return [flipped(links) for links in every(others, trained.head, threshold=threshold, by=by)]
