"""From trained models to one that answers for all of them."""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from regard.alignment.heads import Head
from regard.components import Handed, hand_over
from regard.data.modality import Codec
from regard.inference.ensemble.model import Ensemble
from regard.inference.load import load_sequence_predictor
from regard.inference.sequence_predictor import SequencePredictor
from regard.models.seq2seq import Seq2Seq

SETTINGS = ("lowercase", "max_source_length", "max_target_length", "height", "width", "channels", "stride")
"""Attributes in which the codecs of members must agree, as far as they have them."""


def ensemble(
    runs: Sequence[Path | str | SequencePredictor],
    *,
    average: str = "probabilities",
    weights: Sequence[float] | None = None,
    device: str = "auto",
    components: Iterable[Handed] = (),
) -> SequencePredictor:
    """Several runs of one task and one vocabulary as one model, which answers, is measured and is traced like any other.

        regard.ensemble(["run/a", "run/b"], weights=[2.0, 1.0]).predict("Tom chases Jerry", beam=5)

    `average` is probabilities, logits or memories (model.py says what each is good for). How answers are looked for is what
    the first run's config says. `components` are those of load().
    """
    with hand_over(components):
        members = [run if isinstance(run, SequencePredictor) else load_sequence_predictor(run, device) for run in runs]
    models = combine_models(members)
    first = members[0]
    alike = all(member.head == first.head and member.config.model == first.config.model for member in members)
    return SequencePredictor(
        first.task, first.config, first.codec, Ensemble(models, weights, average), first.head if alike else Head()
    )


def combine_models(members: Sequence[SequencePredictor]) -> list[Seq2Seq]:
    """The members' models, or an error that says why they cannot answer as one."""
    models: list[Seq2Seq] = []
    for number, member in enumerate(members):
        if not isinstance(member.model, Seq2Seq):
            raise ValueError(f"member {number} is an ensemble itself; name its members in its place")
        if member.name != members[0].name:
            raise ValueError(
                f"an ensemble needs members of one task, got {members[0].name} and {member.name} (member {number})"
            )
        what = find_difference(members[0].codec, member.codec)
        if what is not None:
            raise ValueError(
                f"an ensemble needs members that share their vocabulary: member {number} differs from member 0 in {what}; "
                "train them on the same data with the same data settings, and another train.seed"
            )
        models.append(member.model)
    return models


def find_difference(first: Codec, other: Codec) -> str | None:
    """Difference between two codecs of one task, or None where the same text has the same ids."""
    for side in (name for name in ("source", "target") if hasattr(first, name)):
        mine, its = getattr(first, side), getattr(other, side)
        if mine.kind != its.kind:
            return f"the tokens of its {side} ({mine.kind} and {its.kind})"
        if mine.table != its.table:
            strange = next(
                (place for place, pair in enumerate(zip(mine.table, its.table, strict=False)) if len(set(pair)) > 1), None
            )
            where = "" if strange is None else f", and token {strange} is not the same"
            return f"its {side} vocabulary ({mine.size} and {its.size} tokens{where})"
        if saved(mine) != saved(its):
            return f"how its {side} is cut into tokens"
    for name in (name for name in SETTINGS if hasattr(first, name)):
        if getattr(first, name) != getattr(other, name):
            return f"{name} ({getattr(first, name)} and {getattr(other, name)})"
    return None


def saved(tokenizer: object) -> dict[str, bytes]:
    """All that a tokenizer knows, as it writes it down."""
    with tempfile.TemporaryDirectory() as folder:
        return {path.name: path.read_bytes() for path in tokenizer.save(Path(folder), "side")}  # type: ignore[attr-defined]
