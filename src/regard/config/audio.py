"""Settings of tasks that read sound, where they differ from those of texts."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from regard.config.section import Section
from regard.config.settings import Dropout, EncoderDecoder, Search, Train


@dataclass(frozen=True)
class AudioData(Section):
    """Tables of recordings, the features that are computed from them, and batches."""

    train: str | None = None
    """Table to train on: TSV, JSONL, Parquet, or a Kaldi folder with wav.scp and text; None: synthetic samples."""
    valid: str | None = None
    """Table to validate on; None: about one in ten of the recordings of data.train, with all of their lines."""
    test: str | None = None
    """Table to evaluate the trained model on (`regard evaluate`, `regard compare`)."""
    audio: str = "1"
    """The column with the path of the recording, or of its features (.npy, FILE.npz#NAME, FILE.safetensors#NAME), from the
    table's folder: its name, or its number from 1."""
    header: bool | None = None
    """True if the first line of a TSV table is a header, false if it is data; None: a header where a column is named."""
    features: Literal["log_mel", "mfcc"] = "log_mel"
    """Features of a recording: log mel spectrogram, or mel-frequency cepstral coefficients."""
    rate: int = 16_000
    """Sampling rate in hertz: a recording with another one is resampled."""
    bins: int = 80
    """Bins of the mel spectrogram."""
    coefficients: int = 13
    """Cepstral coefficients."""
    window_ms: float = 25.0
    """Length of the window of a frame in milliseconds."""
    hop_ms: float = 10.0
    """Time between two frames in milliseconds, of features that are read from files too."""
    normalise: Literal["utterance", "corpus", "none"] = "utterance"
    """Mean and variance normalisation of each channel: over the recording, over the training data, or none."""
    augment: str = "none"
    """Data augmentation while training: speed, spec_augment, or both joined by +; a name may have options, as in
    speed:low=0.9:high=1.1."""
    max_seconds: float = 30.0
    """Longest recording to train on, in seconds; longer ones are left out."""
    batch_seconds: float = 200.0
    """Batch size in seconds of sound, padding included."""
    samples: int = 4000
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
class AudioTextData(AudioData):
    """Tables of recordings and their texts, features of recordings, and how texts become tokens."""

    columns: ClassVar[tuple[str, str]] = ("audio", "text")
    """The settings that name the columns of a table."""

    text: str = "2"
    """The column of the text: its name, or its number from 1."""
    tokenizer: Literal["words", "characters", "bytes", "bpe", "unigram"] = "characters"
    """Tokenizer of the texts."""
    vocab_size: int = 8000
    """The most tokens of the vocabulary; what is rarer is unknown."""
    min_frequency: int = 1
    """Minimum frequency: a word or character seen less often is unknown."""
    lowercase: bool = False
    """Texts are lowercased before they are tokenized."""
    max_target_length: int = 512
    """The most tokens of a text."""
    over_long: Literal["truncate", "drop"] = "drop"
    """Rule for a text that is longer: it is truncated, or its record is dropped."""
    bleu_tokenizer: Literal["auto", "none", "13a", "zh", "char", "intl"] = "auto"
    """Tokenizer of BLEU, by its sacrebleu name, where it is the reward of sequence training."""


@dataclass(frozen=True)
class AudioEncoder(Section):
    """An encoder of frames, which reduces their number."""

    encoder: Literal["pyramid", "transformer", "conformer"] = "conformer"
    """Kind of encoder: pyramidal bi-LSTM (Listen, Attend and Spell), or convolutional subsampling followed by Transformer or
    Conformer layers."""
    subsampling: int = 4
    """Frames for each vector of the encoder's output: a power of 2."""
    encoder_layers: int | None = None
    """Layers of a Transformer or Conformer encoder (None: model.layers), or of a pyramid, which has one more than it has
    halvings of the frames at least."""
    convolution_kernel: int = 15
    """Kernel width of the convolutions of a Conformer, an odd number."""


@dataclass(frozen=True)
class AudioToTextModel(AudioEncoder, EncoderDecoder):
    """Encoder-decoder that reads sound: the decoder attends to the encoded frames."""


@dataclass(frozen=True)
class AudioDropout(Dropout):
    """Dropout rates while training."""

    encoder: float = 0.1
    """Dropout inside the encoder of frames."""


@dataclass(frozen=True)
class SpeechTrain(Train):
    """Optimisation, losses, evaluation and checkpoints of one training run."""

    ctc_weight: float = 0.0
    """Weight of the loss of connectionist temporal classification (CTC) on the encoder's output, from 0 to 1; the rest is
    that of the decoder."""


@dataclass(frozen=True)
class SpeechSearch(Search):
    """Decoding: how a transcript is searched for."""

    ctc_weight: float | None = None
    """Weight of the CTC prefix score in the search, from 0 to 1; the rest is the decoder's. None: 0.3 where the model is
    trained with CTC."""
    times: Literal["auto", "ctc", "attention"] = "auto"
    """Word times from the CTC path or from the attention; auto: CTC where the model has it."""
    hotword_bonus: float = 1.0
    """Score that each character of a hotword adds (--hotwords FILE), or each word where tokens are words."""
    excerpt_seconds: float | None = None
    """Longer recordings are transcribed in overlapping excerpts of so many seconds; None: data.max_seconds."""
