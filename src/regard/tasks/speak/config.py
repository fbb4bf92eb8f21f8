"""Settings of speech synthesis."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from regard.config import AttentionPart, Dropout
from regard.config.section import Section


@dataclass(frozen=True)
class SpeakData(Section):
    """Tables of recordings and their texts, the frames that are learned, how texts become tokens, and batches."""

    columns: ClassVar[tuple[str, str]] = ("audio", "text")
    """The settings that name the columns of a table."""

    train: str | None = None
    """Table to train on: TSV, JSONL, or Parquet; None: synthetic samples."""
    valid: str | None = None
    """Table to validate on; None: about one in ten of the texts of data.train, with all of their lines."""
    test: str | None = None
    """Table to evaluate the trained model on (`regard evaluate`, `regard compare`)."""
    audio: str = "1"
    """The column with the path of the recording, or of its log mel spectrogram (.npy, FILE.npz#NAME), from the table's
    folder: its name, or its number from 1."""
    text: str = "2"
    """The column of the text: its name, or its number from 1."""
    header: bool | None = None
    """True if the first line of a TSV table is a header, false if it is data; None: a header where a column is named."""
    tokenizer: Literal["words", "characters", "bytes", "bpe", "unigram"] = "characters"
    """Tokenizer of the texts: characters, or words for texts that are phonemes with spaces between them."""
    vocab_size: int = 8000
    """The most tokens of the vocabulary; what is rarer is unknown."""
    min_frequency: int = 1
    """Minimum frequency: a word or character seen less often is unknown."""
    lowercase: bool = True
    """Texts are lowercased before they are tokenized."""
    max_source_length: int = 400
    """The most tokens of a text."""
    over_long: Literal["truncate", "drop"] = "drop"
    """Rule for a text that is longer, of those to train on: it is truncated, or its record is dropped."""
    rate: int = 16_000
    """Sampling rate in hertz: a recording with another one is resampled."""
    bins: int = 80
    """Bins of the mel spectrogram."""
    window_ms: float = 50.0
    """Length of the window of a frame in milliseconds."""
    hop_ms: float = 12.5
    """Time between two frames in milliseconds."""
    max_seconds: float = 12.0
    """Longest recording to train on, in seconds, longer ones are left out; and the longest sound that is spoken."""
    batch_seconds: float = 200.0
    """Batch size in seconds of sound, padding included."""
    samples: int = 400
    """Number of synthetic samples that a task generates where no table is named."""
    max_bytes: int | None = None
    """Bytes that a compressed table may unpack to; None: 32 MiB, or 100 times its size where that is more."""
    max_records: int | None = None
    """Records of a compressed table; None: 500,000, or one for each of its bytes where that is more."""

    @property
    def max_frames(self) -> int:
        """Frames of the longest recording."""
        return max(1, round(1000 * self.max_seconds / self.hop_ms))

    @property
    def budget(self) -> int:
        """Capacity of a batch, in frames."""
        return max(1, round(1000 * self.batch_seconds / self.hop_ms))


@dataclass(frozen=True)
class SpeakModel(Section):
    """An encoder of texts, and a decoder of frames that attends to it."""

    network: Literal["tacotron", "transformer"] = "tacotron"
    """The network: convolutions, bi-LSTM and LSTM decoder (Tacotron 2), or a Transformer (Transformer TTS)."""
    attention: AttentionPart = field(default_factory=lambda: AttentionPart("forward"))
    """The attention of the decoder over the text: location_sensitive, forward, gmm, dynamic_convolution; transformer."""
    hidden_size: int = 256
    """Size of hidden states."""
    reduction: int = 3
    """Reduction factor: frames of each step of the decoder."""
    layers: int = 3
    """Convolutions of the encoder of tacotron; layers of the encoder and of the decoder of transformer."""
    kernel_size: int = 5
    """Kernel width of the convolutions of encoder and postnet, an odd number."""
    prenet_size: int = 128
    """Size of the two layers of the prenet."""
    postnet_layers: int = 5
    """Convolutions of the postnet; 0: none."""
    postnet_size: int = 256
    """Channels of the postnet."""
    heads: int = 4
    """Heads of self-attention."""
    feedforward_size: int = 1024
    """Inner size of the feed-forward networks."""


@dataclass(frozen=True)
class SpeakDropout(Dropout):
    """Dropout rates while training."""

    prenet: float = 0.5
    """Dropout of the prenet, which keeps the decoder from copying the frame before."""
    always: bool = True
    """The prenet has its dropout in prediction too, as in Tacotron 2, from a fixed seed."""
    convolution: float = 0.3
    """Dropout after each convolution of encoder and postnet."""
