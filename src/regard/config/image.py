"""The settings of tasks that read pictures, where they are others than those of texts."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from regard.config.settings import AttentionPart, Dropout, EncoderDecoder


@dataclass(frozen=True)
class ImageData:
    """Where pictures come from, and how large they are read."""

    train: str | None = None
    valid: str | None = None
    """None: about one in ten of the pictures of data.train, with all of their lines."""
    test: str | None = None
    image: str = "1"
    """The column with the path of the picture, which counts from the table's folder: its name, or its number from 1."""
    height: int = 256
    """A picture that is higher or wider is made smaller, as a whole; none is made larger."""
    width: int = 256
    channels: int = 3
    """3: in colour, 1: grey."""
    augment: str = "none"
    """What happens to pictures at random while training: affine, light, flip, crop, erase, or several joined by +; a word
    may have numbers, as in affine:scale=0.3:turn=0."""
    batch_size: int = 16
    """How many pictures of height x width a batch has room for; of smaller ones it holds more."""
    batch_pixels: int | None = None
    """The same in pixels, filling included, in place of data.batch_size."""
    samples: int = 4000
    """How many pictures a task draws itself where no file is given."""
    max_bytes: int | None = None
    """Bytes that a compressed table may unpack to; None: 32 MiB, or 100 times its size where that is more."""
    max_records: int | None = None
    """Records of a compressed table; None: 500,000, or one for each of its bytes where that is more."""
    language: Literal["english", "chinese"] = "english"
    """What is said of these."""

    @property
    def budget(self) -> int:
        """How many pixels a batch may hold."""
        return self.batch_size * self.height * self.width if self.batch_pixels is None else self.batch_pixels


@dataclass(frozen=True)
class ImageTextData(ImageData):
    """Where pictures and their texts come from, how large a picture is read, and how a text becomes tokens."""

    columns: ClassVar[tuple[str, str]] = ("image", "text")
    """The settings that name the columns of a table."""

    text: str = "2"
    stretch: bool = False
    """Every picture is made height x width, whatever its proportions are."""
    tokenizer: Literal["words", "characters", "bytes", "bpe", "unigram", "pretrained"] = "words"
    """What a text is cut into; pretrained are the tokens of a model that `regard import` brought."""
    vocab_size: int = 8000
    min_frequency: int = 1
    """A word or character seen less often than this is unknown."""
    lowercase: bool = False
    max_target_length: int = 256
    over_long: Literal["truncate", "drop"] = "drop"
    bleu_tokenizer: Literal["auto", "none", "13a", "zh", "char", "intl"] = "auto"
    """How BLEU cuts text into tokens: none where it is cut already; auto is zh for Chinese, else 13a."""


@dataclass(frozen=True)
class ClassifyData(ImageData):
    """Where pictures and their labels come from."""

    columns: ClassVar[tuple[str, str]] = ("image", "label")

    label: str = "2"
    multi_label: bool | None = None
    """Whether a picture may have several labels, with commas between them, or none. None: those of a table have one each."""
    clips: bool = False
    """Clips in the place of pictures: each is a folder, whose pictures in the order of their names are its frames."""
    max_frames: int = 64
    """The most frames of a clip."""


@dataclass(frozen=True)
class ImageEncoder:
    """An encoder of pictures, and the map that it makes of one."""

    encoder: Literal["resnet", "densenet", "vit"] = "resnet"
    stride: int = 8
    """The side of the square of pixels that one place of the map stands for. resnet: a power of 2; densenet: 8 or 16."""
    depth: int | None = None
    """Blocks of each stage (resnet), layers of each of three blocks (densenet), layers (vit); None: the encoder's own."""
    map_size: int | None = None
    """The size of the vectors on the map; None: model.hidden_size."""
    map_norm: Literal["batch", "group"] = "batch"
    """How a CNN norms its maps: over all pictures of a batch, or over each by itself."""
    map_positions: Literal["sinusoidal", "normalised", "learned", "none"] = "sinusoidal"
    """What the places of a CNN's map know of where they are; normalised: in shares of the picture."""
    visual_attention: str = "none"
    """The attention inside a CNN, by its word: channel, spatial, selective_kernel (`regard list visual`)."""


@dataclass(frozen=True)
class VitPart:
    """Settings of the ViT encoder alone; None: as in the decoder."""

    hidden_size: int | None = None
    """Of its layers; where it is not that of the map, a projection follows them."""
    heads: int | None = None
    feedforward_size: int | None = None
    activation: Literal["relu", "gelu", "swish", "gelu_tanh"] | None = None
    norm: Literal["pre", "post", "rms"] | None = None
    norm_eps: float | None = None
    """What its norms add to a variance; None: 1e-5."""
    learned_positions: bool = False
    """A vector for each place of the map in place of model.positions; all pictures need one size (data.stretch=true)."""
    cls_tokens: int = 0
    """How many vectors more there are, for the picture as a whole, which look at all places and are looked at: 1 for a class
    token, 2 where there is one for distillation beside it."""


@dataclass(frozen=True)
class ImageToTextModel(ImageEncoder, EncoderDecoder):
    """The network that reads a picture and writes: an encoder of pictures, whose map the decoder looks at."""

    vit: VitPart = field(default_factory=VitPart)


