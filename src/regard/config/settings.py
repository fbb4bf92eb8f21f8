"""Every setting that tasks share, with a default that works: frozen dataclasses, made and compared like any other value."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

BOUNDS = {
    **dict.fromkeys(
        ("layers", "decoder_layers", "text_layers", "question_layers", "depth", "reranking_layers", "hops"), 256
    ),
    **dict.fromkeys(("heads", "glimpse_scales", "glimpses", "cls_tokens", "kernel_size", "channels"), 1024),
    **dict.fromkeys(("size", "hidden_size", "embedding_size", "self_attention_size", "map_size", "projection_size"), 65_536),
    **dict.fromkeys(("queries", "denoising_groups", "beam_groups", "stride", "height", "width", "glimpse_size"), 65_536),
    **dict.fromkeys(("max_frames", "episodes", "eval_episodes", "mbr_candidates", "beam", "rerank_top_k"), 65_536),
    **dict.fromkeys(("feedforward_size", "max_source_length", "max_target_length", "max_question_length"), 1_048_576),
    "max_length": 1_048_576,
    "vocab_size": 16_777_216,
}
"""The most that a setting may be, wherever it stands, so that building the network of a config from anywhere takes bounded
time: some ten times what the largest published models have. Memory is bounded by the weights that stand beside it."""
MOST = 2**63 - 1
"""The most that any other number may be: what the processor counts with."""


@dataclass(frozen=True)
class Data:
    """Where the records come from and how they become tokens."""

    columns: ClassVar[tuple[str, str]] = ("source", "target")
    """The settings that name the columns of a table."""

    train: str | None = None
    valid: str | None = None
    """None: about one in ten of the sources of data.train, with all of their lines."""
    test: str | None = None
    source: str = "1"
    """The column of the source: its name, or its number from 1."""
    target: str = "2"
    tokenizer: Literal["words", "characters", "bytes", "bpe", "unigram", "pretrained"] = "words"
    """What a text is cut into; pretrained are the tokens of a model that `regard import` brought."""
    target_tokenizer: Literal["words", "characters", "bytes", "bpe", "unigram"] | None = None
    """None: as the source."""
    vocab_size: int = 8000
    joint_vocab: bool = False
    """One vocabulary for both sides."""
    min_frequency: int = 1
    """A word or character seen less often than this is unknown."""
    lowercase: bool = False
    max_source_length: int = 256
    max_target_length: int = 256
    over_long: Literal["truncate", "drop"] = "drop"
    batch_tokens: int = 4096
    """How many tokens, padding included, a batch may hold on its longer side."""
    bleu_tokenizer: Literal["auto", "none", "13a", "zh", "char", "intl"] = "auto"
    """How BLEU cuts text into tokens: none where it is cut already; auto is zh for Chinese, else 13a."""
    samples: int = 4000
    """How many records a task draws itself where no file is given."""
    max_bytes: int | None = None
    """Bytes that a compressed table may unpack to; None: 32 MiB, or 100 times its size where that is more."""
    max_records: int | None = None
    """Records of a compressed table; None: 500,000, or one for each of its bytes where that is more."""
    alignments: str | None = None
    """A Pharaoh file with the links between the words of each training pair, line by line."""
    alignment_unit: Literal["words", "tokens"] = "words"
    """What its numbers count: what stands between spaces (the characters, where tokens are characters), or tokens."""

    @property
    def budget(self) -> int:
        """How much a batch may hold."""
        return self.batch_tokens


@dataclass(frozen=True)
class AttentionPart:
    """Which attention, by one name or several joined by +: additive, scaled_dot+sparsemax, transformer, none."""

    name: str = "additive"
    heads: int = 4
    size: int | None = None
    """Project queries, keys and values to this size first; None: only as the mechanism asks."""


@dataclass(frozen=True)
class OutputPart:
    """How a decoder chooses a word, by one name: projection, attention, mixture."""

    name: str = "projection"
    score: str = "dot"
    """How attention compares what was found with each word."""
    scale: float = 1.0
    """What its scores are multiplied by when training begins; then it is learned."""
    heads: int = 4
    """How many softmaxes a mixture has."""


@dataclass(frozen=True)
class EncoderDecoder:
    """An encoder of any kind, and a decoder that writes. What is None follows from the rest."""

    encoder: str = "recurrent"
    decoder: Literal["recurrent", "convolution", "transformer"] = "recurrent"
    attention: AttentionPart = field(default_factory=AttentionPart)
    hidden_size: int = 256
    embedding_size: int | None = None
    layers: int = 1
    decoder_layers: int | None = None
    """Of a Transformer's decoder; None: as many as the encoder has."""
    cell: Literal["tanh", "lstm", "gru"] = "lstm"
    bidirectional: bool = True
    order: Literal["bahdanau", "luong"] = "luong"
    input_feeding: bool = True
    initial: Literal["source", "zeros"] = "source"
    """What a recurrent decoder with an attention begins with: its source's last state, or zeros, which need no source."""
    summary: Literal["initial", "every_step", "both"] = "both"
    """How a decoder without attention gets its one vector."""
    reverse_source: bool = False
    kernel_size: int = 3
    """How many places a convolution sees: an odd number for the encoder."""
    heads: int = 4
    feedforward_size: int | None = None
    norm: Literal["pre", "post", "rms"] = "pre"
    """Where a Transformer's layer norms stand: before its sublayers or behind; rms: before, and of the mean square alone."""
    activation: Literal["relu", "gelu", "swish", "gelu_tanh"] = "relu"
    """What bends the middle of a feed-forward network."""
    gated: bool = False
    """A second projection is multiplied into that middle."""
    bias: bool = True
    """A Transformer's matrices, and the output's, have a vector that is added."""
    scale_embedding: bool = True
    """A Transformer's embeddings are multiplied by the square root of their size."""
    embedding_norm: bool = False
    """A layer norm follows a Transformer's embeddings."""
    self_attention: str = "scaled_dot"
    """How a Transformer's layers look at themselves: a score, a normaliser or a scope, or several joined by +."""
    self_attention_size: int | None = None
    """What these project to; None: model.hidden_size."""
    shared_bias: bool = False
    """With self_attention=t5, all layers of the encoder share one bias and those of the decoder another, as in T5."""
    positions: Literal["sinusoidal", "learned", "none"] = "sinusoidal"
    """What embeddings know of their places; none where the self-attention knows: rotary, alibi, relative, shaw, t5."""
    join: Literal["add", "concat"] = "add"
    tie_embeddings: bool = True
    """The decoder's output layer shares the embedding of its input; with a joint vocabulary the encoder does too."""
    output: OutputPart = field(default_factory=OutputPart)


