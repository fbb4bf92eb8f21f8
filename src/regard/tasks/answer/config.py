"""Settings of question answering over stories."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from regard.config import AttentionPart, Train
from regard.config.section import Section


@dataclass(frozen=True)
class StoryData(Section):
    """Files of stories with questions, and how their sentences become tokens."""

    columns: ClassVar[tuple[str, str, str]] = ("story", "question", "answer")

    train: str | None = None
    """Stories to train on: JSON lines, a file of bAbI, or a folder of such files, of which those called *_train are read;
    several with + between them; None: synthetic stories."""
    valid: str | None = None
    """Stories to validate on; None: about one in ten of the stories of data.train."""
    test: str | None = None
    """Stories to evaluate the trained model on; of a folder the files called *_test."""
    story: str = "story"
    """Key of a story in JSON lines: a list of sentences, or one text."""
    question: str = "question"
    """Key of the question."""
    answer: str = "answer"
    """Key of the answer."""
    facts: str = "facts"
    """Key of the supporting facts, which a record may lack: a list of the places of sentences, counted from 0."""
    task: str = "task"
    """Key of the task that a question belongs to, which a record may lack; errors are counted by task."""
    tasks: str = ""
    """Tasks to read of all those in the files, by name and with commas between them; empty: all."""
    vocab_size: int = 8000
    """The most words of the vocabulary; what is rarer is unknown."""
    min_frequency: int = 1
    """Minimum frequency: a word seen less often is unknown."""
    lowercase: bool = True
    """Stories and questions are lowercased."""
    max_sentences: int = 128
    """The most sentences of a story: of a longer one the last are read, and how many were left out is said."""
    max_words: int = 48
    """The most words of a sentence or a question; a longer one is cut."""
    batch_size: int = 32
    """Batch size in questions."""
    samples: int = 6000
    """Number of synthetic questions where no file is named."""
    max_bytes: int | None = None
    """Bytes that a compressed file may unpack to; None: 32 MiB, or 100 times its size where that is more."""
    max_records: int | None = None
    """Records of a compressed file; None: 500,000, or one for each of its bytes where that is more."""


@dataclass(frozen=True)
class AnswerModel(Section):
    """A network that reads a story as a memory of sentences, or as one text, and answers with a class."""

    kind: Literal["memory", "dynamic", "entity", "universal", "reader"] = "memory"
    """The network: an end-to-end memory network, a dynamic memory network (DMN+), a recurrent entity network, a universal
    Transformer over sentences, or an attentional reader, which encodes all words of the story and attends once."""
    hidden_size: int = 64
    """Size of the vectors of a network."""
    hops: int = 3
    """Hops of attention over the memory, each asking with what the hop before has read; steps of a universal Transformer."""
    tying: Literal["adjacent", "layerwise"] = "adjacent"
    """Weight tying of a memory network: the output embedding of a hop is the input embedding of the next, or all hops share
    both."""
    sentence: Literal["position", "bag"] = "position"
    """Encoding of a sentence as the sum of its word vectors: weighted by position, or a bag of words."""
    temporal: bool = True
    """Temporal encoding of a memory network: a learned vector for the age of each sentence."""
    temporal_noise: float = 0.1
    """Random noise of the temporal encoding: rate at which empty memories are inserted into stories in training."""
    nonlinear: bool = False
    """A ReLU on half of the state of a memory network between hops."""
    heads: int = 4
    """Heads of the self-attention of a universal Transformer."""
    blocks: int = 20
    """Blocks of the memory of an entity network."""
    layers: int = 1
    """Layers of the reader's encoder."""
    cell: Literal["lstm", "gru"] = "gru"
    """Cell of the reader's encoder."""
    attention: AttentionPart = field(default_factory=lambda: AttentionPart("additive"))
    """The attention of the reader."""


@dataclass(frozen=True)
class AnswerTrain(Train):
    """Training with supporting facts, and with a linear start."""

    supporting_facts: float = 0.0
    """Weight of the cross-entropy between the attention of the hops and the supporting facts; 0: facts are never trained
    on, and only score the attention."""
    linear_start: int = 0
    """Linear start: steps before the hops of a memory network have their softmax."""
