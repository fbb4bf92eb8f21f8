"""Retrieving: pictures and texts that find each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import ClassVar, cast

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from regard.alignment.heads import Head
from regard.attention.types import Encoded
from regard.config import Model
from regard.data import table
from regard.data.batch import Padded
from regard.data.codec import Report
from regard.data.image.reading import present
from regard.data.image.synthetic.captioned import Drawing
from regard.data.image.synthetic.captions import Captioned
from regard.data.image.types import ImageBatch
from regard.data.image.writing import png
from regard.data.lines import bounds
from regard.data.modality import AnyBatch
from regard.data.records import Record
from regard.errors import ConfigError
from regard.losses.types import Loss, Progress
from regard.models.attention_factory import AttentionFactory, build_attention
from regard.models.encoders.convolution import Convolution
from regard.models.encoders.image import ChannelStatistics, build_standardising_encoder
from regard.models.encoders.recurrent import Recurrent
from regard.models.encoders.transformer import Transformer
from regard.models.seq2seq import build_encoder, initialise
from regard.tasks.kinds.image import assemble, checked, plain
from regard.tasks.kinds.tables import Tables, pictures, tables
from regard.tasks.kinds.types import BoundTask, Task, TaskConfig
from regard.tasks.retrieve.codec import PairCodec, pairs
from regard.tasks.retrieve.config import RetrieveData, RetrieveDropout, RetrieveModel
from regard.tasks.retrieve.loss import contrastive, reranking
from regard.tasks.retrieve.model import Matching
from regard.tasks.retrieve.predictor import FIGURES, SAMPLES, Retriever
from regard.tasks.retrieve.reranker import Reranking
from regard.training.experiment import Experiment

SHOWN = 32
"""How many pictures and texts of its own a training leaves to begin with."""
Numbers = Int[Tensor, " pairs"]


@dataclass(frozen=True)
class RetrieveConfig(TaskConfig):
    """Everything that a task can be told whose pictures and texts find each other."""

    FAMILY: ClassVar[str] = "regard.tasks.retrieve.experiment"
    WRITES: ClassVar[bool] = False

    data: RetrieveData = field(default_factory=RetrieveData)
    model: RetrieveModel = field(default_factory=RetrieveModel)
    dropout: RetrieveDropout = field(default_factory=RetrieveDropout)


def experiment(name: str, task: Task, config: RetrieveConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """All that the training loop needs to know, and what became of the records."""
    from regard.inference.init_from import start  # it opens runs, and their tasks

    begin, named = start(config, load_codec, out), tables(config.data, read, "picture", pictures)
    drawn = (None, None) if named else drawings(task, config.data)
    first, second = ([each.record for each in part or ()] for part in drawn)
    found = (named or Tables(first, second)).prepared(task.prepare)
    first, second = found.train, found.valid
    if named:
        present([*first, *second])
    codec = begin.codec if begin else PairCodec.fit(first, config.data, config.model.stride)
    training = codec.encode_all(first, drawn=drawn[0])
    valid = codec.encode_all(second, "truncate", drawn[1])  # every record is judged
    known = Known.of(pairs(training.examples))
    cost = partial(costs, known, config.dropout.words)
    beside = samples(drawn[1] or ())
    report = training.report._replace(held_out=found.held_out)
    return assemble(name, config, begin, codec, training.examples, valid.examples, report, cost, FIGURES, beside)


def drawings(task: Task, data: RetrieveData) -> tuple[list[Drawing], list[Drawing]]:
    """What a task draws itself, in the language that is asked for."""
    size, both = min(data.height, data.width), cast(tuple[list[Captioned], ...], task.draw(data.samples, seed=0))
    training, valid = ([Drawing(each, size, data.language) for each in part] for part in both)
    return training, valid


@dataclass(frozen=True)
class Known:
    """All pairs that belong together, each as one number: its picture's times how many texts there are, and its text's."""

    numbers: Numbers
    texts: int

    @classmethod
    def of(cls, both: Sequence[tuple[int, int]]) -> "Known":
        """Of pairs of numbers."""
        texts = 1 + max((text for _, text in both), default=0)
        numbers = sorted({picture * texts + text for picture, text in both})
        return cls(torch.tensor(numbers, dtype=torch.long), texts)

    def same(self, given: Int[Tensor, "batch 2"]) -> Bool[Tensor, "batch batch"]:
        """Whether picture i belongs to text j."""
        asked = given[:, :1] * self.texts + given[:, 1]
        return torch.isin(asked, self.numbers.to(asked.device))


def costs(known: Known, left_out: float, model: nn.Module, batch: AnyBatch, progress: Progress) -> Loss:
    """What a batch costs: each picture and its text should be nearest, and should fit best when looked at together."""
    assert isinstance(batch, ImageBatch), "pairs are learned in batches of pictures"
    assert isinstance(model, Matching), "pairs are learned by two towers"
    if batch.target is None or batch.labels is None:
        raise ValueError("a batch needs texts to learn from, and this one has only pictures")
    pictures, texts = model.see(batch.source), model.read(thinned(batch.target, left_out if model.training else 0.0))
    logits, same = model.compare(pictures.vectors, texts.vectors), known.same(batch.labels.data)
    found = contrastive(logits, same)
    if model.reranking is None:
        return found
    closer = reranking(model.reranking, apart(pictures.encoded), apart(texts.encoded), logits, same, model.share)
    parts = {**found.parts, "closer_nll": closer.parts["nll"], "closer_right": closer.parts["right"]}
    return Loss(found.total + closer.total, found.tokens, parts)


def apart(encoded: Encoded) -> Encoded:
    """What an encoder found, from which nothing is learned back: the closer look would pull the towers its own way."""
    return Encoded(encoded.data.detach(), encoded.keep, grid=encoded.grid)


def thinned(texts: Padded, share: float) -> Padded:
    """Texts without a share of their tokens, drawn at random; the rest moves together, and the end of each stays."""
    if not share:
        return texts
    last = torch.arange(texts.keep.shape[1], device=texts.keep.device) == texts.keep.sum(1, keepdim=True) - 1
    drawn = torch.rand(texts.keep.shape, device=texts.keep.device) >= share
    keep = texts.keep & (drawn | last)
    order = (~keep).int().argsort(dim=1, stable=True)
    return Padded(texts.data.gather(1, order), keep.gather(1, order))


def samples(pictures: Sequence[Drawing]) -> Mapping[str, bytes]:
    """Pictures that the training does not see, and the table that says which text belongs to each."""
    few = pictures[:SHOWN]
    files = {f"samples/{number}.png": png(each()) for number, each in enumerate(few, 1)}
    lines = "".join(f"{number}.png\t{each.caption.text}\n" for number, each in enumerate(few, 1))
    return {**files, SAMPLES: lines.encode()} if few else {}


def build(config: RetrieveConfig, codec: PairCodec) -> Matching:
    """The model that a config describes, for the vocabulary of a codec."""
    return network(config, codec.target.size, (codec.mean, codec.deviation))


def network(config: RetrieveConfig, vocabulary: int, standard: ChannelStatistics) -> Matching:
    """The model that a config describes: two towers and, unless there are to be none, layers that look at both."""
    model, dropout = config.model, config.dropout
    pictures, texts = build_standardising_encoder(model, dropout, standard), reader(config, vocabulary)
    part = model.attention
    make: AttentionFactory = partial(build_attention, part.name, heads=part.heads, size=part.size, dropout=dropout.attention)
    closer = None
    if model.reranking_layers:
        closer = Reranking(
            pictures.size,
            texts.size,
            model.hidden_size,
            layers=model.reranking_layers,
            heads=model.heads,
            attention=make,
            dropout=dropout.residual,
        )
    return Matching(pictures, texts, model.projection_size, attention=make, dropout=dropout.residual, reranking=closer)


def reader(config: RetrieveConfig, vocabulary: int) -> Recurrent | Convolution | Transformer:
    """The encoder of texts: as wide as the map of a picture, and told what patches are told."""
    model = config.model
    told = {name: getattr(model, name) for name in ("heads", "feedforward_size", "norm", "activation", "self_attention")}
    network = Model(
        encoder=model.text_encoder,
        hidden_size=model.hidden_size,
        layers=model.text_layers,
        positions=model.positions,
        **told,
    )
    encoder = build_encoder(network, config.dropout, vocabulary, config.data.max_target_length)
    if model.text_encoder == "transformer":
        initialise(encoder)
    return encoder


def outline(config: RetrieveConfig) -> Matching:
    """The model of a config for a small vocabulary, to see whether it can be built; and whether its data can be read."""
    checked(config)
    if config.model.attention.name == "none":
        raise ConfigError("retrieve needs an attention, by which each tower reads, got model.attention=none; name one")
    return network(config, 8, plain(config))


def read(data: RetrieveData, path: str) -> list[Record]:
    """The records of a table."""
    return list(table.read(path, data.image, data.text, bounds=bounds(data)))


def load_codec(directory: Traversable) -> PairCodec:
    """What a run has beside its weights."""
    return cast(PairCodec, PairCodec.load(directory))  # a codec loads its own kind


def build_predictor(task: BoundTask, config: RetrieveConfig, codec: PairCodec, model: Matching, head: Head) -> Retriever:
    """Predictor of a model."""
    return Retriever(task, config, codec, model)
