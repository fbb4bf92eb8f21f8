"""CTranslate2 as an engine: the same answers from its compiled Transformer, in float32 or int8."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import torch

from regard.alignment.heads import Head
from regard.config import Search
from regard.data.special_tokens import BOS, EOS, PAD
from regard.data.text.codec import Example
from regard.decoding.constraints.spec import ConstraintSpec
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.logprobs import UndistributedError
from regard.errors import RefusedError
from regard.inference.load import load_sequence_predictor
from regard.inference.sequence_predictor import Looking, SequencePredictor
from regard.interop.compat import get_halves
from regard.interop.ctranslate2.specification import files, place, room, spellings
from regard.interop.engine import UNTRACED
from regard.interop.engine_cache import cache_engine
from regard.interop.require import needed

FORBIDDEN = (PAD, BOS)
"""Tokens that no target has."""
PATIENCE = 2.0
"""The library ends a beam search when patience x beams hypotheses have finished. Ours looks at what still grows; with this
patience the two nearly always end with the same answer."""
OWN = ("beam", "max_length", "max_length_ratio", "length_penalty", "batch_size")
"""The settings of a search that the library has too; every other has to be at its default."""


def opened(directory: Path, device: str = "auto", precision: str = "float32") -> "Ctranslate2":
    """Open a run directory for this engine; what CTranslate2 needs is made once and kept in the user's cache."""
    if device not in ("auto", "cpu"):
        raise RefusedError(f"the engine ctranslate2 runs on the CPU here, got --device {device}; leave one of the two out")
    trained = load_sequence_predictor(directory, "cpu")
    return Ctranslate2(
        trained, cache_engine(directory, f"ctranslate2-{precision}", lambda: files(trained, precision)), precision
    )


