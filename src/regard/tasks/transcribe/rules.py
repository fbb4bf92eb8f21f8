"""Conditions under which a setting of speech recognition has an effect: `tasks/_validate.py` raises for one without."""

from typing import Any

from regard.tasks._validate import Rule


def _layered(config: Any) -> bool:
    return config.model.encoder in ("transformer", "conformer")


CTC = Rule(lambda config: config.train.ctc_weight > 0, "a model that is trained with CTC (train.ctc_weight=0.3)")

RULES: dict[str, Rule] = {
    "model.convolution_kernel": Rule(lambda config: config.model.encoder == "conformer", "model.encoder=conformer"),
    "model.embedding_norm": Rule(lambda config: config.model.decoder == "transformer", "the transformer decoder"),
    "data.coefficients": Rule(lambda config: config.data.features == "mfcc", "data.features=mfcc"),
    "data.bleu_tokenizer": Rule(
        lambda config: "bleu" in (config.train.sequence_metric, config.search.mbr),
        "BLEU (train.sequence_metric=bleu or search.mbr=bleu)",
    ),
    "search.ctc_weight": CTC,
    "search.times": CTC,
}
