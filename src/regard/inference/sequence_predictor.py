"""A trained model: a run directory, opened and ready to be asked."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch

from regard import tasks
from regard.alignment.heads import Head
from regard.alignment.unknown import load_translations, replace_unknown
from regard.data.image.codec import ImageTextCodec
from regard.data.image.types import ImageExample
from regard.data.modality import Source
from regard.data.special_tokens import UNK
from regard.data.table import Record
from regard.data.text.codec import Example, TextCodec
from regard.decoding.align import align as links
from regard.decoding.attention_weights import is_cross_attention
from regard.decoding.constraints.spec import ConstraintSpec, Phrases, expand_specs
from regard.decoding.constraints.spec import build_guard as guarded
from regard.decoding.constraints.spelling import Spelling
from regard.decoding.constraints.state import Guard
from regard.decoding.engines.cuda.encoder import encode, lock_device
from regard.decoding.forced_bos import ForcedBOS
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.logprobs import UndistributedError
from regard.decoding.max_length import limit_length
from regard.decoding.max_length import limit_lengths as most
from regard.decoding.score import rate
from regard.decoding.search import Searcher
from regard.decoding.search_tree import SearchTree as Branches
from regard.errors import RefusedError
from regard.inference.ensemble.model import Ensemble
from regard.inference.prediction import Prediction
from regard.metrics.reward import Reward
from regard.metrics.text import Measurement, perplexity
from regard.models.seq2seq import Seq2Seq
from regard.models.types import Decoder
from regard.tasks import Figures, TaskConfig, Writes
from regard.tasks.kinds.types import Writing, family
from regard.tree import Tree

if TYPE_CHECKING:
    from regard.interop.onnx.sessions import Sessions
    from regard.viewer.record import Recorder
    from regard.viewer.trace import Trace


class Plan(NamedTuple):
    """How answers are looked for: by whom, in which decoder, how long each may become, and what it must hold."""

    finder: Searcher
    decoder: Decoder
    lengths: list[int]
    guard: Guard | None


class Trained:
    """A model with its codec and its config."""

    def __init__(
        self,
        name: str,
        config: TaskConfig,
        codec: TextCodec | ImageTextCodec,
        model: "Seq2Seq | Ensemble | Sessions",
        head: Head = Head(),
    ):
        self.name, self.config = name, config
        self.codec: Any = codec
        self.task = cast(Writes, tasks.find(name))
        self.model = model.eval()
        self.recorder: Recorder | None = None
        """Who listens to what is predicted, while somebody does."""
        self.head = head
        """Where its alignments are read."""
        self.compiled = False
        """Whether plain search may compile code (`predict --compile`). The config cannot set it."""

    def predict(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        best: int = 1,
        align: bool = False,
        unknown: str | None = None,
        prefix: str | Sequence[str] | None = None,
        include: Phrases | None = None,
        exclude: Phrases | None = None,
    ) -> list[list[Prediction]]:
        """The `best` answers to each text, or to each picture by its path, best first.

        `unknown` says what becomes of words that the model cannot write: "keep" them as they are, "copy" the source word
        that they look at, or a file of WORD TAB TRANSLATION to translate it by; None is what the config says. Every answer
        begins with `prefix`, holds the phrases to `include` and none to `exclude`: the same for all texts, or a list with
        those of each.
        """
        answers: list[list[Prediction]] = [[] for _ in texts]
        options: dict[str, Any] = {"prefix": prefix, "include": include, "exclude": exclude}
        for index, found in self.each(texts, beam=beam, best=best, align=align, unknown=unknown, **options):
            answers[index] = found
        return answers

    def each(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        best: int = 1,
        align: bool = False,
        unknown: str | None = None,
        prefix: str | Sequence[str] | None = None,
        include: Phrases | None = None,
        exclude: Phrases | None = None,
    ) -> Iterator[tuple[int, list[Prediction]]]:
        """What `predict` gives, as it is found, batch after batch: the place of a text, and its answers."""
        options: dict[str, Any] = {"prefix": prefix, "include": include, "exclude": exclude}
        for index, answers in self.outcomes(texts, beam=beam, best=best, align=align, unknown=unknown, **options):
            if isinstance(answers, UndistributedError):
                raise UndistributedError(f"input:{index + 1}: {answers}")
            yield index, answers

    def outcomes(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        best: int = 1,
        align: bool = False,
        unknown: str | None = None,
        prefix: str | Sequence[str] | None = None,
        include: Phrases | None = None,
        exclude: Phrases | None = None,
        done: frozenset[int] = frozenset(),
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        """The place of each text with its answers, batch after batch, or with the error of one whose scores are not finite.

        The answers to the places in `done` are known: a batch of nothing else is not computed, and an empty list stands for
        each of its answers. All other batches are those that there would be if nothing were done.
        """
        translations = self._dictionary(unknown)
        asked = expand_specs(len(texts), prefix, include, exclude)
        if self.recorder is not None and texts:
            self.recorder.take(lambda: self.trace(texts, beam=max(beam or self.config.search.beam, best), asked=asked))
        with nullcontext() if self.recorder is None else self.recorder.away():
            yield from self._outcomes(texts, beam, best, align, translations, asked, done)

    def _outcomes(
        self,
        texts: Sequence[str],
        beam: int | None,
        best: int,
        align: bool,
        translations: Mapping[str, str] | None,
        asked: Sequence[ConstraintSpec],
        done: frozenset[int],
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        records = [self.task.prepare(Record(text, None, f"input:{number}")) for number, text in enumerate(texts, 1)]
        examples = self.codec.encode_all(records, over_long="truncate").examples
        looking = align or translations is not None
        for index, found in self._search(examples, beam or self.config.search.beam, best, looking, asked, done):
            if isinstance(found, UndistributedError):
                yield index, found
            else:
                yield index, [self._told(examples[index], each, align, translations) for each in found]

    def stream(
        self,
        text: str,
        *,
        beam: int | None = None,
        prefix: str | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
    ) -> Iterator[str]:
        """The answer to a text as it is decided: pieces, none of which is taken back, that together are `predict`'s."""
        from regard.inference.streaming import stream, streamable

        streamable(self.config.search)
        [wish] = expand_specs(1, prefix, include, exclude)
        beams = beam or self.config.search.beam
        if self.recorder is not None:
            self.recorder.take(lambda: self.trace([text], beam=beams, asked=[wish]))
        return stream(self, text, beams, wish)

    def listen(self, pieces: Iterable[str], *, beam: int | None = None) -> Iterator[str]:
        """The answer to a source that still arrives, piece by piece: each as soon as what has arrived decides it.

        For models that need not wait for the end: monotonic attention over an encoder that reads in one direction. Together
        the pieces are what `predict` gives for the whole source with beam=1. Nobody records what is found so.
        """
        from regard.inference.simultaneous import listen

        return listen(self, pieces, beam or self.config.search.beam)

    def trace(
        self,
        texts: Sequence[str],
        *,
        beam: int | None = None,
        targets: Sequence[str] | None = None,
        scores: bool = False,
        asked: Sequence[ConstraintSpec] | None = None,
    ) -> "Trace":
        """Where the model looks while it answers, step by step; with `targets`, while these are written.

        A model without attention has a trace too, of its network and its steps. `asked` is what each answer must hold.
        """
        from regard.viewer.record.predicted import trace

        with nullcontext() if self.recorder is None else self.recorder.pause():
            return trace(self, texts, beam=beam, targets=targets, scores=scores, asked=asked)

    def evaluate(self, records: Sequence[Record], *, beam: int | None = None) -> Figures:
        """The task's measures on records with targets, as a file has them."""
        return self.measure([self.task.prepare(record) for record in records], beam=beam)

    def measure(self, prepared: Sequence[Record], *, beam: int | None = None) -> Figures:
        """The same for records that the task has prepared already; a source that is too long is answered by nothing."""
        return self.judge(self.codec.encode_all(prepared, over_long="truncate").examples, beam=beam)

    def judge(self, examples: Sequence[Any], *, beam: int | None = None) -> Figures:
        """The same for what the codec has made of them."""
        prepared = [example.record for example in examples]
        outputs, read = [""] * len(examples), self.codec.select_fitting(prepared)
        likely, translations = self._perplexity(examples), self._dictionary()
        looking = translations is not None
        asked = [examples[index] for index in read]
        for place, found in self._search(asked, beam or self.config.search.beam, best=1, weights=looking):
            if isinstance(found, UndistributedError):
                raise found
            outputs[read[place]] = self._told(asked[place], found[0], translations=translations).text
        references = [self.task.finish(self.codec.prepare(record.target or "")) for record in prepared]
        figures = self.task.measure(outputs, references, [record.source for record in prepared], self.config)
        figures |= cast(Writing, family(self.config)).measure_model(self, examples)
        return figures if likely is None else figures | {"perplexity": likely}

    def unscored(self, prepared: Sequence[Record], *, beam: int | None = None) -> dict[int, UndistributedError]:
        """The places of the records that `measure` cannot judge: whose scores, or those of whose targets, are not finite."""
        examples = self.codec.encode_all(prepared, over_long="truncate").examples
        looking = self._dictionary() is not None
        outcomes = self._search(examples, beam or self.config.search.beam, best=1, weights=looking)
        errors = {place: found for place, found in outcomes if isinstance(found, UndistributedError)}
        for indices, _ in self._batches(examples):
            errors |= self._unrated(examples, [index for index in indices if index not in errors])
        return errors

    def _unrated(self, examples: Sequence[Any], places: Sequence[int]) -> dict[int, UndistributedError]:
        """Of these places those whose targets have scores that are not finite; they are rated together, if all are."""
        try:
            self._perplexity([examples[place] for place in places])
        except UndistributedError as error:
            if len(places) == 1:
                return {places[0]: error}
            middle = len(places) // 2
            return self._unrated(examples, places[:middle]) | self._unrated(examples, places[middle:])
        return {}

    def knows(self, text: str) -> bool:
        """Whether there is anything in a source that the model has seen; without it, its answer would be a guess."""
        found: bool = self.codec.is_known(self.task.prepare(Record(text, None, "input:1")))
        return found

    def reads(self, text: str) -> bool:
        """Whether a source is not longer than what the model reads, and it knows something in it."""
        found: bool = self.codec.fits(self.task.prepare(Record(text, None, "input:1")))
        return found

    def text_codec(self, wanted: str) -> TextCodec:
        """The codec of a model that reads text; for one that reads pictures, an error that says what is not for it."""
        if not isinstance(self.codec, TextCodec):
            raise RefusedError(f"{wanted} is for models that read text, and this one ({self.name}) reads {self.codec.kind}")
        return self.codec

    def _dictionary(self, unknown: str | None = None) -> Mapping[str, str] | None:
        unknown = unknown or self.config.search.unknown
        if unknown != "keep":
            self.text_codec(f"unknown={unknown}, which takes words of the source,")
        return load_translations(unknown)

    def _perplexity(self, examples: Sequence[Any]) -> Measurement | None:
        """How surprising the targets are to the model, sentence by sentence."""
        device = next(self.model.parameters()).device
        nll, tokens = list[float](), list[int]()
        for _, batch in self._batches(examples):
            if batch.target is None:
                return None
            with torch.no_grad():
                rated = rate(self.model.decoder, self.model.encode(batch.source.to(device)), batch.target)
            nll += (-rated.scores).tolist()
            tokens += batch.target.keep.sum(1).tolist()
        return perplexity(nll, tokens) if nll else None

    def _search(
        self,
        examples: Any,
        beams: int,
        best: int,
        weights: bool,
        asked: Sequence[ConstraintSpec] | None = None,
        done: frozenset[int] = frozenset(),
    ) -> Iterator[tuple[int, list[Hypothesis] | UndistributedError]]:
        holding = [bool(wish.include) for wish in asked or ()]
        if asked is not None and any(holding) and not all(holding):  # phrases widen the beam, of nobody else
            for which in (True, False):
                places = [place for place, each in enumerate(holding) if each == which]
                some, wanted = [examples[place] for place in places], [asked[place] for place in places]
                known = frozenset(index for index, place in enumerate(places) if place in done)
                outcomes = self._search(some, beams, best, weights, wanted, known)
                yield from ((places[index], found) for index, found in outcomes)
            return
        for indices, batch in self._batches(examples):
            if done.issuperset(indices):
                yield from ((index, []) for index in indices)
                continue
            its = None if asked is None else [asked[index] for index in indices]
            yield from zip(indices, self._answer(batch.source, beams, best, weights, its), strict=True)

    def _answer(
        self, source: Any, beams: int, best: int, weights: bool, asked: Sequence[ConstraintSpec] | None
    ) -> list[list[Hypothesis] | UndistributedError]:
        """The answers to a batch; one with scores that are not finite is cut in half until each such source is alone."""
        device, lengths = next(self.model.parameters()).device, self.limits(source)
        try:
            with lock_device(device):
                with torch.no_grad():
                    moved = source.to(device)
                    how = self.config.search.precision, self.compiled
                    memory = encode(self.model, moved, *how)
                return [*self.search(memory, lengths, beams, best=best, weights=weights, asked=asked)]
        except UndistributedError as error:
            if len(lengths) == 1:
                return [error]
        middle = len(lengths) // 2
        return [
            found
            for rows in (range(middle), range(middle, len(lengths)))
            for found in self._answer(
                source.select_rows(rows), beams, best, weights, None if asked is None else [asked[row] for row in rows]
            )
        ]

    def limits(self, source: Source) -> list[int]:
        """The most tokens that the answers to sources may have."""
        return most(source, self.config.search.max_length, self.config.search.max_length_ratio)

    def longest(self, source: int) -> int:
        """The most tokens that the answer to a source of so many may have."""
        return limit_length(source, self.config.search.max_length, self.config.search.max_length_ratio)

    def search(
        self,
        memory: Tree,
        lengths: list[int],
        beams: int,
        *,
        best: int = 1,
        weights: bool = False,
        tree: Branches | None = None,
        asked: Sequence[ConstraintSpec] | None = None,
    ) -> list[list[Hypothesis]]:
        """The answers to sources that the model has read, as the config says they are looked for.

        `asked` is what each must hold; an answer may become longer by that, up to the longest that the config allows.
        """
        finder, decoder, lengths, guard = self.plan(lengths, beams, asked)
        return finder(decoder, memory, lengths, best=best, weights=weights, tree=tree, guard=guard)

    def plan(self, lengths: list[int], beams: int, asked: Sequence[ConstraintSpec] | None = None) -> Plan:
        """How answers to sources are looked for, as the config says."""
        settings = dataclasses.replace(self.config.search, beam=beams)
        guard = None
        if settings.block_ngrams or any(map(any, asked or ())):
            where = next(self.model.parameters()).device
            specs, block = asked or [ConstraintSpec()] * len(lengths), settings.block_ngrams
            guard = guarded(specs, self.spelling, self.written, block, where, settings.forced_bos)
        if guard is not None:
            lengths = [min(settings.max_length, each + room) for each, room in zip(lengths, guard.room, strict=True)]
        utility = None if settings.mbr == "none" else Reward(settings.mbr, self.text, self.config.data.bleu_tokenizer)
        finder = Searcher(settings, self.text, utility, self.config.train.seed, self.compiled)
        decoder = self.model.decoder if settings.forced_bos is None else ForcedBOS(self.model.decoder, settings.forced_bos)
        return Plan(finder, decoder, lengths, guard)

    @cached_property
    def spelling(self) -> Spelling:
        """What each token of an answer writes."""
        return Spelling.of(self.codec.target)

    def text(self, tokens: Sequence[int]) -> str:
        """What the tokens of an answer mean to a person."""
        return self.task.finish(self.codec.decode(tokens))

    def written(self, text: str) -> str:
        """What the model writes for a text in an answer."""
        return self.codec.prepare(self.task.prepare(Record("", text, "constraint")).target or "")

    def _batches(self, examples: Sequence[Any]) -> Iterator[Any]:
        """Every example once, about as many at a time as the config says, with their places."""
        if examples:
            yield from self.codec.loader(examples, self.codec.budget(examples, self.config.search.batch_size)).in_order()

    def _told(
        self,
        example: Example | ImageExample,
        found: Hypothesis,
        align: bool = False,
        translations: Mapping[str, str] | None = None,
    ) -> Prediction:
        text = self.codec.decode(found.tokens)
        if translations is not None and UNK in found.tokens:
            looked = self.head.read(found.weights or {})
            text = replace_unknown(self.codec, example.record, found.tokens, looked, translations)
        text = self.task.finish(text)
        source, target = self.codec.pieces(example), self.codec.target_pieces(found.tokens)
        if not align or not any(map(is_cross_attention, found.weights or {})):
            return Prediction(text, found.normalised, source, target)
        weights = self.head.read(found.weights or {}).cpu()
        grid = self.codec.grid(example) if isinstance(example, ImageExample) else None
        return Prediction(text, found.normalised, source, target, weights, links(weights[None]), grid)
