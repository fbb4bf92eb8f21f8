"""Settings of visual question answering."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from regard.config import AttentionPart, ImageData, ImageModel


@dataclass(frozen=True)
class VqaData(ImageData):
    """Tables of pictures, questions about them and answers, and how questions become tokens."""

    columns: ClassVar[tuple[str, str, str]] = ("image", "question", "answer")

    question: str = "2"
    """The column of the question: its name, or its number from 1."""
    answer: str = "3"
    """The column of the answer: its name, or its number from 1."""
    tokenizer: Literal["words", "characters", "bytes", "bpe", "unigram"] = "words"
    """Tokenizer of the questions."""
    vocab_size: int = 8000
    """The most tokens of the vocabulary; what is rarer is unknown."""
    min_frequency: int = 1
    """Minimum frequency: a word or character seen less often is unknown."""
    lowercase: bool = True
    """Questions are lowercased before they are tokenized."""
    max_question_length: int = 64
    """The most tokens of a question."""
    over_long: Literal["truncate", "drop"] = "drop"
    """Treatment of a longer question: it is truncated, or its record is left out."""


@dataclass(frozen=True)
class VqaModel(ImageModel):
    """Stacked attention network: a backbone, an encoder of the question, and hops of attention from question to picture."""

    attention: AttentionPart = field(default_factory=lambda: AttentionPart("additive"))
    word_attention: str = "additive"
    """Attention to the words of the question before each hop, by the name of an attention; none: only to the picture."""
    hops: int = 2
    """Hops: how often the question attends to the feature map."""
    question_encoder: Literal["recurrent", "transformer"] = "transformer"
    """Encoder of the question."""
    question_layers: int = 1
    """Layers of the question encoder."""
