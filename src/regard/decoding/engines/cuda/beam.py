"""Beam search on the GPU, in tensors of fixed shape and address; equals `decoding/engines/beam.py`."""

import math
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.special_tokens import BOS, EOS
from regard.decoding.engines.cuda.topk import prepare_top_tokens, select_top_tokens
from regard.decoding.engines.cuda.types import Counter, Project
from regard.decoding.engines.types import Numbers
from regard.kernels.runtime import capability

SCORE, LOGPROB, TOKEN, ROW = range(4)


class Beam:
    """Beam state on the device: active hypotheses, the scores of the best finished ones, and the last steps' candidates.

    Hypotheses grow the same whatever has finished, so only the scores of finished ones are kept, which decide when a
    sentence is done. All else is reconstructed from the candidates afterwards (results.py). A sentence that is done goes on,
    and its results are ignored. `decoding/beam.py` explains when it is done. `each` is the number of extensions per
    hypothesis: `beams` + 1, one of which may be EOS.
    """

    def __init__(self, sentences: int, beams: int, best: int, extensions: int, room: int, turns: int, device: torch.device):
        self.width, self.best, self.extensions = beams, best, extensions
        exact: dict[str, Any] = {"dtype": torch.float64, "device": device}
        self.tokens: Int[Tensor, " rows"] = torch.full((sentences * beams,), BOS, device=device)
        self.parents: Int[Tensor, "sentences beams"] = torch.zeros(sentences, beams, dtype=torch.long, device=device)
        self.scores = torch.zeros(sentences, beams, **exact)
        self.ended = torch.zeros(sentences, beams, **exact)
        """Normalised scores of the best finished hypotheses; -infinity where there are fewer."""
        self.shares, self.longest = torch.ones(room, **exact), torch.ones(sentences, 1, **exact)
        """Length penalty divisors at each length, and at the length limit of each sentence."""
        self.divided: tuple[float, bytes] | None = None
        self.rows = torch.arange(beams, **exact).repeat_interleave(extensions).expand(sentences, -1).contiguous()
        self.results = torch.zeros(turns, 8 * beams * sentences + sentences, **exact)
        """Results of every step, which the host fetches as one tensor: candidates, and the flags of done sentences."""
        self.figures = self.results[:, sentences:].view(turns, 4, sentences, 2 * beams)
        """Score, log-probability, token and row of the candidates, best first."""
        self.over = self.results[:, :sentences]
        """Flag of a sentence that is done: 1 from that step on."""

    def begin(self, longest: Numbers, alpha: float) -> None:
        """Reset to the initial beam: one hypothesis per sentence. `longest` holds the length limits."""
        self.tokens.fill_(BOS)
        self.parents.zero_()
        self.scores.fill_(-math.inf)[:, 0] = 0.0
        self.ended.fill_(-math.inf)
        self.divide(longest, alpha)

    def divide(self, longest: Numbers, alpha: float) -> None:
        """Set the length penalty divisors, unless they are unchanged."""
        if self.divided == (divided := (alpha, longest.tobytes())):
            return
        self.divided = divided
        shares = [length**alpha for length in range(1, len(self.shares) + 1)]
        self.shares.copy_(torch.tensor(shares, dtype=torch.float64))
        most = [[max(value, 1) ** alpha] for value in longest.tolist()]
        self.longest.copy_(torch.tensor(most, dtype=torch.float64))

    def take(self, other: "Beam", rows: Int[Tensor, " sentences"]) -> None:
        """Copy selected sentences of another beam."""
        self.tokens.copy_(other.tokens.view(-1, self.width)[rows].flatten())
        for mine, theirs in ((self.parents, other.parents), (self.scores, other.scores), (self.ended, other.ended)):
            mine.copy_(theirs[rows])

    def choose(self, hidden: Float[Tensor, "rows size"], project: Project, place: Counter, turn: Counter) -> None:
        """Choose the next token of each hypothesis."""
        values, tokens = select_top_tokens(hidden, project, self.extensions)
        if self.fits(hidden.device):
            load_kernel().launch(self, values, tokens, place, turn)
        else:
            self.turn(values, tokens, place, turn)

    def fits(self, device: torch.device) -> bool:
        """Return True if one Triton kernel covers a step of the beam."""
        some = device.type == "cuda" and capability.find_obstacle(device) is None
        return some and load_kernel() is not None and self.width <= load_kernel().MOST

    def prepare(self, logits: Float[Tensor, "1 vocabulary"], place: Counter, turn: Counter) -> None:
        """Launch the kernels of `choose`, so that they are compiled (kernels/runtime/compile.py)."""
        values, tokens = prepare_top_tokens(logits, len(self.tokens), self.extensions)
        if self.fits(logits.device):
            load_kernel().launch(self, values, tokens, place, turn)

    def turn(
        self, values: Float[Tensor, "rows each"], tokens: Int[Tensor, "rows each"], place: Counter, turn: Counter
    ) -> None:
        """Beam step from the top-k tokens of each row; of equally good extensions the leftmost comes first."""
        sentences, beams = self.scores.shape
        totals = (self.scores.view(-1, 1) + values).view(sentences, -1)
        order = totals.sort(dim=1, descending=True, stable=True).indices[:, : 2 * beams]
        every = torch.stack((totals, values.view(sentences, -1).double(), tokens.view(sentences, -1).double(), self.rows))
        ahead = every.gather(2, order.expand(4, -1, -1))
        self.figures.index_copy_(0, turn, ahead[None])
        grows = ahead[TOKEN] != EOS
        going = grows.byte().sort(dim=1, descending=True, stable=True).indices[:, :beams]  # at most one of each row is EOS
        grown = ahead.gather(2, going.expand(4, -1, -1))
        self.tokens.copy_(grown[TOKEN].view(-1))
        self.parents.copy_(grown[ROW])
        self.scores.copy_(grown[SCORE])
        self.end(ahead[SCORE, :, :beams], grows[:, :beams], place, turn)

    def end(
        self,
        scores: Float[Tensor, "sentences beams"],
        grows: Bool[Tensor, "sentences beams"],
        place: Counter,
        turn: Counter,
    ) -> None:
        """Record the scores of finished hypotheses, and whether the best active one can still beat them."""
        share = self.shares.index_select(0, place)
        worth = (scores / share).masked_fill_(grows, -math.inf)
        best = torch.cat((self.ended, worth), dim=1).topk(self.width).values
        self.ended.copy_(best)
        growing = self.scores[:, 0]
        behind = growing / share <= best[:, -1]
        hopeless = growing / self.longest[:, 0] <= best[:, self.best - 1]
        self.over.index_copy_(0, turn, (behind | hopeless).to(self.over.dtype)[None])

    def fetch(self, turns: int) -> tuple[Float[Tensor, "turns 4 sentences ways"], Float[Tensor, "turns sentences"]]:
        """Fetch the results of some steps to the host: candidates, and flags of done sentences."""
        results, sentences = self.results[:turns].to("cpu", copy=True), len(self.scores)
        return results[:, sentences:].view(turns, 4, sentences, -1), results[:, :sentences]


@cache
def load_kernel() -> Any:
    """Load the module of the fused kernel; None without Triton."""
    return None if find_spec("triton") is None else import_module("regard.decoding.engines.cuda.beam_triton")
