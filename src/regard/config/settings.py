"""Settings that tasks share, each with a default that works: frozen dataclasses, compared like any other value.

The sentence below a field is what `regard show TASK` says of that setting (`docs.py`).
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from regard.config.section import Section

BOUNDS = {
    **dict.fromkeys(
        ("layers", "decoder_layers", "text_layers", "question_layers", "depth", "reranking_layers", "hops"), 256
    ),
    **dict.fromkeys(("heads", "glimpse_scales", "glimpses", "cls_tokens", "kernel_size", "channels"), 1024),
    **dict.fromkeys(("size", "hidden_size", "embedding_size", "self_attention_size", "map_size", "projection_size"), 65_536),
    **dict.fromkeys(("queries", "denoising_groups", "beam_groups", "stride", "height", "width", "glimpse_size"), 65_536),
    **dict.fromkeys(("max_frames", "episodes", "eval_episodes", "mbr_candidates", "beam", "rerank_top_k"), 65_536),
    **dict.fromkeys(("feedforward_size", "max_source_length", "max_target_length", "max_question_length"), 1_048_576),
    **dict.fromkeys(("max_length", "max_length_ratio"), 1_048_576),
    **dict.fromkeys(("coverage_penalty", "diversity_penalty"), 1_000_000),
    "length_penalty": 10,
    "vocab_size": 16_777_216,
}
"""Upper bound of a setting, wherever it stands, so that building the network of an untrusted config takes bounded time: some
ten times the largest published models. Memory is bounded by the weights that stand beside the config. Penalties are bounded
so that no score overflows."""
MAX_INTEGER = 2**63 - 1
"""Upper bound of every other number: the largest signed 64-bit integer."""


@dataclass(frozen=True)
class Data(Section):
    """Tables of records, and how their texts become tokens."""

    columns: ClassVar[tuple[str, str]] = ("source", "target")
    """The settings that name the columns of a table."""

    train: str | None = None
    """Table to train on: TSV, JSONL, Parquet, or two parallel files (a.de::a.en); None: synthetic samples."""
    valid: str | None = None
    """Table to validate on; None: about one in ten of the sources of data.train, with all of their lines."""
    test: str | None = None
    """Table to evaluate the trained model on (`regard evaluate`, `regard compare`)."""
    source: str = "1"
    """The column of the source: its name, or its number from 1."""
    target: str = "2"
    """The column of the target: its name, or its number from 1."""
    header: bool | None = None
    """True if the first line of a TSV table is a header, false if it is data; None: a header where a column is named."""
    tokenizer: Literal["words", "characters", "bytes", "bpe", "unigram", "pretrained"] = "words"
    """Tokenizer of the source; pretrained: that of a model which `regard import` has converted."""
    target_tokenizer: Literal["words", "characters", "bytes", "bpe", "unigram"] | None = None
    """Tokenizer of the target; None: as the source."""
    vocab_size: int = 8000
    """The most tokens of a vocabulary; what is rarer is unknown."""
    joint_vocab: bool = False
    """One vocabulary for both sides."""
    min_frequency: int = 1
    """Minimum frequency: a word or character seen less often is unknown."""
    lowercase: bool = False
    """Texts are lowercased before they are tokenized."""
    max_source_length: int = 256
    """The most tokens of a source."""
    max_target_length: int = 256
    """The most tokens of a target."""
    over_long: Literal["truncate", "drop"] = "drop"
    """Rule for a record that is longer: it is truncated, or dropped."""
    batch_tokens: int = 4096
    """Batch size in tokens: how many, padding included, a batch may hold on its longer side."""
    bleu_tokenizer: Literal["auto", "none", "13a", "zh", "char", "intl"] = "auto"
    """Tokenizer of BLEU, by its sacrebleu name; none: the text is tokenized already; auto: zh for Chinese, else 13a."""
    samples: int = 4000
    """Number of synthetic samples that a task generates where no table is named."""
    max_bytes: int | None = None
    """Bytes that a compressed table may unpack to; None: 32 MiB, or 100 times its size where that is more."""
    max_records: int | None = None
    """Records of a compressed table; None: 500,000, or one for each of its bytes where that is more."""
    alignments: str | None = None
    """A Pharaoh file with the links between the words of each training pair, line by line."""
    alignment_unit: Literal["words", "tokens"] = "words"
    """Unit that the indices of data.alignments count: words between spaces (characters, where tokens are characters), or
    tokens."""

    @property
    def budget(self) -> int:
        """Capacity of a batch, in tokens."""
        return self.batch_tokens


@dataclass(frozen=True)
class AttentionPart(Section):
    """The attention, by one name or several joined by +: additive, scaled_dot+sparsemax, transformer, none. Parameters of
    its stages are settings too, such as model.attention.alpha of entmax; `regard show entmax` lists them."""

    name: str = "additive"
    heads: int = 4
    """Heads of a multi-head attention."""
    size: int | None = None
    """Project queries, keys and values to this size first; None: only where the mechanism needs it."""
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)
    """Parameters of its stages by name, or below the name of their stage where two have one of that name."""


@dataclass(frozen=True)
class OutputPart(Section):
    """The output layer of the decoder, by one name: projection, attention, mixture."""

    name: str = "projection"
    score: str = "dot"
    """Score by which the output layer attention compares the decoder's output with each token's embedding."""
    scale: float = 1.0
    """Initial value of the learned factor on those scores."""
    heads: int = 4
    """Number of softmaxes in a mixture."""


@dataclass(frozen=True)
class EncoderDecoder(Section):
    """An encoder of any modality, and a decoder that writes tokens. What is None follows from the rest."""

    encoder: str = "recurrent"
    """Kind of encoder."""
    decoder: Literal["recurrent", "convolution", "transformer"] = "recurrent"
    """Kind of decoder."""
    attention: AttentionPart = field(default_factory=AttentionPart)
    hidden_size: int = 256
    """Size of hidden states (d_model of a Transformer)."""
    embedding_size: int | None = None
    """Size of token embeddings; None: model.hidden_size."""
    layers: int = 1
    """Layers of the encoder and of the decoder."""
    decoder_layers: int | None = None
    """Layers of a Transformer's decoder; None: model.layers."""
    cross_attention_layers: str = ""
    """Layers of a Transformer's or convolutional decoder that attend to the source, counted from 1, with commas between;
    empty: all."""
    cell: Literal["tanh", "lstm", "gru"] = "lstm"
    """Cell of recurrent networks."""
    bidirectional: bool = True
    """The recurrent encoder reads in both directions."""
    order: Literal["bahdanau", "luong"] = "luong"
    """Order in the recurrent decoder: attention before the cell's step (Bahdanau), or after it (Luong)."""
    input_feeding: bool = True
    """The decoder's next input includes its last attentional vector (Luong et al. 2015, section 3.3)."""
    initial: Literal["source", "zeros"] = "source"
    """Initial state of a recurrent decoder with attention: the encoder's last state, or zeros."""
    summary: Literal["initial", "every_step", "both"] = "both"
    """Use of the encoder's last state by a recurrent decoder without attention: as its initial state, at every step, or
    both."""
    reverse_source: bool = False
    """The recurrent encoder reads its source from the end (Sutskever et al. 2014)."""
    kernel_size: int = 3
    """Kernel width of convolutions; an odd number for the encoder."""
    heads: int = 4
    """Heads of a Transformer's self-attention; other attentions have model.attention.heads."""
    feedforward_size: int | None = None
    """Inner size of feed-forward sublayers; None: 4 x model.hidden_size."""
    norm: Literal["pre", "post", "rms"] = "pre"
    """Layer norms of a Transformer: before each sublayer (pre-norm), after it (post-norm), or RMSNorm before it."""
    activation: Literal["relu", "gelu", "swish", "gelu_tanh"] = "relu"
    """Activation of feed-forward sublayers."""
    gated: bool = False
    """Gated feed-forward sublayers (GLU): a second projection is multiplied into the activation's output."""
    bias: bool = True
    """The linear layers of a Transformer, and that of the output, have a bias."""
    scale_embedding: bool = True
    """A Transformer's embeddings are multiplied by the square root of their size."""
    embedding_norm: bool = False
    """A layer norm follows a Transformer's embeddings."""
    self_attention: str = "scaled_dot"
    """Self-attention of a Transformer: a score, a normaliser or a scope, or several joined by +."""
    self_attention_size: int | None = None
    """Size of its queries, keys and values over all heads; None: model.hidden_size."""
    shared_bias: bool = False
    """With self_attention=t5, all layers of the encoder share one relative position bias and those of the decoder another,
    as in T5."""
    positions: Literal["sinusoidal", "learned", "none"] = "sinusoidal"
    """Position embeddings; none where the self-attention has positions itself: rotary, alibi, relative, shaw, t5."""
    join: Literal["add", "concat"] = "add"
    """Position embeddings are added to token embeddings, or concatenated with them."""
    tie_embeddings: bool = True
    """The decoder's output layer shares the embedding of its input; with a joint vocabulary the encoder does too."""
    output: OutputPart = field(default_factory=OutputPart)


