"""Constraint state of a search: prefixes, required and forbidden phrases, and n-gram blocking."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.data.special_tokens import EOS, UNK
from regard.decoding.constraints import prefix as prefixes
from regard.decoding.constraints.language import Language
from regard.decoding.constraints.phrases import Phrases
from regard.decoding.constraints.prefix import Prefix
from regard.decoding.constraints.spelling import Letters, Spelling
from regard.decoding.logprobs import IMPOSSIBLE


class Constraints(NamedTuple):
    """Constraints of one target: prefix, required and forbidden phrases in the letters of a spelling."""

    prefix: Prefix = Prefix()
    include: tuple[Letters, ...] = ()
    exclude: tuple[Letters, ...] = ()


class ConstraintState(NamedTuple):
    """Constraint state of each row: a tree of tensors, rows first, that is selected as a decoder's state is."""

    prefix: Int[Tensor, " rows"]
    include: Int[Tensor, "rows included"]
    exclude: Int[Tensor, "rows excluded"]
    written: Int[Tensor, "rows time"]
    language: Int[Tensor, " rows"] | None = None
    """State of the language that all targets are in."""


class Guard:
    """Constraints of every sentence of a batch, with n-gram blocking of a given size (0: none).

    It only masks tokens and does not renormalise: the log-probability of the output stays the model's own. A prefix may
    repeat itself; what comes after it may repeat neither it nor itself. Words that a model copies from outside the
    vocabulary are unknown words to a prefix and to phrases, and themselves to n-grams.
    """

    def __init__(
        self,
        constraints: Sequence[Constraints],
        spelling: Spelling,
        block: int = 0,
        device: torch.device | str = "cpu",
        language: Language | None = None,
    ):
        if block < 0:
            raise ValueError(f"block needs to be 0 or more tokens, got {block}; 0 lets a target repeat itself")
        if any(not phrase for constraint in constraints for phrase in (*constraint.include, *constraint.exclude)):
            raise ValueError("a phrase needs at least one token, got one of none; leave it out")
        self.block, self.vocabulary, self.language = block, len(spelling.letters), language
        self.include = Phrases([constraint.include for constraint in constraints], spelling, device)
        self.exclude = Phrases([constraint.exclude for constraint in constraints], spelling, device)
        table, firsts = prefixes.build_table([constraint.prefix for constraint in constraints], self.vocabulary)
        self.prefix = table.to(device)
        self.firsts = torch.tensor(
            [firsts[constraint.prefix] for constraint in constraints], dtype=torch.long, device=device
        )
        self.needed = self.include.count_remaining(self.include.firsts).tolist()
        """Number of tokens of the required phrases, sentence by sentence."""
        self.room = [
            len(constraint.prefix.states) + needed for constraint, needed in zip(constraints, self.needed, strict=True)
        ]
        """Number of tokens that suffice for the prefix and all required phrases."""

    @property
    def includes(self) -> bool:
        """True if any sentence has a required phrase: only beam search finds such targets."""
        return any(self.needed)

    def fit(self, most: Sequence[int]) -> None:
        """Raise where the length limit is too short for the prefix and required phrases."""
        if len(most) != len(self.room):
            raise ValueError(f"a guard needs constraints for each of {len(most)} sentences, got {len(self.room)}")
        for sentence, (least, limit) in enumerate(zip(self.room, most, strict=True)):
            if limit < least:
                raise ValueError(
                    f"length needs to be {least} or more for all that sentence {sentence} must hold, got {limit}; "
                    "allow a longer target, or ask for less"
                )

    def start(self, sentences: Sequence[int]) -> ConstraintState:
        """Initial state: one row for each of these sentences."""
        where = self.firsts.device
        rows = torch.tensor(sentences, dtype=torch.long, device=where)
        written = torch.zeros(len(sentences), 0, dtype=torch.long, device=where)
        language = None if self.language is None else torch.zeros_like(rows)
        return ConstraintState(self.firsts[rows], self.include.firsts[rows], self.exclude.firsts[rows], written, language)

    def after(self, watched: ConstraintState, tokens: Int[Tensor, " rows"]) -> ConstraintState:
        """Advance each row by a token. BOS changes nothing; a row without allowed tokens may hold anything."""
        written = torch.cat([watched.written, tokens[:, None]], 1) if self.block else watched.written
        tokens = tokens.masked_fill(tokens >= self.vocabulary, UNK)
        prefix = self.prefix[watched.prefix, tokens].long().clamp(min=0)
        phrases = self.include.move(watched.include, tokens), self.exclude.move(watched.exclude, tokens)
        return ConstraintState(prefix, *phrases, written, self.advance_language(watched.language, tokens))

    def advance_language(self, states: Int[Tensor, " rows"] | None, tokens: Int[Tensor, " rows"]) -> Tensor | None:
        """States of the language after a token of each row."""
        if self.language is None or states is None:
            return None
        pairs = zip(states.tolist(), tokens.tolist(), strict=True)
        return torch.tensor([self.language.after(state, token) for state, token in pairs], device=states.device)

    def mask_language(self, states: Int[Tensor, " rows"], columns: int) -> Bool[Tensor, "rows columns"]:
        """Mask of the tokens that leave the language; a copied word, but not UNK itself, is what UNK stands for."""
        assert self.language is not None, "states are those of a language"
        forbidden = torch.ones(len(states), columns, dtype=torch.bool)
        for row, state in enumerate(states.tolist()):
            allowed = self.language.allowed(state)
            forbidden[row, list(allowed)] = False
            forbidden[row, self.vocabulary :] = UNK not in allowed
        if columns > self.vocabulary:
            forbidden[:, UNK] = True
        return forbidden.to(states.device)

    def forbid(self, watched: ConstraintState, logs: Float[Tensor, "rows vocabulary"]) -> Float[Tensor, "rows vocabulary"]:
        """Mask the tokens that a row may not write next."""
        forbidden = (self.prefix[watched.prefix] < 0) | self.exclude.completing(watched.exclude)
        if (slots := logs.shape[1] - self.vocabulary) > 0:
            forbidden = torch.cat((forbidden, forbidden[:, UNK, None].expand(-1, slots)), dim=1)
        if self.block:
            free = (watched.prefix == 0)[:, None]
            forbidden = forbidden | (mask_repeats(watched.written, self.block, logs.shape[1]) & free)
        if watched.language is not None:
            forbidden = forbidden | self.mask_language(watched.language, logs.shape[1])
        forbidden[:, EOS] |= self.count_remaining(watched) > 0
        return logs.masked_fill(forbidden, IMPOSSIBLE)

    def count_remaining(self, watched: ConstraintState) -> Int[Tensor, " rows"]:
        """Number of tokens that suffice for the phrases that each row still requires."""
        return self.include.count_remaining(watched.include)

    def met(self, watched: ConstraintState) -> Bool[Tensor, " rows"]:
        """Mask of the rows that satisfy prefix and required phrases."""
        return (self.count_remaining(watched) == 0) & (watched.prefix == 0)


def unsatisfiable_error(length: int) -> ValueError:
    """Error for a sentence that cannot satisfy its constraints."""
    return ValueError(
        f"no target keeps to the constraints: at step {length} nothing is possible that they allow; a phrase to exclude or "
        "an n-gram that may not be repeated stands in the way of the prefix or of a phrase to include, or the model gives "
        "what is asked for no probability at all; ask for less"
    )


def mask_repeats(written: Int[Tensor, "rows time"], size: int, vocabulary: int) -> Bool[Tensor, "rows vocabulary"]:
    """Mask of the tokens that would repeat an n-gram of `size` tokens.

    Paulus, Xiong and Socher 2018, https://arxiv.org/abs/1705.04304, for groups of three.
    """
    rows, time = written.shape
    mask = torch.zeros(rows, vocabulary, dtype=torch.bool, device=written.device)
    if time < size:
        return mask
    groups = written.unfold(1, size, 1)  # (rows, groups, size)
    same = (groups[..., :-1] == written[:, None, time - size + 1 :]).all(-1)
    row, place = same.nonzero(as_tuple=True)
    mask[row, groups[row, place, -1]] = True
    return mask
