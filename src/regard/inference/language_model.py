"""Language model of a run directory, as a scorer for the search of another model."""

from typing import TYPE_CHECKING

import torch

from regard.data.records import Record
from regard.decoding.fusion.language_model import LanguageModel
from regard.errors import RefusedError

if TYPE_CHECKING:
    from regard.inference.sequence_predictor import SequencePredictor


def load_language_model(directory: str, trained: "SequencePredictor") -> LanguageModel:
    """The language model in a run directory, for the search of a model with the same tokens on its device."""
    from regard.inference.load import load_sequence_predictor  # imported late: it builds predictors

    device = next(trained.model.parameters()).device
    language = load_sequence_predictor(directory, str(device))
    home = "RUN" if trained.home is None else trained.home
    advice = f"train one with its tokens: regard train language_model --data.train=FILE --data.vocab_from={home} --out DIR"
    if language.reads_source:
        raise RefusedError(f"search.lm={directory} is a run of {language.name}, which reads a source; {advice}")
    if trained.copies:
        raise RefusedError(
            f"search.lm={directory} has no probability for words that are copied from a source, and this model "
            f"({trained.name}) copies them (model.copy=true); leave search.lm out"
        )
    check_vocabulary(directory, language, trained, advice)
    with torch.no_grad():
        empty = language.codec.collate([language.codec.encode(Record("", None, "search.lm"))])
        memory = language.model.encode(empty.to(device))
    return LanguageModel(language.model.decoder, memory, trained.config.search.lm_weight)


def check_vocabulary(directory: str, language: "SequencePredictor", trained: "SequencePredictor", advice: str) -> None:
    """Raise where the tokens of a language model are not those that the other model writes."""
    theirs, ours = language.codec.target, trained.codec.target
    if (theirs.kind, theirs.table) == (ours.kind, ours.table):
        return
    raise RefusedError(
        f"search.lm={directory} has {theirs.size} tokens ({theirs.kind}), and this model ({trained.name}) writes other "
        f"ones, {ours.size} ({ours.kind}): scores of the two can be added for equal tokens alone; {advice}"
    )