@dataclass(frozen=True)
class Model(EncoderDecoder):
    """Encoder-decoder that reads text."""

    encoder: Literal["recurrent", "convolution", "transformer", "hierarchical"] = "recurrent"
    """Kind of encoder; hierarchical reads words in sentences and sentences in a document, for long sources."""
    values: Literal["encoder", "embeddings"] = "encoder"
    """Values of the attention: the encoder's states, as the keys, or bare word embeddings of a table of their own."""
    copy: bool = False
    """The decoder generates a word, or copies one of the source from where its attention points, words outside the
    vocabulary too (pointer-generator)."""
    coverage: bool = False
    """The additive attention keeps a coverage vector, the sum of its weights so far, so that it repeats and omits less."""


@dataclass(frozen=True)
class Dropout(Section):
    """Dropout rates while training."""

    embedding: float = 0.1
    """Dropout on embeddings."""
    residual: float = 0.1
    """Dropout on the output of each layer or sublayer, before the residual connection where there is one."""
    attention: float = 0.0
    """Dropout on attention weights."""
    variational: bool = False
    """One dropout mask for all steps of a recurrent network."""


@dataclass(frozen=True)
class Train(Section):
    """Optimisation, losses, evaluation and checkpoints of one training run."""

    max_steps: int = 2000
    """Length of the training in updates of the weights."""
    max_epochs: float | None = None
    """Length of the training in epochs, passes over the training data, in place of max_steps; 0.5 is half of one."""
    max_minutes: float | None = None
    """Stop after so many minutes of training, if that comes first."""
    seed: int = 0
    """Seed of initial weights, batches, dropout and samples."""
    device: str = "auto"
    """Device: auto (a GPU where there is one), cpu, cuda, cuda:1."""
    precision: Literal["fp32", "bf16"] = "fp32"
    """Precision of forward and backward; bf16 is mixed precision: the weights stay in fp32."""
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    """The optimizer."""
    learning_rate: float = 1e-3
    """Learning rate after the warm-up; with schedule=noam, the factor of that formula."""
    schedule: Literal["constant", "noam", "cosine", "inverse_sqrt", "plateau"] = "constant"
    """Learning rate schedule."""
    warmup_steps: int = 0
    """Steps over which the learning rate rises from zero."""
    weight_decay: float = 0.0
    """Weight decay of matrices; biases and gains of norms have none."""
    gradient_clip: float = 1.0
    """The largest norm of a gradient; a longer one is scaled down to it. 0: no clipping."""
    accumulate_steps: int = 1
    """Gradient accumulation: batches for each update of the weights."""
    label_smoothing: float = 0.0
    """Label smoothing."""
    confidence_penalty: float = 0.0
    """Weight of the confidence penalty: the negative entropy of the output distribution."""
    coverage_weight: float | None = None
    """Weight of the coverage loss, which penalises attention to the same place again; None: 1 with model.coverage, else
    0."""
    doubly_stochastic_weight: float = 0.0
    """Weight of the doubly stochastic penalty: each position of the source should get a total attention of one."""
    guided_attention: float = 0.0
    """Weight of the guided attention loss, which penalises attention far from the diagonal."""
    guided_alignment: float = 0.0
    """Weight of the cross-entropy between an attention and the links of data.alignments."""
    guided_alignment_head: str | None = None
    """Attention that is guided, and its head: "decoder.2.cross:1"; None: the last over the source, the mean of its heads."""
    moment_matching: float = 0.0
    """Weight of the moment matching loss: contexts should have the mean and the variance of the source's vectors."""
    reinforce_baseline: Literal["none", "moving_average", "learned"] = "moving_average"
    """Baseline of REINFORCE, which trains hard attention: only the reward above it counts."""
    reinforce_reward: Literal["token", "rest", "sentence"] = "rest"
    """Reward of a sampled key: the log-likelihood of its token, of the rest of the target, or of the whole target."""
    entropy_bonus: float = 0.01
    """Weight of the entropy of hard attention, which keeps it exploring."""
    soft_attention_rate: float = 0.0
    """The share of steps in training at which hard attention is soft, so that a gradient passes."""
    scheduled_sampling: Literal["none", "constant", "linear", "exponential", "inverse_sigmoid"] = "none"
    """Scheduled sampling: the decoder is fed its own output at a growing share of steps, by this schedule."""
    scheduled_sampling_max: float = 1.0
    """The share of steps at which the decoder is fed its own output, at the end of the schedule."""
    scheduled_sampling_steps: int = 1000
    """Length of the schedule in updates of the weights."""
    sequence_loss: Literal["none", "minimum_risk", "self_critical"] = "none"
    """Sequence-level training on a metric of the model's own outputs, beside the cross-entropy or in its place."""
    sequence_metric: Literal["chrf", "bleu", "edit", "exact"] = "chrf"
    """Reward of an output; edit is 1 less the edit distance of its tokens, as a share of the longer side."""
    sequence_samples: int = 8
    """Outputs sampled for each source."""
    minimum_risk_alpha: float = 0.005
    """Sharpness of the distribution over the sampled outputs (alpha of Shen et al. 2016)."""
    minimum_risk_reference: bool = True
    """The target is one of the outputs that minimum risk training compares."""
    sequence_weight: float = 1.0
    """The share of the sequence loss; the rest is the cross-entropy."""
    sequence_start: int = 0
    """The step at which the sequence loss begins."""
    init_from: str | None = None
    """A run directory whose weights and vocabularies the training begins with."""
    ema_decay: float | None = None
    """Decay of an exponential moving average of the weights, which is evaluated and saved in their place; None: none."""
    average_checkpoints: int = 0
    """Number of the last checkpoints that are averaged into the final model; 0: the best on the validation set."""
    monitor: str = "loss"
    """Monitored metric, which decides which model is the best: loss, perplexity, or a metric of the task on decoded outputs,
    such as exact or bleu."""
    patience: int = 0
    """Early stopping: end after so many evaluations without a better one; 0: never."""
    evaluate_every: int = 500
    """Steps between evaluations on the validation set."""
    checkpoint_every: int = 500
    """Steps between checkpoints, from which a training is resumed."""
    keep_checkpoints: int = 2
    """Number of the last checkpoints that are kept."""
    log_every: int = 50
    """Steps between lines of log.jsonl."""
    max_bad_batches: int = 20
    """Give up after so many batches whose loss or gradient is not finite."""
    packing_length: int = 0
    """Sequence packing, for a Transformer: tokens of a row that holds several examples; 0: a row for each example."""
    cuda_graphs: bool = True
    """On a GPU, replay an update as one CUDA graph for each shape of batch."""
    compile: bool = False
    """Compile the layers of a Transformer with torch.compile; the first updates wait for it."""
    deterministic: bool = False
    """Use deterministic algorithms alone, on a GPU too."""
    tensorboard: bool = False
    """Log to TensorBoard too."""
    record_example: str | None = None
    """A source, or source and target with a tab between them, whose attention is recorded while training goes on."""
    record_every: int = 100
    """Steps between two frames of that film; half of the frames go when there are 200."""


