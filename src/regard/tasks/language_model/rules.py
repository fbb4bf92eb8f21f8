"""Conditions under which a setting of a language model has an effect: `tasks/_validate.py` raises for one without."""

from regard.tasks._validate import Rule

SOURCE = Rule(lambda config: False, "a source, and a language model has none")
TOKENIZER = Rule(lambda config: config.data.vocab_from is None, "a tokenizer that is trained here (no data.vocab_from)")

RULES: dict[str, Rule] = {
    **dict.fromkeys(("model.attention.name", "model.summary", "data.source", "data.max_source_length"), SOURCE),
    **dict.fromkeys(("data.target_tokenizer", "data.joint_vocab", "data.bleu_tokenizer", "train.sequence_loss"), SOURCE),
    **dict.fromkeys(("search.unknown", "search.max_length_ratio"), SOURCE),
    **dict.fromkeys(("data.tokenizer", "data.vocab_size", "data.min_frequency", "data.lowercase"), TOKENIZER),
}
