"""Hotwords: a bonus for phrases such as names, which a search then prefers where they are nearly as likely."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.data.special_tokens import BOS
from regard.decoding.constraints.phrases import build_automaton
from regard.decoding.constraints.spelling import Letters, Spelling

States = Int[Tensor, "rows phrases"]


class Hotwords:
    """Bonus for each letter of a phrase that continues a match; it is taken back where the match breaks off.

        s(c | g) = max_p depth_p(g c) - max_p depth_p(g)

    depth_p is the number of letters of phrase p that were matched last (Knuth, Morris and Pratt 1977); a complete phrase
    keeps its bonus. Letters are those of a `Spelling`: a phrase is matched however it is segmented into tokens. Shallow
    fusion with phrases: Zhao et al. 2019, https://www.isca-archive.org/interspeech_2019/zhao19d_interspeech.html
    """

    rewards = True

    def __init__(
        self, phrases: Sequence[Letters], spelling: Spelling, weight: float = 1.0, device: torch.device | str = "cpu"
    ):
        if not phrases or not all(phrases):
            raise ValueError("hotwords need one phrase or more, each of at least one letter")
        self.weight = weight
        tables, reached, base, firsts = list[Tensor](), list[int](), list[int](), list[int]()
        for phrase in phrases:
            table = build_automaton(phrase, spelling)
            table[-1] = table[0]  # a complete phrase may begin again
            firsts.append(len(reached))
            tables.append(table + len(reached))
            reached += range(len(phrase) + 1)
            base += [*range(len(phrase)), 0]
        self.table = torch.cat(tables).long().to(device)
        self.firsts = torch.tensor(firsts, device=device)
        self.reached, self.base = (torch.tensor(depths, dtype=torch.float32, device=device) for depths in (reached, base))

    def start(self, sentences: Sequence[int]) -> States:
        """Nothing is matched yet."""
        return self.firsts.repeat(len(sentences), 1)

    def after(self, state: States, tokens: Int[Tensor, " rows"]) -> States:
        """Matches after one more token of each row."""
        return torch.where((tokens == BOS)[:, None], state, self.table[state, tokens[:, None]])

    def score(self, state: States) -> Float[Tensor, "rows vocabulary"]:
        """Bonus of each token as the next."""
        deepest = self.reached[self.table[state[:, 0]]]
        for column in state.T[1:]:
            deepest = torch.maximum(deepest, self.reached[self.table[column]])
        return deepest - self.base[state].max(1, keepdim=True).values
