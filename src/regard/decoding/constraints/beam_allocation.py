"""Dynamic beam allocation: divides the beam between hypotheses by how many constraint tokens they have met.

Without it, hypotheses that have not yet written an unlikely phrase would crowd out those that have. A bank holds the
hypotheses that have written equally many tokens of their phrases; each gets an equal part of the beam.
Post and Vilar 2018, "dynamic beam allocation", https://arxiv.org/abs/1804.06609

Unlike the paper, a target ends only in the last bank, among its `beams` best; and where tokens are parts of words, a phrase
goes on by whichever token is likeliest among those that bring it nearer to its end.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.special_tokens import EOS
from regard.decoding.beam_state import ActiveBeam, Candidates, Extensions
from regard.decoding.constraints.state import ConstraintState, Guard
from regard.decoding.logprobs import IMPOSSIBLE
from regard.decoding.topk import select_highest


def extend_banks(
    active: ActiveBeam, logs: Float[Tensor, "rows vocabulary"], guard: Guard, watched: ConstraintState, beams: int
) -> Extensions:
    """Extensions of a step: each row's best tokens, and for each phrase the best token that continues it."""
    values, tokens = suggest_tokens(logs, guard, watched, beams)
    remaining = guard.include.count_remaining(guard.include.move(watched.include, tokens)).cpu()
    values, tokens = values.cpu(), tokens.cpu()
    sentences, width = active.scores.shape
    totals = (active.scores.reshape(-1, 1) + values.double()).view(sentences, -1)
    scores, order = totals.sort(dim=1, descending=True, stable=True)
    rows = order // values.shape[1] + torch.arange(sentences)[:, None] * width
    values, tokens, remaining = (tensor.reshape(sentences, -1).gather(1, order) for tensor in (values, tokens, remaining))
    ahead = Candidates(scores, values, tokens, rows)
    ended = ahead.ending & ((remaining == 0).cumsum(1) <= beams)
    return Extensions(
        ahead, ended, select_candidates(ahead, remaining, [guard.needed[sentence] for sentence in active.sentences], beams)
    )


def suggest_tokens(
    logs: Float[Tensor, "rows vocabulary"], guard: Guard, watched: ConstraintState, beams: int
) -> tuple[Float[Tensor, "rows tokens"], Int[Tensor, "rows tokens"]]:
    """Candidate tokens of each row, each once: duplicates are impossible."""
    best, likely = select_highest(logs, beams + 1)
    value, token = guard.include.advancing(watched.include, logs)
    values, tokens = torch.cat([best, value], 1), torch.cat([likely, token], 1)
    same = tokens[:, :, None] == tokens[:, None, :]
    again = same.tril(-1).any(-1)
    return values.masked_fill(again, IMPOSSIBLE), tokens


def select_candidates(
    ahead: Candidates, remaining: Int[Tensor, "sentences candidates"], needed: Sequence[int], beams: int
) -> Candidates:
    """Candidates that go on, best first: of each bank as many as it is allotted."""
    going = (ahead.tokens != EOS) & (ahead.scores > IMPOSSIBLE)
    chosen = torch.zeros(len(needed), beams, dtype=torch.long)
    alive = torch.zeros(len(needed), beams, dtype=torch.bool)
    for sentence, most in enumerate(needed):
        places = going[sentence].nonzero()[:, 0].tolist()
        banks = [most - count for count in remaining[sentence][going[sentence]].tolist()]
        room = allocate_banks([banks.count(bank) for bank in range(most + 1)], beams)
        for count, place in enumerate(_take_first(places, banks, room)):
            chosen[sentence, count], alive[sentence, count] = place, True
    scores, logprobs, tokens, rows = (tensor.gather(1, chosen) for tensor in ahead)
    return Candidates(scores.masked_fill(~alive, IMPOSSIBLE), logprobs, tokens, rows)


def allocate_banks(counts: Sequence[int], beams: int) -> list[int]:
    """Number of candidates that each bank keeps, the one with the fewest constraint tokens met first.

    Equal parts, the rest to the last bank; what a bank cannot fill goes to the furthest bank that can.
    """
    part = beams // len(counts)
    sizes = [min(part, count) for count in counts]
    sizes[-1] = min(part + beams % len(counts), counts[-1])
    for bank in reversed(range(len(counts))):
        sizes[bank] += min(beams - sum(sizes), counts[bank] - sizes[bank])
    return sizes


def _take_first(places: Sequence[int], banks: Sequence[int], room: list[int]) -> list[int]:
    """Places of the first few of each bank, in order."""
    taken = []
    for place, bank in zip(places, banks, strict=True):
        if room[bank] > 0:
            room[bank] -= 1
            taken.append(place)
    return taken
