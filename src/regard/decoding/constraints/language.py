"""Languages of constrained decoding: the prefix tree of known targets, and a grammar that a file writes down.

A language answers for each prefix which tokens may follow. States are numbers, found when they are first reached, so that a
search carries them as any other state. A word that a model copies from its source counts as a constant of the language.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from regard.data.special_tokens import BOS, EOS, UNK
from regard.errors import DataError

CONSTANT = -2
"""Symbol of a grammar or an edge of a tree that any constant follows: a copied word, or one of a fixed set."""
Encode = Callable[[str], Sequence[int]]


class Language(ABC):
    """Set of targets, whose prefixes have numbers: 0 is the empty one."""

    def __init__(self, constants: Iterable[int] = ()):
        self.constants = frozenset(constants)
        self.nexts: dict[tuple[int, int], int] = {}
        self.masks: dict[int, frozenset[int]] = {}

    def after(self, state: int, token: int) -> int:
        """State after a token; BOS, which comes before any target, changes nothing, and what is not allowed neither."""
        if token == BOS:
            return state
        if (state, token) not in self.nexts:
            self.nexts[state, token] = self.advance(state, token)
        return self.nexts[state, token]

    def allowed(self, state: int) -> frozenset[int]:
        """Tokens that may follow; UNK stands for any copied word. Where nothing may, the target ends."""
        if state not in self.masks:
            symbols = self.list_symbols(state)
            constants = self.constants | {UNK} if CONSTANT in symbols else frozenset[int]()
            self.masks[state] = (symbols - {CONSTANT}) | constants or frozenset({EOS})
        return self.masks[state]

    def matches(self, symbol: int, token: int) -> bool:
        """True if a token is one that a symbol stands for."""
        return token == symbol or (symbol == CONSTANT and (token == UNK or token in self.constants))

    @abstractmethod
    def advance(self, state: int, token: int) -> int:
        """State after a token of a target."""

    @abstractmethod
    def list_symbols(self, state: int) -> frozenset[int]:
        """Tokens, and CONSTANT, that may follow a prefix."""


class PrefixTree(Language):
    """Prefixes of known targets, in which CONSTANT stands for a word that was copied from a source.

    A state is a set of nodes: a constant may also be a word that the tree knows.
    """

    def __init__(self, targets: Iterable[Sequence[int]], constants: Iterable[int] = ()):
        super().__init__(constants)
        self.nodes: list[dict[int, int]] = [{}]
        for target in targets:
            node = 0
            for symbol in target:
                if symbol not in self.nodes[node]:
                    self.nodes[node][symbol] = len(self.nodes)
                    self.nodes.append({})
                node = self.nodes[node][symbol]
        self.states: list[frozenset[int]] = [frozenset({0})]
        self.numbers = {self.states[0]: 0}

    def advance(self, state: int, token: int) -> int:
        edges = (edge for node in self.states[state] for edge in self.nodes[node].items())
        reached = frozenset(node for symbol, node in edges if self.matches(symbol, token))
        if reached not in self.numbers:
            self.numbers[reached] = len(self.states)
            self.states.append(reached)
        return self.numbers[reached]

    def list_symbols(self, state: int) -> frozenset[int]:
        return frozenset(symbol for node in self.states[state] for symbol in self.nodes[node])


class Item(NamedTuple):
    """Item of an Earley chart: a rule's symbols, how many of them are read, and where it began."""

    name: str
    symbols: tuple[str | int, ...]
    read: int
    origin: int

    @property
    def following(self) -> str | int | None:
        """Symbol that is read next; None at the end of the rule."""
        return self.symbols[self.read] if self.read < len(self.symbols) else None

    def move(self) -> "Item":
        """Item with one more symbol read."""
        return self._replace(read=self.read + 1)


class Grammar(Language):
    """Context-free grammar, whose prefixes are parsed token by token (Earley 1970, https://doi.org/10.1145/362007.362035).

        query = "SELECT" column "FROM" table [ "WHERE" test { "AND" test } ]
        test = column "=" '"' CONSTANT { CONSTANT } '"'
        column = "name" | "population"

    A rule stands on a line; further lines of it begin with a space. The first rule is that of a target. Texts in quotes are
    written as the model's tokens. [ ] is optional, { } any number of times, ( ) a group, | separates alternatives. CONSTANT
    is a word that the model copies from its source, or one of the tokens that `constants` has.
    """

    def __init__(self, rules: Mapping[str, Sequence[tuple[str | int, ...]]], constants: Iterable[int] = ()):
        super().__init__(constants)
        self.rules, self.first = rules, next(iter(rules))
        begin = {Item(self.first, symbols, 0, 0) for symbols in rules[self.first]}
        self.charts: list[tuple[frozenset[Item], ...]] = [(self.complete((), begin),)]

    def advance(self, state: int, token: int) -> int:
        charts = self.charts[state]
        items = {
            item.move() for item in charts[-1] if isinstance(item.following, int) and self.matches(item.following, token)
        }
        self.charts.append((*charts, self.complete(charts, items)))
        return len(self.charts) - 1

    def list_symbols(self, state: int) -> frozenset[int]:
        last = self.charts[state][-1]
        whole = any(item.following is None and item.name == self.first and item.origin == 0 for item in last)
        return frozenset({item.following for item in last if isinstance(item.following, int)} | ({EOS} if whole else set()))

    def complete(self, charts: Sequence[frozenset[Item]], begin: set[Item]) -> frozenset[Item]:
        """Chart of a position: predictions and completions that follow from what was read."""
        place, items, queue, empty = len(charts), set(begin), list(begin), set[str]()
        while queue:
            item = queue.pop()
            symbol, more = item.following, set[Item]()
            if isinstance(symbol, str):
                more = {Item(symbol, symbols, 0, place) for symbols in self.rules[symbol]}
                more |= {item.move()} if symbol in empty else set()
            elif symbol is None:
                if item.origin == place:  # it has read nothing, and items that come later may wait for it too
                    empty.add(item.name)
                waiting = items if item.origin == place else charts[item.origin]
                more = {other.move() for other in waiting if other.following == item.name}
            queue += [other for other in more if other not in items]
            items |= more
        return frozenset(items)


