"""Small decoders of our own, so that search is tested against the interface and not against a model."""

import torch
from torch import Tensor, nn

from regard.attention import Attended, Memory, MultiHead
from regard.attention.types import Encoded
from regard.data.batch import pad
from regard.data.special_tokens import BOS, EOS
from regard.models.types import Step
from regard.tree import Tree, select

VOCABULARY = 12


class Table(nn.Module):
    """The next token hangs on the last one and on the source: P(y | previous) = softmax(table[source, previous])."""

    def __init__(self, tables: Tensor):
        super().__init__()
        self.memory = tables  # (sources, previous, next)
        self.rows: list[int] = []
        self.sources: list[int] = []

    def remember(self, encoded: Encoded) -> Tree:
        return encoded.data

    def start(self, memory: Tree) -> Tree:
        return ()

    def step(self, token: Tensor, memory: Tensor, state: Tree, *, weights: bool = False) -> Step:
        self.rows.append(len(token))
        self.sources.append(len(memory))
        beams = len(token) // len(memory)
        assert beams * len(memory) == len(token), "rows are sources x beams"
        output = memory.repeat_interleave(beams, 0)[torch.arange(len(token)), token]
        return Step(output, state, {})

    def forward(self, target: Tensor, memory: Tensor, *, weights: bool = False, statistics: tuple[str, ...] = ()) -> Step:
        return Step(memory.gather(1, target[..., None].expand(-1, -1, memory.shape[-1])), (), {})


def table(chances: dict[int, dict[int, float]], size: int = 8, sources: int = 1) -> Table:
    """A table from probabilities; what is not named is impossible."""
    logits = torch.full((sources, size, size), float("-inf"))
    logits[..., EOS] = 0.0
    for previous, nexts in chances.items():
        logits[:, previous] = float("-inf")
        for token, chance in nexts.items():
            logits[:, previous, token] = torch.tensor(chance).log()
    return Table(logits)


def random_table(sources: int, size: int, sharpness: float = 1.0, seed: int = 0) -> Table:
    return Table(sharpness * torch.randn(sources, size, size, generator=torch.Generator().manual_seed(seed)))


class Recurrent(nn.Module):
    """A GRU that attends to the source, with its beams on the axis of queries; `step` and `forward` share no loop."""

    def __init__(self, size: int = 16, vocabulary: int = VOCABULARY, sharpness: float = 4.0, name: str = "attention"):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, size)
        self.cell = nn.GRU(size, size, batch_first=True)
        self.attention = MultiHead(size, heads=2)
        self.output = nn.Linear(2 * size, vocabulary)
        self.sharpness, self.name = sharpness, name
        self.rows: list[int] = []
        self.sources: list[int] = []

    def remember(self, encoded: Encoded) -> Tree:
        mean = encoded.data.masked_fill(~encoded.keep[..., None], 0.0).sum(1) / encoded.keep.sum(1, keepdim=True)
        return {"first": mean, "source": self.attention.remember(encoded)}

    def start(self, memory: Tree) -> Tree:
        return {"hidden": memory["first"]}

    def step(self, token: Tensor, memory: Tree, state: Tree, *, weights: bool = False) -> Step:
        rows, sources = len(token), len(memory["first"])
        self.rows.append(rows)
        self.sources.append(sources)
        _, hidden = self.cell(self.embed(token)[:, None], state["hidden"][None])
        query = hidden[0].view(sources, rows // sources, -1)
        attended = self.attention(query, memory["source"], weights=weights)
        output = self.output(torch.cat([hidden[0], attended.context.flatten(0, 1)], -1))
        return Step(self.sharpness * output, {"hidden": hidden[0]}, {self.name: attended})

    def forward(self, target: Tensor, memory: Tree, *, weights: bool = False, statistics: tuple[str, ...] = ()) -> Step:
        hidden, last = self.cell(self.embed(target), memory["first"][None].contiguous())
        attended = self.attention(hidden, memory["source"], weights=weights, statistics=statistics)
        output = self.output(torch.cat([hidden, attended.context], -1))
        return Step(self.sharpness * output, {"hidden": last[0]}, {self.name: attended})


class Transformer(nn.Module):
    """One layer with a cache: `decoder.0.self` over the target in the state, `decoder.0.cross` over the shared memory."""

    def __init__(self, size: int = 16, vocabulary: int = VOCABULARY, sharpness: float = 4.0, longest: int = 64):
        super().__init__()
        self.embed, self.places = nn.Embedding(vocabulary, size), nn.Embedding(longest, size)
        self.own = MultiHead(size, heads=2, scope="causal")
        self.cross = MultiHead(size, heads=2)
        self.output = nn.Linear(size, vocabulary)
        self.sharpness = sharpness

    def remember(self, encoded: Encoded) -> Tree:
        return (self.cross.remember(encoded),)

    def start(self, memory: Tree) -> Tree:
        keys = memory[0].keys
        empty = keys.new_zeros(len(keys), self.own.heads, 0, self.own.head)
        return {"cache": Memory(empty, empty), "time": torch.zeros(len(keys), dtype=torch.long, device=keys.device)}

    def step(self, token: Tensor, memory: Tree, state: Tree, *, weights: bool = False) -> Step:
        sources = len(memory[0].keys)
        given = (self.embed(token) + self.places(state["time"]))[:, None]
        cache = self.own.extend(state["cache"], given)
        own = self.own(given, cache, weights=weights)
        middle = (given + own.context).view(sources, -1, given.shape[-1])
        cross = self.cross(middle, memory[0], weights=weights)
        output = self.output((middle + cross.context).flatten(0, 1))
        return Step(self.sharpness * output, {"cache": cache, "time": state["time"] + 1}, self.both(own, cross))

    def forward(self, target: Tensor, memory: Tree, *, weights: bool = False, statistics: tuple[str, ...] = ()) -> Step:
        given = self.embed(target) + self.places(torch.arange(target.shape[1]))
        own = self.own(given, self.own.remember(given), weights=weights)
        middle = given + own.context
        cross = self.cross(middle, memory[0], weights=weights)
        return Step(self.sharpness * self.output(middle + cross.context), (), self.both(own, cross))

    def both(self, own: Attended, cross: Attended) -> dict[str, Attended]:
        return {"decoder.0.self": own, "decoder.0.cross": cross}


def sources(count: int, size: int = 16, seed: int = 0) -> Encoded:
    """Random sources of 1 to 9 positions, each the same whatever the others are."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 10, (count,), generator=generator).tolist()
    return together([torch.randn(length, size, generator=generator) for length in lengths])


def together(each: list[Tensor]) -> Encoded:
    """Sources of different lengths in one batch, with NaN as padding: nobody may look there."""
    keep = pad([[1] * len(one) for one in each]).keep
    data = torch.full((*keep.shape, each[0].shape[-1]), float("nan"))
    data[keep] = torch.cat(each)
    return Encoded(data, keep)


def apart(encoded: Encoded) -> list[Tensor]:
    """The sources one by one."""
    return [data[keep] for data, keep in zip(encoded.data, encoded.keep, strict=True)]


@torch.no_grad()
def by_hand(decoder: nn.Module, memory: Tree, sentence: int, tokens: list[int]) -> list[float]:
    """The log-probability of each token of a target, by feeding it to `step` alone."""
    one = select(memory, torch.tensor([sentence]))
    state, logprobs = decoder.start(one), []
    for previous, token in zip([BOS, *tokens], tokens, strict=False):
        step = decoder.step(torch.tensor([previous]), one, state)
        logprobs.append(float(step.output.float().log_softmax(-1)[0, token]))
        state = step.state
    return logprobs