@dataclass(frozen=True)
class Model(EncoderDecoder):
    """The network that reads a text."""

    encoder: Literal["recurrent", "convolution", "transformer"] = "recurrent"


@dataclass(frozen=True)
class Dropout:
    """What is dropped while training."""

    embedding: float = 0.1
    residual: float = 0.1
    attention: float = 0.0
    variational: bool = False
    """One mask for all steps of a recurrent network."""


@dataclass(frozen=True)
class Train:
    """The loop."""

    max_steps: int = 2000
    max_minutes: float | None = None
    seed: int = 0
    device: str = "auto"
    precision: Literal["fp32", "bf16"] = "fp32"
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    learning_rate: float = 1e-3
    schedule: Literal["constant", "noam", "cosine", "inverse_sqrt", "plateau"] = "constant"
    warmup_steps: int = 0
    weight_decay: float = 0.0
    gradient_clip: float = 1.0
    accumulate_steps: int = 1
    label_smoothing: float = 0.0
    """Label smoothing."""
    confidence_penalty: float = 0.0
    """Weight of the confidence penalty."""
    coverage_weight: float = 0.0
    """Weight of what attentions read again."""
    doubly_stochastic_weight: float = 0.0
    """Weight of how far each place of the source is from being read once, over a whole target."""
    guided_attention: float = 0.0
    """Weight of how far attentions look from the diagonal."""
    guided_alignment: float = 0.0
    """Weight of how far an attention looks from the links of data.alignments."""
    guided_alignment_head: str | None = None
    """Which one, and which of its heads: "decoder.2.cross:1"; None: the last over the source, the mean of its heads."""
    moment_matching: float = 0.0
    """Weight of how far mean and scale of what attentions find lie from those of the source."""
    reinforce_baseline: Literal["none", "moving_average", "learned"] = "moving_average"
    """What is expected of a look that hard attention drew: only what exceeds it counts for or against the look."""
    reinforce_reward: Literal["token", "rest", "sentence"] = "rest"
    """The log-likelihood that such a look is credited with: its token's, the rest of the target's, the whole target's."""
    entropy_bonus: float = 0.01
    """What such a look is paid for being undecided."""
    soft_attention_rate: float = 0.0
    """The share of such looks that read all places by their weights while training, so that a gradient passes."""
    scheduled_sampling: Literal["none", "constant", "linear", "exponential", "inverse_sigmoid"] = "none"
    scheduled_sampling_max: float = 1.0
    """The share of steps at which the model is fed its own output, at the end of the schedule."""
    scheduled_sampling_steps: int = 1000
    sequence_loss: Literal["none", "minimum_risk", "self_critical"] = "none"
    """Learn from what the metric makes of the model's own outputs, beside or in place of the likelihood of the target."""
    sequence_metric: Literal["chrf", "bleu", "edit", "exact"] = "chrf"
    """Of a sentence; edit is 1 less the edit distance of its tokens, as a share of the longer side."""
    sequence_samples: int = 8
    """How many outputs are drawn for each source."""
    minimum_risk_alpha: float = 0.005
    """How sharply minimum-risk training tells likely outputs from others."""
    minimum_risk_reference: bool = True
    """Whether the target is one of the outputs that minimum-risk training compares."""
    sequence_weight: float = 1.0
    """The share of the risk in the loss; the rest is the likelihood of the target."""
    sequence_start: int = 0
    """The step at which it begins."""
    init_from: str | None = None
    """A run directory whose weights and vocabularies the training begins with."""
    ema_decay: float | None = None
    average_checkpoints: int = 0
    """How many of the last checkpoints are averaged into the final model; 0: the best on valid."""
    monitor: str = "loss"
    """What decides which model is kept: loss, or a measure of the task on what valid decodes to, such as exact or bleu."""
    patience: int = 0
    """Stop after so many evaluations without a better one; 0: never."""
    evaluate_every: int = 500
    checkpoint_every: int = 500
    keep_checkpoints: int = 2
    log_every: int = 50
    max_bad_batches: int = 20
    """Give up after so many batches whose loss or gradient is not finite."""
    packing_length: int = 0
    """Places of a row that holds several examples, one after the other, for a Transformer; 0: a row for each example."""
    cuda_graphs: bool = True
    """On a GPU, replay what an update does as one CUDA graph for each shape of batch."""
    compile: bool = False
    """Compile the layers of a Transformer with torch.compile before updates; they begin later for it."""
    deterministic: bool = False
    tensorboard: bool = False
    record_example: str | None = None
    """A source, or source and target with a tab between them, whose attention is recorded while training goes on."""
    record_every: int = 100
    """Steps between two frames of the film; half as many frames are taken when there are 200."""


