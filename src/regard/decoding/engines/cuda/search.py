"""Search on a GPU: several steps between synchronisations; done sentences are dropped when they are half of all."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from regard.decoding.backpointers import make_empty_hypothesis
from regard.decoding.engines.cuda.beam import Beam
from regard.decoding.engines.cuda.buckets import INITIAL_STEPS, pad_rows, round_up, round_up_steps
from regard.decoding.engines.cuda.graph import Pool, ReplayedGraph, create_pool
from regard.decoding.engines.cuda.greedy import Greedy
from regard.decoding.engines.cuda.results import SearchResults
from regard.decoding.engines.cuda.types import Engine, Steps
from regard.decoding.engines.types import Numbers
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.max_length import resolve_limits
from regard.kernels.runtime import compile
from regard.tree import Tree, leaves

STEPS_PER_FETCH = 8
"""Steps between two synchronisations with the host."""
MAX_ROWS = 1024
"""Maximum number of hypotheses at once, unless one sentence alone has more: enough to keep a GPU busy, and the memory of a
beam does not grow with the batch beyond it."""
MAX_SHAPES = 32
"""Maximum number of shapes in the cache; the least recently used one is dropped."""


class SearchBuffers:
    """Search buffers of one shape: decoder state, beam state, and the CUDA graph of a step."""

    def __init__(self, steps: Steps, choice: Greedy | Beam, where: torch.device, memory: Pool | None):
        self.steps, self.choice = steps, choice
        self.clock = torch.zeros(2, dtype=torch.long, device=where)
        self.step = ReplayedGraph(self.advance, where, memory)

    def advance(self) -> None:
        """Advance all sentences by one step."""
        place, turn = self.clock[:1], self.clock[1:]
        hidden = self.steps.step(self.choice.tokens, self.choice.parents, place)
        self.choice.choose(hidden, self.steps.project, place, turn)
        self.clock += 1

    def prepare(self) -> None:
        """Have Triton compile the kernels of a step in parallel, before the first."""
        compile.compile_kernels(self.launch, self.clock.device)

    def launch(self) -> None:
        """Launch every kernel of a step once."""
        place, turn = self.clock[:1], self.clock[1:]
        logits = self.steps.prepare(self.choice.tokens, self.choice.parents, place)
        self.choice.prepare(logits, place, turn)

    def start(self, place: int, turns: int) -> None:
        """Start some steps from a position on; they run asynchronously until the host fetches their results."""
        self.clock[:1].fill_(place)
        self.clock[1:].zero_()
        for _ in range(turns):
            self.step()


class GPUSearch:
    """Search over a prepared decoder, with the buffers of each shape that it has met."""

    def __init__(self, engine: Engine, where: torch.device):
        self.engine, self.device, self.pool = engine, where, create_pool(where)
        self.boards: OrderedDict[tuple[Any, ...], SearchBuffers] = OrderedDict()

    @torch.no_grad()
    def __call__(
        self, memory: Tree, *, beams: int, length: int | Sequence[int], best: int = 1, length_penalty: float = 1.0
    ) -> list[list[Hypothesis]]:
        """Search: the `best` hypotheses of each sentence; equals `decoding.beam`, and greedy search with one beam."""
        most = np.array(resolve_limits(length, memory), dtype=np.int64)
        hypotheses = [[make_empty_hypothesis(weights=False)] for _ in most]
        shape = BufferCache(self, memory, beams, best)
        write: Callable[[], None] = do_nothing
        for group in split_sentences(np.flatnonzero(most > 0), MAX_ROWS // beams):
            results = SearchResults(most[group], beams, best, length_penalty)
            self.run(results, shape, memory, group, write)
            write = partial(store_hypotheses, hypotheses, group, results)
        write()
        return hypotheses

    def run(
        self, results: SearchResults, shape: "BufferCache", memory: Tree, group: Numbers, meanwhile: Callable[[], None]
    ) -> None:
        """Search step by step until every sentence of a group is done; `meanwhile` runs once while the GPU is busy."""
        most, sentences = results.most, np.arange(len(group))
        count, space = round_up(len(group)), round_up_steps(min(INITIAL_STEPS, int(most.max())))
        board = shape.board(count, space)
        board.steps.begin(memory, group)
        self.begin(board, most[pad_rows(sentences, count)], results.alpha)
        while True:
            turns = min(STEPS_PER_FETCH, space - results.length, int(most[sentences].max()) - results.length)
            if self.engine.limit is not None:
                turns = min(turns, self.engine.limit - results.length)
                if not turns:
                    self.engine.refuse()
            board.start(results.length, turns)
            meanwhile()
            meanwhile = do_nothing
            figures, done = board.choice.fetch(turns)
            results.add(figures.numpy(), done.numpy(), sentences)
            staying = np.flatnonzero(results.ends[sentences] == 0)
            if not len(staying):
                return
            full, fewer = results.length == space, round_up(len(staying))
            if full or 2 * fewer <= count:
                count, space = fewer, 2 * space if full else space
                before, board = board, shape.board(count, space)
                rows, sentences = self.placed(pad_rows(staying, count)), sentences[staying]
                self.move(before, board, rows, most[pad_rows(sentences, count)], results.alpha)

    def begin(self, board: SearchBuffers, longest: Numbers, alpha: float) -> None:
        """Reset the beam state of these buffers."""
        if isinstance(board.choice, Beam):
            board.choice.begin(longest, alpha)
        else:
            board.choice.begin()

    def move(
        self, before: SearchBuffers, after: SearchBuffers, rows: Int[Tensor, " sentences"], longest: Numbers, alpha: float
    ) -> None:
        """Copy selected rows into other buffers."""
        after.steps.take(before.steps, rows)
        if isinstance(after.choice, Beam) and isinstance(before.choice, Beam):
            after.choice.take(before.choice, rows)
            after.choice.divide(longest, alpha)
        elif isinstance(after.choice, Greedy) and isinstance(before.choice, Greedy):
            after.choice.take(before.choice, rows)

    def placed(self, rows: Numbers) -> Int[Tensor, " rows"]:
        """Copy row indices to the device."""
        return torch.from_numpy(rows).to(self.device)


def do_nothing() -> None:
    """Do nothing."""


def store_hypotheses(hypotheses: list[list[Hypothesis]], group: Numbers, results: SearchResults) -> None:
    """Write the hypotheses of a group's sentences to their places."""
    for sentence, best in zip(group.tolist(), results.collect(), strict=True):
        hypotheses[sentence] = best


