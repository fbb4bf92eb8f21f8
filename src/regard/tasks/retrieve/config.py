"""Settings of retrieval."""

from dataclasses import dataclass
from typing import Literal

from regard.config import ImageDropout, ImageModel, ImageTextData


@dataclass(frozen=True)
class RetrieveData(ImageTextData):
    """Tables of pictures and the texts that belong to them; either may occur in several pairs."""


@dataclass(frozen=True)
class RetrieveModel(ImageModel):
    """A dual encoder of pictures and texts, and a cross-encoder that re-ranks the nearest."""

    text_encoder: Literal["transformer", "recurrent", "convolution"] = "transformer"
    """Encoder of the texts."""
    text_layers: int = 2
    """Layers of the text encoder."""
    projection_size: int = 128
    """Size of the embeddings by which pictures and texts are compared."""
    reranking_layers: int = 1
    """Layers of the cross-encoder, which reads a picture and a text together; 0: no re-ranking."""
    rerank_top_k: int = 20
    """Number of the nearest entries that are re-ranked."""


@dataclass(frozen=True)
class RetrieveDropout(ImageDropout):
    """Dropout rates while training."""

    words: float = 0.0
    """Word dropout: the share of a text's tokens that are left out."""
