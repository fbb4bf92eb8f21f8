"""Texts to train on, texts to try, and one tokenizer of each kind."""

from functools import cache

from hypothesis import strategies as st

from regard.data.text.tokenizers import Tokenizer, train

TEXTS = [
    "Tom chases Jerry.",
    "Does the cat that Tom likes chase Jerry every day?",
    "汤姆追逐杰瑞。",
    "汤姆喜欢的猫每天追逐杰瑞吗？",
    "Ein Mann in einem blauen Hemd (42 Jahre) putzt ein Fenster.",
] * 5

ODD = ["▁", "￭", "\0", "\t", "\n", "\r\n", "  ", "<unk>", "<0x41>", "<s>", "\u2047", "\u2585", "\ufeff", "\u200d"]
ODD += ["👩‍👩‍👧", "👍🏽", "e\u0301", "ﷺ", "\U0010ffff", "\u202e", "\u3099", "\x85", "\u2028", "𠀀", "가"]

unicode = st.text(max_size=30) | st.lists(st.text(max_size=5) | st.sampled_from(ODD + TEXTS), max_size=8).map("".join)
"""Texts from all planes of Unicode, mixed with what the libraries keep for themselves."""


@cache
def trained(kind: str) -> Tokenizer:
    """The tokenizer of a kind for TEXTS."""
    return train(kind, TEXTS, 400)