def split_sentences(sentences: Numbers, most: int) -> list[Numbers]:
    """Split sentences into groups of about the same size, of at most `most` and at least one each."""
    return np.array_split(sentences, -(-len(sentences) // max(1, most))) if len(sentences) else []


class BufferCache:
    """Cache key and factory of the buffers of one search."""

    def __init__(self, searching: GPUSearch, memory: Tree, beams: int, best: int):
        self.searching, self.memory, self.beams, self.best = searching, memory, beams, best
        self.sizes = tuple((tuple(leaf.shape[1:]), leaf.dtype) for leaf in leaves(memory, Tensor))

    def board(self, sentences: int, space: int) -> SearchBuffers:
        """Buffers for so many sentences and steps, from the cache or newly allocated."""
        boards, engine, where = self.searching.boards, self.searching.engine, self.searching.device
        key = sentences, space, self.beams, self.best, self.sizes
        if key not in boards:
            choice: Greedy | Beam = Greedy(sentences, STEPS_PER_FETCH, where)
            if self.beams > 1:
                extensions = min(self.beams + 1, engine.vocabulary)
                choice = Beam(sentences, self.beams, self.best, extensions, space, STEPS_PER_FETCH, where)
            steps = engine.steps(self.memory, sentences, self.beams, space)
            boards[key] = SearchBuffers(steps, choice, where, self.searching.pool)
            boards[key].prepare()
        boards.move_to_end(key)
        while len(boards) > MAX_SHAPES:
            boards.popitem(last=False)
        return boards[key]
