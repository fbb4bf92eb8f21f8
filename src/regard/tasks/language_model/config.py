"""Settings of language models, where they differ from those of other models that write text."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from regard.config import AttentionPart, Data, EncoderDecoder


@dataclass(frozen=True)
class LanguageData(Data):
    """Tables of texts, and how they become tokens."""

    columns: ClassVar[tuple[str, str]] = ("target", "target")
    """The settings that name the columns of a table."""

    train: str | None = None
    """Table to train on, a text on each line: a text file, TSV, JSONL or Parquet; None: synthetic samples."""
    target: str = "1"
    """The column of the text: its name, or its number from 1."""
    vocab_from: str | None = None
    """A run whose tokenizer is taken over, so that the language model can join its search (search.lm); None: a tokenizer is
    trained on the texts."""


@dataclass(frozen=True)
class LanguageNetwork(EncoderDecoder):
    """A decoder without a source."""

    encoder: Literal["none"] = "none"
    """No encoder: there is no source."""
    attention: AttentionPart = field(default_factory=lambda: AttentionPart("none"))
