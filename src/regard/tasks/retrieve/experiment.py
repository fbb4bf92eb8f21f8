"""Cross-modal retrieval: pictures from texts, and texts from pictures."""

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
from regard.data.header import table_settings
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
from regard.models.attention_factory import AttentionFactory, attention_options, build_attention
from regard.models.encoders.convolution import Convolution
from regard.models.encoders.hierarchical import Hierarchical
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
"""Synthetic pairs that a run directory keeps as samples."""
Numbers = Int[Tensor, " pairs"]


@dataclass(frozen=True)
class RetrieveConfig(TaskConfig):
    """Settings of retrieval tasks."""

    FAMILY: ClassVar[str] = "regard.tasks.retrieve.experiment"
    WRITES: ClassVar[bool] = False

    data: RetrieveData = field(default_factory=RetrieveData)
    model: RetrieveModel = field(default_factory=RetrieveModel)
    dropout: RetrieveDropout = field(default_factory=RetrieveDropout)


def experiment(name: str, task: Task, config: RetrieveConfig, out: Path | None = None) -> tuple[Experiment, Report]:
    """The experiment for the training loop, and the report on the encoded records."""
    from regard.inference.init_from import start  # imported late: it loads runs, and their tasks

    begin, named = start(config, load_codec, out), tables(config.data, read, "picture", pictures)
    synthetic = (None, None) if named else synthesise_samples(task, config.data)
    first, second = ([sample.record for sample in part or ()] for part in synthetic)
    prepared = (named or Tables(first, second)).prepared(task.prepare)
    first, second = prepared.train, prepared.valid
    if named:
        present([*first, *second])
    codec = begin.codec if begin else PairCodec.fit(first, config.data, config.model.stride)
    training = codec.encode_all(first, renderers=synthetic[0])
    valid = codec.encode_all(second, "truncate", synthetic[1])  # every record is evaluated
    positives = PositivePairs.of(pairs(training.examples))
    cost = partial(compute_loss, positives, config.dropout.words)
    files = write_samples(synthetic[1] or ())
    report = training.report._replace(held_out=prepared.held_out)
    return assemble(name, config, begin, codec, training.examples, valid.examples, report, cost, FIGURES, files)


def synthesise_samples(task: Task, data: RetrieveData) -> tuple[list[Drawing], list[Drawing]]:
    """Synthetic pairs of the task, in the language of the data settings."""
    size, parts = min(data.height, data.width), cast(tuple[list[Captioned], ...], task.synthesise(data.samples, seed=0))
    training, valid = ([Drawing(sample, size, data.language) for sample in part] for part in parts)
    return training, valid


@dataclass(frozen=True)
class PositivePairs:
    """All positive pairs, each as one number: picture * texts + text."""

    numbers: Numbers
    texts: int

    @classmethod
    def of(cls, both: Sequence[tuple[int, int]]) -> "PositivePairs":
        """Positive pairs from pairs of numbers."""
        texts = 1 + max((text for _, text in both), default=0)
        numbers = sorted({picture * texts + text for picture, text in both})
        return cls(torch.tensor(numbers, dtype=torch.long), texts)

    def match(self, labels: Int[Tensor, "batch 2"]) -> Bool[Tensor, "batch batch"]:
        """True where picture i and text j are a positive pair."""
        numbers = labels[:, :1] * self.texts + labels[:, 1]
        return torch.isin(numbers, self.numbers.to(numbers.device))


def compute_loss(
    positives: PositivePairs, token_dropout: float, model: nn.Module, batch: AnyBatch, progress: Progress
) -> Loss:
    """Contrastive loss of a batch and, with a re-ranker, its loss."""
    assert isinstance(batch, ImageBatch), "pairs come in batches of pictures"
    assert isinstance(model, Matching), "pairs need a dual encoder"
    if batch.target is None or batch.labels is None:
        raise ValueError("a batch needs texts to learn from, and this one has only pictures")
    target = drop_tokens(batch.target, token_dropout if model.training else 0.0)
    pictures, texts = model.see(batch.source), model.read(target)
    logits, match = model.compare(pictures.vectors, texts.vectors), positives.match(batch.labels.data)
    loss = contrastive(logits, match)
    if model.reranking is None:
        return loss
    reranked = reranking(model.reranking, detach(pictures.encoded), detach(texts.encoded), logits, match, model.share)
    parts = {**loss.parts, "closer_nll": reranked.parts["nll"], "closer_right": reranked.parts["right"]}
    return Loss(loss.total + reranked.total, loss.tokens, parts)


