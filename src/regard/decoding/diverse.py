"""Diverse beam search: groups of hypotheses, each penalised for tokens that earlier groups choose.

    choose by  log P(y_1 ... y_t | X) - diversity * (number of hypotheses of earlier groups with y_t at this step)

Vijayakumar et al. 2018, "Hamming diversity", https://arxiv.org/abs/1610.02424
The penalty only steers the choice: the reported scores are the model's own. A group is done as a beam of its own is, and no
longer counts; EOS is not penalised.
"""

from collections.abc import Callable, Hashable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.data.special_tokens import EOS
from regard.decoding.backpointers import Ending
from regard.decoding.beam_state import ActiveBeam, Candidates, Extensions
from regard.decoding.logprobs import IMPOSSIBLE


def extend_groups(
    active: ActiveBeam, logs: Float[Tensor, "rows vocabulary"], beams: int, groups: int, diversity: float
) -> Extensions:
    """Extensions of a step: one group after the other, `beams` hypotheses in all."""
    width, written = beams // groups, torch.zeros(len(active.sentences), logs.shape[1], device=logs.device)
    steps = []
    for group in range(groups):
        mine = active if active.groups is None else _mask_other_groups(active, group)
        fined = logs - diversity * written.repeat_interleave(active.width, 0)
        fined[:, EOS] = logs[:, EOS]
        ahead = _restore_scores(mine.select_candidates(fined, width), mine, logs)
        grown = ahead.growing(width)
        steps.append((ahead, ahead.ending & (torch.arange(ahead.scores.shape[1]) < width), grown))
        alive = (grown.scores > IMPOSSIBLE).to(written)
        written.scatter_add_(1, grown.tokens.to(logs.device), alive)
    aheads, ended, growns = zip(*steps, strict=True)
    ahead, grown = _concatenate(aheads), _concatenate(growns)
    return Extensions(ahead, torch.cat(ended, 1), grown, _number_groups(aheads), _number_groups(growns))


def drop_finished_groups(extensions: Extensions, over: Callable[[int, int, float], bool]) -> tuple[Extensions, list[int]]:
    """Extensions of the groups that are not done, dead ones last, and the sentences that have such a group.

    `over(place, group, score)` is True if a group is done whose best active hypothesis has this score.
    """
    assert extensions.grown_groups is not None, "a search by groups"
    grown, numbers = extensions.grown, extensions.grown_groups
    scores = grown.scores.clone()
    for place in range(len(scores)):
        for group in range(int(numbers.max()) + 1):
            mine = numbers[place] == group
            if over(place, group, float(scores[place, mine].max())):
                scores[place, mine] = IMPOSSIBLE
    order = (scores == IMPOSSIBLE).int().argsort(dim=1, stable=True)
    ordered = Candidates(*(tensor.gather(1, order) for tensor in grown._replace(scores=scores)))
    staying = (scores > IMPOSSIBLE).any(1).nonzero()[:, 0].tolist()
    return extensions._replace(grown=ordered, grown_groups=numbers.gather(1, order)), staying


def merge_groups(pools: Sequence[Sequence[Ending]], best: int, target: Callable[[Ending], Hashable]) -> list[Ending]:
    """Merge groups: the best of each, then the second of each, up to `best` different ones, sorted."""
    distinct: dict[Hashable, Ending] = {}
    for rank in range(max(map(len, pools), default=0)):
        row = [pool[rank] for pool in pools if rank < len(pool)]
        for ending in sorted(row, key=_rank):
            if len(distinct) < best:
                distinct.setdefault(target(ending), ending)
    return sorted(distinct.values(), key=_rank)


def _rank(ending: Ending) -> tuple[bool, float]:
    return not ending.finished, -ending.normalised


def _mask_other_groups(active: ActiveBeam, group: int) -> ActiveBeam:
    """Mask the rows of other groups."""
    assert active.groups is not None, "a search by groups"
    return active._replace(scores=active.scores.masked_fill(active.groups != group, IMPOSSIBLE))


def _restore_scores(fined: Candidates, active: ActiveBeam, logs: Float[Tensor, "rows vocabulary"]) -> Candidates:
    """Restore the model's own scores of candidates, in the same order."""
    logprobs = logs[fined.rows.to(logs.device), fined.tokens.to(logs.device)].cpu()
    scores = active.scores.reshape(-1)[fined.rows] + logprobs.double()
    return fined._replace(scores=scores.masked_fill(fined.scores == IMPOSSIBLE, IMPOSSIBLE), logprobs=logprobs)


def _concatenate(groups: Sequence[Candidates]) -> Candidates:
    return Candidates(*(torch.cat(tensor, 1) for tensor in zip(*groups, strict=True)))


def _number_groups(groups: Sequence[Candidates]) -> Tensor:
    """Group of each column."""
    return torch.cat([torch.full(group.tokens.shape, number) for number, group in enumerate(groups)], 1)