@dataclass(frozen=True)
class Search:
    """How an output is looked for."""

    beam: int = 1
    """Hypotheses followed at once; 1 is greedy search."""
    max_length: int = 200
    """The most tokens of an output."""
    max_length_ratio: float = 3.0
    """None is longer than so many times its source, and ten tokens more; 0: `length` alone says."""
    length_penalty: float = 1.0
    """Outputs are ranked by their log-probability, divided by their length to this power."""
    coverage_penalty: float = 0.0
    """Weight of what an output pays for places of the source that got less than a whole token's attention."""
    batch_size: int = 64
    """Sentences that are searched at once."""
    unknown: Literal["keep", "copy"] = "keep"
    """What becomes of words that the model cannot write: they stay, or become the source word they look at."""
    block_ngrams: int = 0
    """No output holds the same group of so many tokens twice; 0: it may."""
    beam_groups: int = 1
    """Share the beam out to groups that differ from each other; 1: plain beam search."""
    diversity_penalty: float = 0.5
    """What a group pays for each hypothesis of an earlier one that has just written the same token."""
    mbr: Literal["none", "chrf", "bleu", "edit", "exact"] = "none"
    """Answer with the candidate that is worth most by this metric beside all others, in place of the likeliest."""
    mbr_candidates: int = 16
    """How many there are."""
    mbr_from: Literal["beam", "sample"] = "beam"
    """Where these candidates come from: the best of a beam search, or samples."""
    forced_bos: int | None = None
    """The number of the token that every output begins with, such as the name of its language; None: the model's choice."""
    precision: Literal["float32", "int8", "bf16"] = "float32"
    """On a CPU, int8 rounds the decoder's matrices to 8 bits; on a GPU, bf16 computes in half precision. Neither is
    quite the same."""