@dataclass(frozen=True)
class ImageModel(ImageEncoder):
    """The network that tells what it sees: an encoder of pictures, and an attention that asks its map."""

    attention: AttentionPart = field(default_factory=lambda: AttentionPart("transformer"))
    hidden_size: int = 128
    heads: int = 4
    """Of patches that look at themselves; an attention has model.attention.heads."""
    feedforward_size: int | None = None
    norm: Literal["pre", "post", "rms"] = "pre"
    activation: Literal["relu", "gelu", "swish", "gelu_tanh"] = "relu"
    self_attention: str = "scaled_dot"
    """How patches look at themselves: a score, a normaliser or a scope, or several joined by +."""
    positions: Literal["sinusoidal", "learned", "none"] = "sinusoidal"
    """What patches know of their places."""


@dataclass(frozen=True)
class ImageDropout(Dropout):
    """What is dropped while training."""

    encoder: float = 0.0
    """Inside the encoder of pictures."""


@dataclass(frozen=True)
class DetectData(ImageData):
    """Where pictures come from, and what is where on each: a JSONL table with a list of labels and one of boxes."""

    columns: ClassVar[tuple[str, str, str]] = ("image", "labels", "boxes")

    image: str = "image"
    labels: str = "labels"
    boxes: str = "boxes"
    box_format: Literal["xyxy", "xywh", "cxcywh"] = "xyxy"
    """What the four numbers of a box are. xyxy: left, top, right, bottom in pixels; xywh: left, top, width, height in
    pixels, as COCO has them; cxcywh: centre x, centre y, width, height as fractions of the picture, as YOLO has them."""


@dataclass(frozen=True)
class DetectModel(ImageModel):
    """The network that finds things: an encoder of pictures, and layers whose queries each look for one thing on its map."""

    layers: int = 3
    """Of the decoder; model.heads and model.feedforward_size are those of its layers."""
    queries: int = 60
    """The most things that can be found on a picture."""
    denoising_groups: int = 4
    """Copies of all things that are given with noise while training, which teach without being matched; 0: none."""


@dataclass(frozen=True)
class RetrieveData(ImageTextData):
    """Where pictures and the texts that belong to them come from; either may be there several times."""


@dataclass(frozen=True)
class RetrieveModel(ImageModel):
    """Two towers, one for pictures and one for texts, and layers that look at a picture and a text together."""

    text_encoder: Literal["transformer", "recurrent", "convolution"] = "transformer"
    text_layers: int = 2
    projection_size: int = 128
    """The size of the vectors that pictures and texts are compared by."""
    reranking_layers: int = 1
    """How many layers look at a picture and a text together; 0: the vectors alone decide."""
    rerank_top_k: int = 20
    """At how many of the nearest they look."""


@dataclass(frozen=True)
class RetrieveDropout(ImageDropout):
    """What is dropped while training."""

    words: float = 0.0
    """The share of the tokens of a text that are left out."""


@dataclass(frozen=True)
class ClassifyModel(ImageModel):
    """The network that gives labels: one that sees all of a picture at once, or one that takes a few glimpses at it."""

    glimpses: int = 0
    """How many small squares of a picture are seen, one after another, in place of all of it; 0: all of it is."""
    glimpse_size: int = 8
    """The pixels on a side of a glimpse."""
    glimpse_scales: int = 1
    """How many squares a glimpse has, each twice as wide as the one before and as coarse."""
    core: Literal["relu", "lstm"] = "lstm"
    """What remembers earlier glimpses."""
    location_std: float = 0.1
    """How far from where it means to look a glimpse lies while training, in halves of the picture's sides."""
    episodes: int = 1
    """How often each picture of a batch is looked at while training, every time elsewhere."""
    eval_episodes: int = 1
    """How many ways over a picture an answer is the mean of; the first is the one that is shown."""


@dataclass(frozen=True)
class VqaData(ImageData):
    """Where pictures, questions about them and answers come from, and how a question becomes tokens."""

    columns: ClassVar[tuple[str, str, str]] = ("image", "question", "answer")

    question: str = "2"
    answer: str = "3"
    tokenizer: Literal["words", "characters", "bytes", "bpe", "unigram"] = "words"
    vocab_size: int = 8000
    min_frequency: int = 1
    """A word or character seen less often than this is unknown."""
    lowercase: bool = True
    max_question_length: int = 64
    over_long: Literal["truncate", "drop"] = "drop"


@dataclass(frozen=True)
class VqaModel(ImageModel):
    """The network that answers questions: an encoder of each side, and looks at both, one after the other."""

    attention: AttentionPart = field(default_factory=lambda: AttentionPart("additive"))
    """How a question looks at the map."""
    word_attention: str = "additive"
    """How each look at the map looks at the words before, by one name as an attention; none: it does not."""
    hops: int = 2
    """How many looks at the map."""
    question_encoder: Literal["recurrent", "transformer"] = "transformer"
    """The encoder of the question."""
    question_layers: int = 1
    heads: int = 4
    """Of patches, and of the words of a question, that look at themselves; an attention has model.attention.heads."""
