"""Settings of tasks that read pictures, where they differ from those of texts."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from regard.config.section import Section
from regard.config.settings import AttentionPart, Dropout, EncoderDecoder


@dataclass(frozen=True)
class ImageData(Section):
    """Tables of pictures, the size at which they are read, and batches."""

    train: str | None = None
    """Table to train on: TSV, JSONL or Parquet; None: synthetic samples."""
    valid: str | None = None
    """Table to validate on; None: about one in ten of the pictures of data.train, with all of their lines."""
    test: str | None = None
    """Table to evaluate the trained model on (`regard evaluate`, `regard compare`)."""
    image: str = "1"
    """The column with the path of the picture, which counts from the table's folder: its name, or its number from 1."""
    header: bool | None = None
    """True if the first line of a TSV table is a header, false if it is data; None: a header where a column is named."""
    height: int = 256
    """Maximum height in pixels: a picture that is higher or wider is scaled down as a whole; none is scaled up."""
    width: int = 256
    """Maximum width in pixels."""
    channels: int = 3
    """Colour channels: 3 (RGB) or 1 (greyscale)."""
    augment: str = "none"
    """Data augmentation while training: affine, light, flip, crop, erase, or several joined by +; a name may have options,
    as in affine:scale=0.3:turn=0."""
    batch_size: int = 16
    """Batch size in pictures of height x width; of smaller ones a batch holds more."""
    batch_pixels: int | None = None
    """Batch size in pixels, padding included, in place of data.batch_size."""
    samples: int = 4000
    """Number of synthetic samples that a task generates where no table is named."""
    max_bytes: int | None = None
    """Bytes that a compressed table may unpack to; None: 32 MiB, or 100 times its size where that is more."""
    max_records: int | None = None
    """Records of a compressed table; None: 500,000, or one for each of its bytes where that is more."""
    language: Literal["english", "chinese"] = "english"
    """Language of the texts of synthetic samples."""

    @property
    def budget(self) -> int:
        """Capacity of a batch, in pixels."""
        return self.batch_size * self.height * self.width if self.batch_pixels is None else self.batch_pixels


@dataclass(frozen=True)
class ImageTextData(ImageData):
    """Tables of pictures and their texts, the size at which pictures are read, and how texts become tokens."""

    columns: ClassVar[tuple[str, str]] = ("image", "text")
    """The settings that name the columns of a table."""

    text: str = "2"
    """The column of the text: its name, or its number from 1."""
    stretch: bool = False
    """Every picture is scaled to height x width, whatever its aspect ratio."""
    tokenizer: Literal["words", "characters", "bytes", "bpe", "unigram", "pretrained"] = "words"
    """Tokenizer of the texts; pretrained: that of a model which `regard import` has converted."""
    vocab_size: int = 8000
    """The most tokens of the vocabulary; what is rarer is unknown."""
    min_frequency: int = 1
    """Minimum frequency: a word or character seen less often is unknown."""
    lowercase: bool = False
    """Texts are lowercased before they are tokenized."""
    max_target_length: int = 256
    """The most tokens of a text."""
    over_long: Literal["truncate", "drop"] = "drop"
    """Rule for a text that is longer: it is truncated, or its record is dropped."""
    bleu_tokenizer: Literal["auto", "none", "13a", "zh", "char", "intl"] = "auto"
    """Tokenizer of BLEU, by its sacrebleu name; none: the text is tokenized already; auto: zh for Chinese, else 13a."""


@dataclass(frozen=True)
class ImageEncoder(Section):
    """An encoder of pictures (backbone), whose output is a feature map."""

    encoder: Literal["resnet", "densenet", "vit"] = "resnet"
    """Backbone."""
    stride: int = 8
    """Stride of the feature map, or patch size of a ViT, in pixels. resnet: a power of 2; densenet: 8 or 16."""
    depth: int | None = None
    """Blocks of each stage (resnet), layers of each of three blocks (densenet), layers (vit); None: the backbone's own."""
    map_size: int | None = None
    """Channels of the feature map; None: model.hidden_size."""
    map_norm: Literal["batch", "group"] = "batch"
    """Norm of a CNN: batch norm or group norm."""
    map_positions: Literal["sinusoidal", "normalised", "learned", "none"] = "sinusoidal"
    """Position embeddings of a CNN's feature map; normalised: sinusoids of the position as a fraction of the picture."""
    visual_attention: str = "none"
    """Attention inside a CNN, by name: channel, spatial, selective_kernel (`regard list visual`)."""


@dataclass(frozen=True)
class VitPart(Section):
    """Settings of the ViT encoder alone; None: as in the decoder."""

    hidden_size: int | None = None
    """Size of its hidden states; a projection to model.map_size follows where that differs."""
    heads: int | None = None
    """Heads of its self-attention."""
    feedforward_size: int | None = None
    """Inner size of its feed-forward sublayers."""
    activation: Literal["relu", "gelu", "swish", "gelu_tanh"] | None = None
    """Activation of its feed-forward sublayers."""
    norm: Literal["pre", "post", "rms"] | None = None
    """Pre-norm, post-norm or RMSNorm."""
    norm_eps: float | None = None
    """Epsilon of its layer norms; None: 1e-5."""
    learned_positions: bool = False
    """A learned embedding for each patch in place of model.positions; all pictures need one size (data.stretch=true)."""
    cls_tokens: int = 0
    """Class tokens before the patches: 1 for ViT, 2 for DeiT with its distillation token."""


@dataclass(frozen=True)
class ImageToTextModel(ImageEncoder, EncoderDecoder):
    """Encoder-decoder that reads a picture: the decoder attends to the feature map."""

    vit: VitPart = field(default_factory=VitPart)


@dataclass(frozen=True)
class ImageModel(ImageEncoder):
    """A backbone, and an attention to its feature map from which the answer is computed."""

    attention: AttentionPart = field(default_factory=lambda: AttentionPart("transformer"))
    hidden_size: int = 128
    """Size of hidden states (d_model of a Transformer)."""
    heads: int = 4
    """Heads of a Transformer's self-attention; other attentions have model.attention.heads."""
    feedforward_size: int | None = None
    """Inner size of feed-forward sublayers; None: 4 x model.hidden_size."""
    norm: Literal["pre", "post", "rms"] = "pre"
    """Layer norms of a Transformer: before each sublayer (pre-norm), after it (post-norm), or RMSNorm before it."""
    activation: Literal["relu", "gelu", "swish", "gelu_tanh"] = "relu"
    """Activation of feed-forward sublayers."""
    self_attention: str = "scaled_dot"
    """Self-attention of a Transformer: a score, a normaliser or a scope, or several joined by +."""
    positions: Literal["sinusoidal", "learned", "none"] = "sinusoidal"
    """Position embeddings of patches and words."""


@dataclass(frozen=True)
class ImageDropout(Dropout):
    """Dropout rates while training."""

    encoder: float = 0.0
    """Dropout inside the backbone."""