def detach(encoded: Encoded) -> Encoded:
    """Encoder output without gradient: the re-ranker does not train the dual encoder."""
    return Encoded(encoded.data.detach(), encoded.keep, grid=encoded.grid)


def drop_tokens(texts: Padded, share: float) -> Padded:
    """Token dropout: remove a random share of the tokens of each text, except the last."""
    if not share:
        return texts
    last = torch.arange(texts.keep.shape[1], device=texts.keep.device) == texts.keep.sum(1, keepdim=True) - 1
    synthetic = torch.rand(texts.keep.shape, device=texts.keep.device) >= share
    keep = texts.keep & (synthetic | last)
    order = (~keep).int().argsort(dim=1, stable=True)
    return Padded(texts.data.gather(1, order), keep.gather(1, order))


def write_samples(pictures: Sequence[Drawing]) -> Mapping[str, bytes]:
    """Files of a few validation pictures, and the table of their texts."""
    few = pictures[:SHOWN]
    files = {f"samples/{number}.png": png(sample()) for number, sample in enumerate(few, 1)}
    lines = "".join(f"{number}.png\t{sample.caption.text}\n" for number, sample in enumerate(few, 1))
    return {**files, SAMPLES: lines.encode()} if few else {}


def build(config: RetrieveConfig, codec: PairCodec) -> Matching:
    """The model that a config describes, for the vocabulary of a codec."""
    return build_network(config, codec.target.size, (codec.mean, codec.deviation))


def build_network(config: RetrieveConfig, vocabulary: int, standard: ChannelStatistics) -> Matching:
    """The model that a config describes: a dual encoder and, with reranking_layers, a cross-attention re-ranker."""
    model, dropout = config.model, config.dropout
    pictures, texts = build_standardising_encoder(model, dropout, standard), build_text_encoder(config, vocabulary)
    part = model.attention
    make: AttentionFactory = partial(build_attention, part.name, **attention_options(part), dropout=dropout.attention)
    reranker = None
    if model.reranking_layers:
        reranker = Reranking(
            pictures.size,
            texts.size,
            model.hidden_size,
            layers=model.reranking_layers,
            heads=model.heads,
            attention=make,
            dropout=dropout.residual,
        )
    return Matching(pictures, texts, model.projection_size, attention=make, dropout=dropout.residual, reranking=reranker)


def build_text_encoder(config: RetrieveConfig, vocabulary: int) -> Recurrent | Convolution | Transformer | Hierarchical:
    """The text encoder, with the sizes and options of the picture encoder."""
    model = config.model
    options = {name: getattr(model, name) for name in ("heads", "feedforward_size", "norm", "activation", "self_attention")}
    build_network = Model(
        encoder=model.text_encoder,
        hidden_size=model.hidden_size,
        layers=model.text_layers,
        positions=model.positions,
        **options,
    )
    encoder = build_encoder(build_network, config.dropout, vocabulary, config.data.max_target_length)
    if model.text_encoder == "transformer":
        initialise(encoder)
    return encoder


def build_small(config: RetrieveConfig) -> Matching:
    """The model of a config for a small vocabulary: validates the settings of model and data."""
    checked(config)
    if config.model.attention.name == "none":
        raise ConfigError("retrieve needs an attention, which pools each encoder, got model.attention=none; name one")
    return build_network(config, 8, plain(config))


def read(data: RetrieveData, path: str) -> list[Record]:
    """The records of a table."""
    return list(table.read(path, data.image, data.text, bounds=bounds(data), settings=table_settings(data)))


def load_codec(directory: Traversable) -> PairCodec:
    """The codec of a run directory."""
    return cast(PairCodec, PairCodec.load(directory))  # a codec loads its own kind


def build_predictor(task: BoundTask, config: RetrieveConfig, codec: PairCodec, model: Matching, head: Head) -> Retriever:
    """The predictor of a model."""
    return Retriever(task, config, codec, model)