@dataclass(frozen=True)
class Search(Section):
    """Decoding: how an output is searched for."""

    beam: int = 1
    """Beam size; 1 is greedy search."""
    max_length: int = 200
    """The most tokens of an output."""
    max_length_ratio: float = 3.0
    """No output is longer than so many times its source, and ten tokens more; 0: search.max_length alone decides."""
    length_penalty: float = 1.0
    """Length penalty: hypotheses are ranked by their log-probability, divided by their length to this power."""
    coverage_penalty: float = 0.0
    """Weight of the coverage penalty: positions of the source with a total attention below one."""
    batch_size: int | None = None
    """Sentences that are searched at once; None: 64 on a CPU, and on a GPU 512, or fewer where its memory is small."""
    unknown: Literal["keep", "copy"] = "keep"
    """Unknown words in an output: keep them, or copy the source word that gets the most attention."""
    block_ngrams: int = 0
    """No output holds the same n-gram of so many tokens twice; 0: it may."""
    grammar: str | None = None
    """File with a grammar that every output keeps to; of the task parse also targets, the prefix tree of those that it was
    trained on."""
    lm: str | None = None
    """A run of the task language_model with the same tokens, whose log-probabilities are added in the search (shallow
    fusion)."""
    lm_weight: float = 0.3
    """Weight of the language model's log-probabilities beside the model's own."""
    beam_groups: int = 1
    """Groups of diverse beam search, which share the beam; 1: plain beam search."""
    diversity_penalty: float = 0.5
    """Diversity penalty: cost of a token for each hypothesis of an earlier group that has just chosen it."""
    mbr: Literal["none", "chrf", "bleu", "edit", "exact"] = "none"
    """Minimum Bayes risk decoding: answer with the candidate of the highest expected score by this metric against all
    others."""
    mbr_candidates: int = 16
    """Candidates of minimum Bayes risk decoding."""
    mbr_from: Literal["beam", "sample"] = "beam"
    """Source of these candidates: the best of a beam search, or samples."""
    forced_bos: int | None = None
    """Forced BOS: the number of the token that every output begins with, such as the tag of its language; None: free."""
    precision: Literal["auto", "float32", "int8", "bf16"] = "auto"
    """Precision of decoding: int8 quantises the decoder's matrices on a CPU, bf16 computes in half precision on a GPU.
    Scores then differ slightly. auto is bf16 on a GPU where the model was trained in it (train.precision), for a search that
    bf16 covers, and float32 else."""

    def select_batch_size(self, gpu_memory: int = 0) -> int:
        """Sentences searched at once on a CPU, or on a GPU of so many bytes: one for each 32 MiB, from 64 to 512."""
        return min(512, max(64, gpu_memory >> 25)) if self.batch_size is None else self.batch_size