TOKEN = re.compile(r"\s*(\"[^\"]*\"|'[^']*'|[A-Za-z_][\w-]*|[\[\]{}()|])")


def parse_grammar(text: str, where: str, encode: Encode, constants: Iterable[int] = ()) -> Grammar:
    """Grammar of a file's text; `encode` gives the tokens of a quoted text."""
    rules: dict[str, list[tuple[str | int, ...]]] = {}
    for number, line in join_rules(text):
        name, equals, body = line.partition("=")
        if not equals or not name.strip().isidentifier():
            raise DataError(f"{where}:{number} needs a rule as NAME = SYMBOLS, got {line[:60]!r}")
        rules.setdefault(name.strip(), [])  # the first rule of a file is the first that is told
        reader = RuleReader(split_symbols(body, f"{where}:{number}"), f"{where}:{number}", encode, rules)
        rules[name.strip()] += reader.read(name.strip())
    if not rules:
        raise DataError(f"{where} needs a rule, as NAME = SYMBOLS, and has none")
    used = {symbol for symbols in rules.values() for one in symbols for symbol in one if isinstance(symbol, str)}
    if unknown := sorted(used - rules.keys()):
        raise DataError(f"{where} has no rule for {unknown[0]}; write one, or put a text in quotes")
    return Grammar(rules, constants)


def join_rules(text: str) -> list[tuple[int, str]]:
    """Rules of a file with the number of their first line; a line that begins with a space goes on with the one before."""
    rules: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line[0].isspace() and rules:
            rules[-1] = rules[-1][0], f"{rules[-1][1]} {line.strip()}"
        else:
            rules.append((number, line))
    return rules


def split_symbols(body: str, where: str) -> list[str]:
    """Symbols of a rule's right-hand side."""
    symbols, place = list[str](), 0
    while body[place:].strip():
        match = TOKEN.match(body, place)
        if match is None:
            raise DataError(f"{where} has {body[place:].strip()[:20]!r}, which is no text in quotes, name or bracket")
        symbols.append(match[1])
        place = match.end()
    return symbols


class RuleReader:
    """Reader of one rule: brackets become rules of their own, called NAME.1 and so on."""

    def __init__(self, symbols: list[str], where: str, encode: Encode, rules: dict[str, list[tuple[str | int, ...]]]):
        self.symbols, self.where, self.encode, self.rules, self.place = symbols, where, encode, rules, 0

    def read(self, name: str) -> list[tuple[str | int, ...]]:
        """Alternatives of the whole rule."""
        alternatives = self.read_alternatives(name)
        if self.place < len(self.symbols):
            raise DataError(f"{self.where} closes a bracket that it has not opened: {self.symbols[self.place]}")
        return alternatives

    def read_alternatives(self, name: str) -> list[tuple[str | int, ...]]:
        """Alternatives up to a closing bracket or the end."""
        alternatives: list[tuple[str | int, ...]] = [()]
        while self.place < len(self.symbols) and self.symbols[self.place] not in ("]", "}", ")"):
            symbol = self.symbols[self.place]
            self.place += 1
            if symbol == "|":
                alternatives.append(())
            else:
                alternatives[-1] += tuple(self.read_symbol(symbol, name))
        return alternatives

    def read_symbol(self, symbol: str, name: str) -> Sequence[str | int]:
        """Symbols of a text, a name or a bracket."""
        if symbol[0] in "\"'":
            tokens = list(self.encode(symbol[1:-1]))
            if not tokens or UNK in tokens:
                raise DataError(f"{self.where} has the text {symbol}, which the model cannot write")
            return tokens
        if symbol == "CONSTANT":
            return [CONSTANT]
        if symbol not in ("[", "{", "("):
            return [symbol]
        inner = f"{name}.{len(self.rules) + 1}"
        self.rules[inner] = []
        alternatives = self.read_alternatives(inner)
        closing = {"[": "]", "{": "}", "(": ")"}[symbol]
        if self.place >= len(self.symbols) or self.symbols[self.place] != closing:
            raise DataError(f"{self.where} opens {symbol} and does not close it")
        self.place += 1
        if symbol == "{":
            alternatives = [(), *((*alternative, inner) for alternative in alternatives)]
        elif symbol == "[":
            alternatives = [(), *alternatives]
        self.rules[inner] += alternatives
        return [inner]
