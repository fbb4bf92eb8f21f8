"""Predictor of models that decode a sequence step by step, from a text or a picture."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import torch
from torch import nn

from regard.alignment.heads import Head
from regard.alignment.unknown import load_translations, replace_unknown
from regard.data.lines import lines
from regard.data.modality import Source
from regard.data.special_tokens import NAMES, UNK
from regard.data.table import Record
from regard.decoding.align import align as links
from regard.decoding.attention_weights import is_cross_attention
from regard.decoding.constraints.language import Language, parse_grammar
from regard.decoding.constraints.spec import ConstraintSpec, Phrases, expand_specs
from regard.decoding.constraints.spec import build_guard as guarded
from regard.decoding.constraints.spelling import Spelling
from regard.decoding.constraints.state import Guard
from regard.decoding.copies import find_copies
from regard.decoding.engines.cuda.encoder import encode, lock_device
from regard.decoding.engines.cuda.select import covers_half_precision
from regard.decoding.forced_bos import ForcedBOS
from regard.decoding.fusion import Fusion, Scorer
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.logprobs import UndistributedError
from regard.decoding.max_length import find_tensor, limit_length
from regard.decoding.max_length import limit_lengths as most
from regard.decoding.score import rate
from regard.decoding.search import Searcher
from regard.decoding.search_tree import SearchTree as Branches
from regard.errors import RefusedError
from regard.inference.prediction import Prediction
from regard.inference.predictor import Input, Predictor, PredictorTask, split_inputs, text_of
from regard.metrics.reward import Reward
from regard.metrics.text import Measurement, Metrics, perplexity
from regard.models.types import Decoder
from regard.training.device import find_gpu_memory, has_bf16
from regard.tree import Tree, select

if TYPE_CHECKING:
    from regard.viewer.trace import Trace


class Plan(NamedTuple):
    """Plan of a search: searcher, decoder, length limits and constraints."""

    finder: Searcher
    decoder: Decoder
    lengths: list[int]
    guard: Guard | None


class Looking(NamedTuple):
    """Results of a search beside the tokens: attention weights, and the tokens that were copied."""

    weights: bool = False
    copies: bool = False


class Extras(NamedTuple):
    """Contents of a prediction beside its text."""

    align: bool = False
    copies: bool = False
    translations: Mapping[str, str] | None = None
    """Translations of words that the model cannot write; None keeps them."""


@runtime_checkable
class SequenceTask(PredictorTask, Protocol):
    """Task whose models write text: how an answer is finished, and how answers are measured."""

    def finish(self, text: str) -> str: ...

    def measure(self, outputs: Sequence[str], references: Sequence[str], sources: Sequence[str], config: Any) -> Metrics: ...

    def measure_model(self, predictor: Any, examples: Sequence[Any]) -> Mapping[str, Measurement]:
        """Metrics of a model beside those of its answers, such as where it attends."""


class SequencePredictor(Predictor):
    """Trained model that decodes a sequence step by step: translations, captions, inflections."""

    task: SequenceTask
    searches = True
    reads_source: ClassVar[bool] = True
    """False for a language model, whose decoder reads no source."""

    def __init__(
        self,
        task: SequenceTask,
        config: Any,
        codec: Any,
        model: nn.Module,
        head: Head = Head(),
    ):
        super().__init__(task, config, codec, model)
        self.head = head
        """Attention head that alignments are read from."""
        self.compiled = False
        """True if plain search may compile code (`predict --compile`). The config cannot set it."""

    def outcomes(
        self,
        inputs: Sequence[Input],
        *,
        beam: int | None = None,
        best: int = 1,
        align: bool = False,
        copies: bool = False,
        unknown: str | None = None,
        prefix: str | Sequence[str] | None = None,
        include: Phrases | None = None,
        exclude: Phrases | None = None,
        done: frozenset[int] = frozenset(),
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        """The index of each input with its answers, batch after batch, or with the error of one whose scores are not finite.

        `unknown` says what becomes of words that the model cannot write: "keep" them as they are, "copy" the source word
        that they look at, or a file of WORD TAB TRANSLATION to translate it by; None is what the config says. Every answer
        begins with `prefix`, holds the phrases to `include` and none to `exclude`: the same for all inputs, or a list with
        those of each. With `copies` an answer has the tokens that were copied from its source.

        The answers to the indices in `done` are known: a batch of nothing else is not computed, and an empty list stands for
        each of its answers. All other batches are those that there would be if nothing were done.
        """
        translations = self._dictionary(unknown)
        if copies:
            self.check_copying()
        self.warn_of_cuts(inputs)
        constraints = expand_specs(len(inputs), prefix, include, exclude)
        if self.recorder is not None and inputs:
            self.recorder.take(
                lambda: self.trace(inputs, beam=max(beam or self.config.search.beam, best), constraints=constraints)
            )
        with nullcontext() if self.recorder is None else self.recorder.away():
            yield from self._outcomes(inputs, beam, best, Extras(align, copies, translations), constraints, done)

    def _outcomes(
        self,
        inputs: Sequence[Input],
        beam: int | None,
        best: int,
        extras: Extras,
        constraints: Sequence[ConstraintSpec],
        done: frozenset[int],
    ) -> Iterator[tuple[int, list[Prediction] | UndistributedError]]:
        records = [self.read(item, number) for number, item in enumerate(inputs, 1)]
        examples = self.codec.encode_all(records, over_long="truncate").examples
        looking = Looking(extras.align or extras.translations is not None, extras.copies)
        for index, hypotheses in self._search(examples, beam or self.config.search.beam, best, looking, constraints, done):
            if isinstance(hypotheses, UndistributedError):
                yield index, hypotheses
            else:
                yield (
                    index,
                    [self._make_prediction(examples[index], hypothesis, extras) for hypothesis in hypotheses],
                )

    def stream(
        self,
        source: Input,
        *,
        beam: int | None = None,
        prefix: str | None = None,
        include: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
    ) -> Iterator[str]:
        """Pieces of the answer to one input as they are decided; none is taken back, and joined they are its text."""
        from regard.inference.streaming import stream, streamable

        streamable(self.config.search)
        [wish] = expand_specs(1, prefix, include, exclude)
        beams = beam or self.config.search.beam
        if self.recorder is not None:
            self.recorder.take(lambda: self.trace([source], beam=beams, constraints=[wish]))
        return stream(self, source, beams, wish)

    def listen(self, pieces: Iterable[str], *, beam: int | None = None) -> Iterator[str]:
        """The answer to a source that still arrives, piece by piece: each as soon as what has arrived decides it.

        For models that need not wait for the end: monotonic attention over an encoder that reads in one direction. Together
        the pieces are what `predict` gives for the whole source with beam=1. Nobody records what is found so.
        """
        from regard.inference.simultaneous import listen

        return listen(self, pieces, beam or self.config.search.beam)

    def trace(
        self,
        inputs: Input | Iterable[Input],
        *,
        beam: int | None = None,
        targets: Sequence[str] | None = None,
        scores: bool = False,
        constraints: Sequence[ConstraintSpec] | None = None,
    ) -> "Trace":
        """Attention weights and choices while the model answers, step by step; with `targets`, while these are written.

        A model without attention has a trace too, of its network and its steps. `constraints` is what each answer must hold.
        """
        from regard.inference.sequence_trace import trace

        with nullcontext() if self.recorder is None else self.recorder.pause():
            return trace(self, split_inputs(inputs)[1], beam=beam, targets=targets, scores=scores, constraints=constraints)

    def evaluate_records(self, prepared: Sequence[Record], *, beam: int | None = None) -> Metrics:
        """Metrics on records that the task has prepared already; a source that is too long has an empty answer."""
        return self.evaluate_examples(self.codec.encode_all(prepared, over_long="truncate").examples, beam=beam)

    def evaluate_examples(self, examples: Sequence[Any], *, beam: int | None = None) -> Metrics:
        """Metrics on examples that the codec has encoded."""
        prepared = [example.record for example in examples]
        outputs, read = [""] * len(examples), self.select_fitting(prepared)
        likely, extras = self._perplexity(examples), Extras(translations=self._dictionary())
        looking = Looking(extras.translations is not None)
        fitting = [examples[index] for index in read]
        for place, hypotheses in self._search(fitting, beam or self.config.search.beam, 1, looking):
            if isinstance(hypotheses, UndistributedError):
                raise hypotheses
            outputs[read[place]] = self._make_prediction(fitting[place], hypotheses[0], extras).text
        references = [self.task.finish(self.codec.prepare(record.target or "")) for record in prepared]
        metrics = self.task.measure(outputs, references, [record.source for record in prepared], self.config)
        metrics |= self.task.measure_model(self, examples)
        return metrics if likely is None else metrics | {"perplexity": likely}

    def find_unscored(self, prepared: Sequence[Record], *, beam: int | None = None) -> dict[int, UndistributedError]:
        """Indices of the prepared records whose scores, or those of whose targets, are not finite, and their errors."""
        examples = self.codec.encode_all(prepared, over_long="truncate").examples
        looking = Looking(self._dictionary() is not None)
        outcomes = self._search(examples, beam or self.config.search.beam, 1, looking)
        errors = {place: outcome for place, outcome in outcomes if isinstance(outcome, UndistributedError)}
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

    def check_traceable(self) -> None:
        """Raise where a trace cannot show the precision of the search."""
        from regard.inference.sequence_trace import check_traceable

        check_traceable(self.config.search)

    def read_pair(self, source: Input, target: str | None, number: int) -> Any:
        """Prepared record of an input and of a target for it, unless that is None."""
        if target is None:
            return self.read(source, number)
        if isinstance(source, Record):
            return self.task.prepare(source._replace(target=target))
        return self.task.prepare(Record(text_of(source), target, f"input:{number}"))

    def align_pair(self, source: Input, text: str) -> Prediction:
        """Alignment of one input with a known text; models whose sources have times override it."""
        raise RefusedError(
            f"regard align DIR INPUT TEXT is for models that read sound, and this one ({self.name}) reads "
            f"{self.codec.kind}; give --data.test=FILE"
        )

    def text_codec(self, wanted: str) -> Any:
        """Codec of a model that reads text; for another model, an error that names what is not for it."""
        if self.codec.kind != "text":
            raise RefusedError(f"{wanted} is for models that read text, and this one ({self.name}) reads {self.codec.kind}")
        return self.codec

    def select_fitting(self, prepared: Sequence[Record]) -> list[int]:
        """Indices of the records that an evaluation answers: those whose sources are not cut."""
        indices: list[int] = self.codec.select_fitting(prepared)
        return indices

    def warn_of_cuts(self, inputs: Sequence[Input]) -> None:
        """Warn of inputs that are answered although they are read in part; here there are none (`reads_beginnings`)."""

    @property
    def copies(self) -> bool:
        """True if the model mixes words of its source into its answers."""
        outcome = getattr(getattr(self.model, "decoder", None), "outcome", None)
        return getattr(outcome, "copying", None) is not None

    def check_copying(self) -> None:
        """Raise where the model copies nothing, so that nothing could be marked."""
        if not self.copies:
            raise RefusedError(
                f"copied words are those of a model that copies (--model.copy=true), and this one ({self.name}) copies none"
            )

    def codec_of(self, example: Any) -> Any:
        """Codec for the outputs of one example: with the words of its source, where the model may copy them."""
        words = getattr(example, "words", ())
        return self.codec.extend(words) if words else self.codec

    def _dictionary(self, unknown: str | None = None) -> Mapping[str, str] | None:
        unknown = unknown or self.config.search.unknown
        if unknown != "keep":
            self.text_codec(f"unknown={unknown}, which takes words of the source,")
        return load_translations(unknown)

    def _perplexity(self, examples: Sequence[Any]) -> Measurement | None:
        """Perplexity of the model on the targets, sentence by sentence."""
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
        looking: Looking,
        constraints: Sequence[ConstraintSpec] | None = None,
        done: frozenset[int] = frozenset(),
    ) -> Iterator[tuple[int, list[Hypothesis] | UndistributedError]]:
        holding = [bool(wish.include) for wish in constraints or ()]
        if constraints is not None and any(holding) and not all(holding):  # phrases widen the beam, of nobody else
            for which in (True, False):
                places = [place for place, holder in enumerate(holding) if holder == which]
                some, wanted = [examples[place] for place in places], [constraints[place] for place in places]
                known = frozenset(index for index, place in enumerate(places) if place in done)
                outcomes = self._search(some, beams, best, looking, wanted, known)
                yield from ((places[index], hypotheses) for index, hypotheses in outcomes)
            return
        for indices, batch in self._batches(examples):
            if done.issuperset(indices):
                yield from ((index, []) for index in indices)
                continue
            its = None if constraints is None else [constraints[index] for index in indices]
            yield from zip(indices, self._answer(batch.source, beams, best, looking, its), strict=True)

    def _answer(
        self, source: Any, beams: int, best: int, looking: Looking, constraints: Sequence[ConstraintSpec] | None
    ) -> list[list[Hypothesis] | UndistributedError]:
        """The answers to a batch; one with scores that are not finite is cut in half until each such source is alone."""
        device, lengths = next(self.model.parameters()).device, self.limits(source)
        try:
            with lock_device(device):
                with torch.no_grad():
                    reference = looking.weights or any(map(any, constraints or ())) or self.config.search.grammar is not None
                    precision = self.select_precision(reference)
                    memory = self.encode(source.to(device), precision)
                options: dict[str, Any] = {"constraints": constraints, "precision": precision}
                answers = self.search(memory, lengths, beams, best=best, weights=looking.weights, **options)
                return [*(add_copies(self.model.decoder, memory, answers) if looking.copies else answers)]
        except UndistributedError as error:
            if len(lengths) == 1:
                return [error]
        middle = len(lengths) // 2
        return [
            hypotheses
            for rows in (range(middle), range(middle, len(lengths)))
            for hypotheses in self._answer(
                source.select_rows(rows),
                beams,
                best,
                looking,
                None if constraints is None else [constraints[row] for row in rows],
            )
        ]

    def select_precision(self, reference: bool = False) -> str:
        """Precision of a search, for `auto` by the device; a `reference` search, with all options, has float32 alone."""
        settings, device = self.config.search, next(self.model.parameters()).device
        if settings.precision != "auto":
            return settings.precision
        reference = reference or bool(settings.block_ngrams or settings.lm)
        if reference or self.config.train.precision != "bf16" or not has_bf16(device):
            return "float32"
        covered = Searcher(settings, self.text).is_plain(True) and covers_half_precision(self.model)
        return "bf16" if covered else "float32"

    def encode(self, source: Source, precision: str = "float32") -> Tree:
        """Memory of sources on the model's device, for `search`."""
        return encode(self.model, source, precision, self.compiled)

    def fuse(self, memory: Tree) -> tuple[Tree, Fusion | None]:
        """The decoder's part of a memory of `encode`, and scores that are added to the decoder's in the search."""
        scorers = self.language_scorers
        return memory, Fusion(scorers) if scorers else None

    @property
    def language_scorers(self) -> tuple[Scorer, ...]:
        """The language model that joins the search, where there is one with a weight."""
        search = self.config.search
        return () if search.lm is None or not search.lm_weight else (self.language_model,)

    @cached_property
    def language_model(self) -> Scorer:
        """Language model of search.lm."""
        from regard.inference.language_model import load_language_model  # imported late: it loads predictors

        return load_language_model(self.config.search.lm, self)

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
        constraints: Sequence[ConstraintSpec] | None = None,
        precision: str | None = None,
    ) -> list[list[Hypothesis]]:
        """The answers to sources that the model has read, as the config says they are looked for.

        `constraints` is what each must hold; an answer may become longer by that, up to the longest that the config allows.
        `precision` is that in which the sources were read, unless it is the config's.
        """
        finder, decoder, lengths, guard = self.plan(lengths, beams, constraints, precision)
        memory, fusion = self.fuse(memory)
        return finder(decoder, memory, lengths, best=best, weights=weights, tree=tree, guard=guard, fusion=fusion)

    def plan(
        self,
        lengths: list[int],
        beams: int,
        constraints: Sequence[ConstraintSpec] | None = None,
        precision: str | None = None,
    ) -> Plan:
        """Plan the search for these sources by the config."""
        own = self.config.search.precision
        precision = precision or ("float32" if own == "auto" else own)
        settings = dataclasses.replace(self.config.search, beam=beams, precision=precision)
        guard = None
        language = None if settings.grammar is None else self.language
        if settings.block_ngrams or language is not None or any(map(any, constraints or ())):
            where = next(self.model.parameters()).device
            specs, block = constraints or [ConstraintSpec()] * len(lengths), settings.block_ngrams
            guard = guarded(specs, self.spelling, self.written, block, where, settings.forced_bos, language)
        if guard is not None:
            lengths = [min(settings.max_length, length + room) for length, room in zip(lengths, guard.room, strict=True)]
        utility = None if settings.mbr == "none" else Reward(settings.mbr, self.text, self.config.data.bleu_tokenizer)
        finder = Searcher(settings, self.text, utility, self.config.train.seed, self.compiled)
        decoder = self.model.decoder if settings.forced_bos is None else ForcedBOS(self.model.decoder, settings.forced_bos)
        return Plan(finder, decoder, lengths, guard)

    @cached_property
    def language(self) -> Language:
        """Language that answers are written in: the grammar of a file, in the tokens of answers."""
        path = self.config.search.grammar
        if path == "targets":
            raise RefusedError(
                f"search.grammar=targets is for models of the task parse, and this one is of {self.name}; name the file of "
                "a grammar, or leave it out"
            )
        text = "\n".join(line.text for line in lines(path))
        return parse_grammar(text, path, lambda quoted: self.codec.target.encode(self.written(quoted)), self.constants)

    @property
    def constants(self) -> frozenset[int]:
        """Tokens that may be a constant of a grammar: all but the special ones."""
        return frozenset(range(len(NAMES), self.codec.target.size))

    @cached_property
    def spelling(self) -> Spelling:
        """Spelling of each token of an answer."""
        return Spelling.of(self.codec.target)

    def text(self, tokens: Sequence[int]) -> str:
        """Detokenized text of an answer's tokens."""
        return self.task.finish(self.codec.decode(tokens))

    def written(self, text: str) -> str:
        """Form in which the model writes a text in an answer."""
        return self.codec.prepare(self.task.prepare(Record("", text, "constraint")).target or "")

    def _batches(self, examples: Sequence[Any]) -> Iterator[Any]:
        """Every example once, about as many at a time as the config says, with their places."""
        if examples:
            memory = find_gpu_memory(next(self.model.parameters()).device)
            count = self.config.search.select_batch_size(memory)
            yield from self.codec.loader(examples, self.codec.budget(examples, count)).in_order()

    def _make_prediction(
        self,
        example: Any,
        hypothesis: Hypothesis,
        extras: Extras,
    ) -> Prediction:
        codec, translations, tokens = self.codec_of(example), extras.translations, hypothesis.tokens
        text = codec.decode(tokens)
        if translations is not None and UNK in hypothesis.tokens:
            head_weights = self.head.read(hypothesis.weights or {})
            text = replace_unknown(codec, example.record, tokens, head_weights, translations)
        text = self.task.finish(text)
        source, target = codec.pieces(example), codec.target_pieces(tokens)
        prediction = Prediction(text, hypothesis.normalised, source, target)
        if hypothesis.copies is not None:
            marked = self.task.finish(codec.mark_copies(tokens, [copy[:2] for copy in hypothesis.copies]))
            prediction = prediction._replace(copies=hypothesis.copies, marked=marked)
        if not extras.align or not any(map(is_cross_attention, hypothesis.weights or {})):
            return prediction
        weights = self.head.read(hypothesis.weights or {}).cpu()
        grid = self.codec.grid(example) if hasattr(self.codec, "grid") else None
        return prediction._replace(weights=weights, links=links(weights[None]), grid=grid)


def add_copies(decoder: Decoder, memory: Tree, answers: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
    """Hypotheses of each source with the tokens that were copied from it."""
    rows = [row for row, few in enumerate(answers) for _ in few]
    chosen = select(memory, torch.tensor(rows, device=find_tensor(memory).device))
    copies = iter(find_copies(decoder, chosen, [hypothesis.tokens for few in answers for hypothesis in few]))
    return [[hypothesis._replace(copies=next(copies)) for hypothesis in few] for few in answers]
