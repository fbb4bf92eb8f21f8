"""Phrase constraints: an automaton per phrase tracks how many of its tokens each hypothesis has matched.

A phrase of n letters is an automaton of n + 1 states: the state is the number of its first letters that were matched last. A
mismatch leads back to the longest prefix that the last letters still match, so an unfinished phrase restarts by itself; the
last state is never left (Knuth, Morris and Pratt 1977, https://doi.org/10.1137/0206024).
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.special_tokens import UNK
from regard.decoding.constraints.spelling import NO_LETTER, Letters, Spelling
from regard.decoding.logprobs import IMPOSSIBLE

UNREACHABLE = 1 << 30
"""Number of tokens needed where no tokens suffice."""


class Phrases:
    """Automata of the phrases of every sentence in one table; sentences with fewer phrases are padded with state 0.

    `after[state, token]` is the next state, `needed[state]` the fewest tokens that complete the phrase from there, and
    `whole[state]` the fewest that write all of it.
    """

    def __init__(self, sentences: Sequence[Sequence[Letters]], spelling: Spelling, device: torch.device | str = "cpu"):
        distinct = list(dict.fromkeys(phrase for sentence in sentences for phrase in sentence))
        tables = [build_automaton(phrase, spelling) for phrase in distinct]
        counts = [count_tokens_left(table) for table in tables]
        firsts, after = {}, [torch.zeros(1, len(spelling.letters), dtype=torch.int32)]
        for phrase, table in zip(distinct, tables, strict=True):
            firsts[phrase] = 1 + sum(map(len, after[1:]))
            after.append(table + firsts[phrase])
        most = max(map(len, sentences), default=0)
        nobody = torch.zeros(1, dtype=torch.long)
        rows = [[firsts[phrase] for phrase in phrases] + [0] * (most - len(phrases)) for phrases in sentences]
        self.firsts = torch.tensor(rows, dtype=torch.long, device=device).view(len(sentences), most)
        self.after = torch.cat(after).to(device)
        self.needed = torch.cat([nobody, *counts]).to(device)
        self.whole = torch.cat([nobody, *(count[:1].expand_as(count) for count in counts)]).to(device)

    def move(
        self, states: Int[Tensor, "rows phrases"], tokens: Int[Tensor, "rows *more"]
    ) -> Int[Tensor, "rows *more phrases"]:
        """States after a token of each row, or after each of several; a copied word that is not listed counts as UNK."""
        tokens = tokens.masked_fill(tokens >= self.after.shape[1], UNK)
        shape = (len(states), *[1] * (tokens.ndim - 1), states.shape[1])
        return self.after[states.view(shape), tokens[..., None]].long()

    def count_remaining(self, states: Int[Tensor, "*rows phrases"]) -> Int[Tensor, "*rows"]:
        """Number of tokens that complete every phrase: all of each, minus those matched of the one furthest on.

        Only one phrase is ever in progress, as in Post and Vilar 2018: continuing one restarts the others.
        """
        needed, whole = self.needed[states], self.whole[states].masked_fill(self.needed[states] == 0, 0)
        if states.shape[-1] == 0:
            return whole.sum(-1)
        return whole.sum(-1) - (whole - needed).clamp(min=0).amax(-1)

    def completing(self, states: Int[Tensor, "rows phrases"]) -> Bool[Tensor, "rows vocabulary"]:
        """Mask of the tokens that would complete a phrase."""
        completed = torch.zeros(len(states), self.after.shape[1], dtype=torch.bool, device=states.device)
        for column in states.T:
            completed |= (self.needed[self.after[column].long()] == 0) & (self.needed[column] > 0)[:, None]
        return completed

    def advancing(
        self, states: Int[Tensor, "rows phrases"], logs: Float[Tensor, "rows vocabulary"]
    ) -> tuple[Float[Tensor, "rows phrases"], Int[Tensor, "rows phrases"]]:
        """Likeliest token, for each phrase, that advances it; -infinity where there is none."""
        values, tokens = [], []
        logs = logs[:, : self.after.shape[1]]
        for column in states.T:
            nearer = self.needed[self.after[column].long()] < self.needed[column][:, None]
            best = logs.masked_fill(~nearer, IMPOSSIBLE).max(-1)
            values.append(best.values)
            tokens.append(best.indices)
        return torch.stack(values, 1), torch.stack(tokens, 1)


def build_automaton(phrase: Letters, spelling: Spelling) -> Int[Tensor, "states vocabulary"]:
    """Transition table of a phrase's automaton: the state after each token from each state."""
    by_letter = torch.zeros(len(phrase) + 1, spelling.size, dtype=torch.int32)
    back = 0  # failure state: the longest proper prefix that is also a suffix
    for state, letter in enumerate(phrase):
        by_letter[state] = by_letter[back]
        back = int(by_letter[back, letter]) if state else 0
        by_letter[state, letter] = state + 1
    by_letter[-1] = len(phrase)
    states = torch.arange(len(phrase) + 1, dtype=torch.int32)[:, None].expand(-1, len(spelling.letters))
    for letter in spelling.letters.T:
        states = torch.where(letter == NO_LETTER, states, by_letter[states.long(), letter.clamp(min=0)])
    return states


def count_tokens_left(table: Int[Tensor, "states vocabulary"]) -> Int[Tensor, " states"]:
    """Distance in tokens from each state to the last; NEVER where it cannot be reached."""
    distances = torch.full((len(table),), UNREACHABLE)
    distances[-1] = 0
    while True:
        nearer = torch.minimum(distances, 1 + distances[table.long()].amin(1))
        if nearer.equal(distances):
            return distances
        distances = nearer
