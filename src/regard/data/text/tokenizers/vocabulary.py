"""Vocabulary: a number for every token."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources.abc import Traversable
from pathlib import Path

from regard.data.special_tokens import NAMES, UNK

FORMAT = 1


@dataclass(frozen=True)
class Vocabulary:
    """Tokens <-> numbers: the four special ones first, then `tokens` in their order; what is not among them is UNK."""

    tokens: tuple[str, ...]

    @classmethod
    def count(cls, counts: Mapping[str, int], size: int | None = None, min_frequency: int = 1) -> "Vocabulary":
        """The most frequent tokens, equally frequent ones in the order of their code points.

        A token rarer than `min_frequency` is left out; `size` is the maximum number, the four special ones included.
        """
        if size is not None and size <= len(NAMES):
            raise ValueError(
                f"a vocabulary needs a size of at least {len(NAMES) + 1}, {len(NAMES)} of it special, got {size}"
            )
        often = [token for token, number in counts.items() if number >= min_frequency]
        often.sort(key=lambda token: (-counts[token], token))
        return cls(tuple(often[: None if size is None else size - len(NAMES)]))

    def __len__(self) -> int:
        return len(NAMES) + len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._numbers

    def number(self, token: str) -> int:
        """The number of one token."""
        return self._numbers.get(token, UNK)

    def numbers(self, tokens: Iterable[str]) -> list[int]:
        """The numbers of many."""
        find = self._numbers.get
        return [find(token, UNK) for token in tokens]

    def token(self, number: int) -> str:
        """The token of a number, or the visible name of a special one."""
        if not 0 <= number < len(self):
            raise ValueError(f"token numbers go from 0 to {len(self) - 1}, got {number}")
        return NAMES[number] if number < len(NAMES) else self.tokens[number - len(NAMES)]

    def save(self, path: Path) -> None:
        """Write it as one JSON file."""
        table = {"format": FORMAT, "special": NAMES, "tokens": self.tokens}
        path.write_text(json.dumps(table, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Traversable) -> "Vocabulary":
        """Read what `save` wrote."""
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} needs to be a vocabulary in JSON, and is not: {error}") from error
        if not isinstance(table, dict) or table.get("format") != FORMAT or tuple(table.get("special") or ()) != NAMES:
            raise ValueError(f"{path} needs to be a vocabulary of format {FORMAT} with {', '.join(NAMES)} in front")
        tokens = table.get("tokens")
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise ValueError(f"{path} needs a list of tokens, each a text")
        if len(set(tokens)) != len(tokens):
            raise ValueError(f"{path} needs each token once, and has {len(tokens) - len(set(tokens))} twice")
        return cls(tuple(tokens))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {token: number for number, token in enumerate(self.tokens, start=len(NAMES))}
