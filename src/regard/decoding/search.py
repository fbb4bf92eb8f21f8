"""Search by the settings: chooses the algorithm and the engine."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

import torch

from regard.config import Search
from regard.decoding.attention_weights import compute_target_weights
from regard.decoding.beam import beam
from regard.decoding.constraints.state import Guard
from regard.decoding.engines.cuda.select import find_reason as find_gpu_reason
from regard.decoding.engines.cuda.select import select_gpu_search
from regard.decoding.engines.eager.beam import beam as native
from regard.decoding.engines.eager.modules import EagerEngine
from regard.decoding.engines.select import find_engine_module, select_engine
from regard.decoding.engines.types import Engine
from regard.decoding.fusion import Fusion
from regard.decoding.greedy import greedy
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.max_length import find_device, find_tensor
from regard.decoding.mbr import Utility, rank_by_utility
from regard.decoding.sample import sample
from regard.decoding.search_tree import SearchTree
from regard.errors import ConfigError
from regard.models.types import Decoder
from regard.tree import Tree, select

LOGGER = logging.getLogger(__name__)
FEW_SOURCES = 4
"""Sources on a CPU up to which a second pass for the attention costs less than a search that computes it at each step."""
MIN_CONSTRAINED_BEAM = 8
"""Minimum beam size with required phrases: some hypotheses before each, some after."""


@dataclass(frozen=True)
class Searcher:
    """Search by the settings: greedy, beam, diverse beam, sampling or minimum Bayes risk.

    `text` detokenizes; `utility` is that of minimum Bayes risk, and `seed` that of sampling. `compiled`
    lets a plain search run in compiled code, where there is any for the decoder; it is no setting, so that no config of a
    model that somebody sent starts a compiler.
    """

    settings: Search
    text: Callable[[Sequence[int]], str]
    utility: Utility | None = None
    seed: int = 0
    compiled: bool = False

    def __call__(
        self,
        decoder: Decoder,
        memory: Tree,
        lengths: Sequence[int],
        *,
        best: int = 1,
        weights: bool = False,
        tree: SearchTree | None = None,
        guard: Guard | None = None,
        fusion: Fusion | None = None,
    ) -> list[list[Hypothesis]]:
        """Hypotheses for each source, the `best` first, no two of one text; fewer where there are no more."""
        settings, phrases = self.settings, guard is not None and guard.includes
        after = weights and self.attends_after(memory)
        plain = tree is None and guard is None and fusion is None
        search = self.fast(decoder, memory, plain and (after or not weights), after)
        self._report(decoder, memory, search, weights, tree, guard, fusion)
        if settings.mbr != "none" and settings.mbr_from == "sample":
            hypotheses = self._sample(decoder, memory, lengths, weights, guard)
        elif search is not None:
            several = settings.mbr_candidates if settings.mbr != "none" else best
            beams = self.beams(several, phrases=False)
            few = 1 if several == 1 else beams
            hypotheses = search(memory, beams=beams, length=lengths, best=few, length_penalty=self.penalty(beams))
        elif settings.mbr == "none" and best == 1 and settings.beam == 1 and not phrases and fusion is None:
            return [[hypothesis] for hypothesis in greedy(decoder, memory, length=lengths, weights=weights, guard=guard)]
        else:
            several = settings.mbr_candidates if settings.mbr != "none" else best
            beams = self.beams(several, phrases)
            hypotheses = beam(
                decoder,
                memory,
                beams=beams,
                length=lengths,
                best=1 if several == 1 else beams,
                length_penalty=settings.length_penalty,
                coverage_penalty=settings.coverage_penalty,
                weights=weights,
                tree=tree,
                groups=settings.beam_groups,
                diversity=settings.diversity_penalty,
                guard=guard,
                fusion=fusion,
            )
        if self.utility is not None and settings.mbr != "none":
            sampled, most = settings.mbr_from == "sample", settings.mbr_candidates
            hypotheses = [
                rank_by_utility(few if sampled else self._distinct(few)[:most], self.utility, sampled=sampled)
                for few in hypotheses
            ]
            if tree is not None:
                tree.follow(hypotheses[0][0].tokens)
        hypotheses = [self._distinct(few)[:best] for few in hypotheses]
        return _attend(decoder, memory, hypotheses) if weights and search is not None else hypotheses

    def attends_after(self, memory: Tree) -> bool:
        """Return True if weights come from a second pass with teacher forcing, and the search keeps its engine.

        For many sources on a CPU that costs more than the weights of the search that computes them at each step; an engine
        that was asked for by name (`compiled`) is kept all the same.
        """
        if self.precision != "float32":
            return False
        first = find_tensor(memory)
        return first.device.type == "cuda" or self.compiled or len(first) <= FEW_SOURCES

    def fast(
        self, decoder: Decoder, memory: Tree, plain: bool, weights: bool = False
    ) -> Callable[..., list[list[Hypothesis]]] | None:
        """Select the fast search on this device; None: the reference search, which has all options.

        Of an engine that calls the decoder as a module `weights` are wanted at each step, from the reference.
        """
        if (
            self.is_plain(plain)
            and (search := select_gpu_search(decoder, memory, self.precision, self.compiled)) is not None
        ):
            return search
        engine = self.engine(decoder, memory, plain)
        return None if engine is None or (weights and isinstance(engine, EagerEngine)) else partial(native, engine)

    def is_plain(self, plain: bool) -> bool:
        """Return True if only the best hypotheses are wanted, without options that only the reference search has."""
        settings = self.settings
        sampled = settings.mbr != "none" and settings.mbr_from == "sample"
        return plain and settings.beam_groups == 1 and not settings.coverage_penalty and not sampled

    def engine(self, decoder: Decoder, memory: Tree, plain: bool) -> Engine | None:
        """Select the CPU engine for a plain search; None: the reference search, which has all options."""
        if self.is_plain(plain):
            return select_engine(decoder, memory, self.precision, self.compiled)
        if self.precision != "float32":
            raise ConfigError(
                f"search.precision={self.precision} is for plain search; weights (--align, --trace), constraints, "
                "a language model (search.lm), block_ngrams, groups, coverage_penalty and samples need "
                "search.precision=float32"
            )
        return None

    @property
    def precision(self) -> str:
        """Precision of the search; `auto`, which nobody has decided, is float32."""
        return "float32" if self.settings.precision == "auto" else self.settings.precision

    def penalty(self, beams: int) -> float:
        """Length penalty; greedy search reports the mean log-probability of a token, since no hypotheses compete."""
        return 1.0 if beams == 1 and self.settings.mbr == "none" else self.settings.length_penalty

    def beams(self, several: int, phrases: bool) -> int:
        """Beam size for so many answers: larger than the setting where that would be too few."""
        least = max(several, MIN_CONSTRAINED_BEAM if phrases else 1)
        groups = self.settings.beam_groups
        return self.settings.beam if self.settings.beam >= least else ceil(least / groups) * groups

    def _report(
        self,
        decoder: Decoder,
        memory: Tree,
        search: Callable[..., Any] | None,
        weights: bool,
        tree: SearchTree | None,
        guard: Guard | None,
        fusion: Fusion | None,
    ) -> None:
        """Log the engine of a search, and the reason why there is no faster one."""
        if not LOGGER.isEnabledFor(logging.INFO):
            return
        device = find_device(memory)
        if search is None:
            reason = self._find_reason(decoder, memory, weights, tree, guard, fusion)
            LOGGER.info("engine: reference on %s; %s", device, reason)
            return
        engine = search.args[0] if isinstance(search, partial) else search
        kind = type(engine).__module__.removeprefix("regard.decoding.engines.")
        note = "; the attention comes from a second pass over the answers" if weights else ""
        LOGGER.info("engine: %s on %s%s", kind, device, note)

    def _find_reason(
        self,
        decoder: Decoder,
        memory: Tree,
        weights: bool,
        tree: SearchTree | None,
        guard: Guard | None,
        fusion: Fusion | None,
    ) -> str:
        """Reason why the reference search runs."""
        settings = self.settings
        reasons = {
            "a trace shows the hypotheses of each step": tree is not None,
            "CTC, a language model and hotwords are scored at each step": fusion is not None,
            "prefixes, phrases, block_ngrams and grammars are constraints on each step": guard is not None,
            "search.beam_groups are searched one after the other": settings.beam_groups > 1,
            "search.coverage_penalty needs the attention of each step": bool(settings.coverage_penalty),
            "the candidates of search.mbr are samples": settings.mbr != "none" and settings.mbr_from == "sample",
            f"the attention of more than {FEW_SOURCES} inputs at once costs least during the search": weights
            and not self.attends_after(memory),
        }
        obstacle = next((reason for reason, applies in reasons.items() if applies), None)
        return obstacle or find_gpu_reason(decoder) or find_engine_module(decoder, memory)[0] or "it is in training"

    def _sample(
        self, decoder: Decoder, memory: Tree, lengths: Sequence[int], weights: bool, guard: Guard | None
    ) -> list[list[Hypothesis]]:
        """Sample as many hypotheses of each answer as there are candidates."""
        generator = torch.Generator().manual_seed(self.seed)
        times = range(self.settings.mbr_candidates)
        sampled = [sample(decoder, memory, length=lengths, generator=generator, weights=weights, guard=guard) for _ in times]
        return [list(samples) for samples in zip(*sampled, strict=True)]

    def _distinct(self, few: Sequence[Hypothesis]) -> list[Hypothesis]:
        """First hypothesis of each text."""
        distinct: dict[str, Hypothesis] = {}
        for hypothesis in few:
            distinct.setdefault(self.text(hypothesis.tokens), hypothesis)
        return list(distinct.values())


def _attend(decoder: Decoder, memory: Tree, hypotheses: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
    """Hypotheses with their attention weights, computed by teacher forcing."""
    places = [(row, rank) for row, few in enumerate(hypotheses) for rank, tensor in enumerate(few) if tensor.tokens]
    filled = [[hypothesis._replace(weights={}) for hypothesis in few] for few in hypotheses]
    if places:
        rows = torch.tensor([row for row, _ in places], device=find_device(memory))
        targets = [hypotheses[row][rank].tokens for row, rank in places]
        weights = compute_target_weights(decoder, select(memory, rows), targets)
        for (row, rank), weight in zip(places, weights, strict=True):
            filled[row][rank] = filled[row][rank]._replace(weights=weight)
    return filled