class Ctranslate2(SequencePredictor):
    """A trained Transformer that answers through CTranslate2, on the CPU.

    Greedy search finds what ours finds. Beam search follows the same hypotheses and ends by a rule of the library's own.
    Alignments are those of the model's chosen head, or the mean of its last attention over the source. One input alone in
    int8 is answered by one thread, which is the fastest for it.
    """

    def __init__(self, trained: SequencePredictor, directory: Path, precision: str = "float32"):
        needed("ctranslate2", "ct2")
        self.attention = f"decoder.{place(trained.head, get_halves(trained.model)[1])[0]}.cross"
        head = Head(self.attention, None, trained.head.shift)
        super().__init__(trained.task, trained.config, trained.codec, trained.model, head)
        self.directory, self.precision, self.room = directory, precision, room(trained)
        self.sources, self.targets = spellings(self.codec.source), spellings(self.codec.target)
        self.numbers = {spelling: number for number, spelling in enumerate(self.targets)}
        self.translator = cache(self._translator)

    def trace(self, *_: Any, **__: Any) -> NoReturn:
        """A trace shows every attention, and this engine gives one."""
        raise RefusedError(f"{UNTRACED['ctranslate2']}: ask the run itself")

    def stream(self, *_: Any, **__: Any) -> NoReturn:
        """The library searches in one call."""
        raise RefusedError(
            "the engine ctranslate2 gives an answer when it is whole: leave --engine or --stream and --listen out"
        )

    listen = stream

    def _search(
        self,
        examples: Sequence[Example],
        beams: int,
        best: int,
        looking: Looking,
        specs: Sequence[ConstraintSpec] | None = None,
        done: frozenset[int] = frozenset(),
    ) -> Iterator[tuple[int, list[Hypothesis] | UndistributedError]]:
        self._understood(specs or ())
        beams = max(beams, best)
        by_limit: dict[int, list[int]] = defaultdict(list)
        for index, example in enumerate(examples):
            by_limit[self.longest(len(example.source))].append(index)
        size = self.config.search.select_batch_size()
        for limit, indices in sorted(by_limit.items()):
            for first in range(0, len(indices), size):
                some = indices[first : first + size]
                if done.issuperset(some):
                    yield from ((index, []) for index in some)
                    continue
                hypotheses = self._translate([examples[index].source for index in some], limit, beams, looking.weights)
                yield from ((index, self._distinct(ranked)[:best]) for index, ranked in zip(some, hypotheses, strict=True))

    def _understood(self, specs: Sequence[ConstraintSpec]) -> None:
        """Refuse what the library would not heed, or would heed otherwise."""
        search, usual = self.config.search, Search()
        for field in fields(search):
            if field.name not in OWN and getattr(search, field.name) != getattr(usual, field.name):
                raise RefusedError(
                    f"the engine ctranslate2 has no search.{field.name}, got {getattr(search, field.name)}: leave it or "
                    "--engine out"
                )
        if search.max_length >= self.room:
            raise RefusedError(
                f"the engine ctranslate2 has room for {self.room - 1} tokens of this model's answers, got "
                f"search.max_length={search.max_length}: lower it, or leave --engine out"
            )
        if any(map(any, specs)):
            raise RefusedError(
                "the engine ctranslate2 cannot be told what an answer begins with, holds or does not hold: leave --engine "
                "out, or --prefix, --include, --exclude and --constraints"
            )

    def _translate(self, sources: Sequence[Sequence[int]], limit: int, beams: int, weights: bool) -> list[list[Hypothesis]]:
        """The hypotheses for each source, best first. PAD and BOS, which no target holds, are forbidden where they come."""
        hypotheses = self._run(sources, limit, beams, weights, forbidden=())
        retried = [place for place, beam in enumerate(hypotheses) if any(_forbidden(hypothesis) for hypothesis in beam)]
        if retried:
            again = self._run([sources[place] for place in retried], limit, beams, weights, forbidden=FORBIDDEN)
            for place, beam in zip(retried, again, strict=True):
                hypotheses[place] = beam
        return hypotheses

    def _run(
        self, sources: Sequence[Sequence[int]], limit: int, beams: int, weights: bool, forbidden: Sequence[int]
    ) -> list[list[Hypothesis]]:
        alone = self.precision == "int8" and len(sources) == 1
        results = self.translator(1 if alone else torch.get_num_threads()).translate_batch(
            [[self.sources[number] for number in source] for source in sources],
            beam_size=beams,
            num_hypotheses=beams,
            patience=PATIENCE if beams > 1 else 1.0,
            length_penalty=self.config.search.length_penalty,
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=0,
            suppress_sequences=[[self.targets[number]] for number in forbidden],
            return_scores=True,
            return_end_token=True,
            return_attention=weights,
        )
        return [self._read_result(result, weights) for result in results]

    def _read_result(self, result: Any, weights: bool) -> list[Hypothesis]:
        """Hypotheses in the library's result for one source: finished ones before those that were cut off."""
        every = []
        for place_, (spelling, score) in enumerate(zip(result.hypotheses, result.scores, strict=True)):
            tokens = [self.numbers[token] for token in spelling]
            total = score * max(1, len(tokens)) ** self.config.search.length_penalty
            attention = {self.attention: torch.tensor(result.attention[place_])[None]} if weights else None
            every.append(Hypothesis(tokens, total, score, [], tokens[-1:] == [EOS], attention))
        return sorted(every, key=lambda hypothesis: not hypothesis.finished)

    def _distinct(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The first of each text."""
        distinct: dict[str, Hypothesis] = {}
        for hypothesis in hypotheses:
            distinct.setdefault(self.text(hypothesis.tokens), hypothesis)
        return list(distinct.values())

    def _translator(self, threads: int) -> Any:
        import ctranslate2  # type: ignore[import-untyped]

        kind = {"float32": "float32", "int8": "int8_float32"}[self.precision]
        return ctranslate2.Translator(str(self.directory), compute_type=kind, inter_threads=1, intra_threads=threads)


def _forbidden(hypothesis: Hypothesis) -> bool:
    return any(number in hypothesis.tokens for number in FORBIDDEN)
