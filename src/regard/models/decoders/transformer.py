"""The Transformer's decoder, reading the source by any attention."""

from functools import partial
from typing import NamedTuple, cast

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.heads import MultiHead
from regard.attention.positions import Positions
from regard.attention.positions.sinusoidal import Sinusoidal
from regard.attention.types import Attended, Encoded, Memory, State
from regard.models.asking import ask
from regard.models.attentions import Make, attention
from regard.models.decoders import Output, Remembered, spread
from regard.models.decoders.self_decoding import write_alone
from regard.models.embedding import Embedding
from regard.models.encoders import summary as summarise
from regard.models.residual import Residual, feedforward
from regard.models.types import Step

Data = Float[Tensor, "rows time size"]


class Carried(NamedTuple):
    """What goes from step to step: the tokens so far, as each layer's self-attention remembers them."""

    caches: tuple[Memory, ...]
    attentions: tuple[State, ...]
    """What each layer's attention to the source carries itself: () for most."""


class Asked(NamedTuple):
    """What a caller wants to know beside the output."""

    weights: bool
    statistics: tuple[str, ...]


class Layer(nn.Module):
    """Look at the target so far, then at the source, then think."""

    def __init__(
        self,
        size: int,
        source: int,
        heads: int,
        inner: int,
        attention: Make,
        norm: str,
        drop_residual: float,
        drop_attention: float,
    ):
        super().__init__()
        self.self = MultiHead(size, heads=heads, scope="causal", dropout=drop_attention)
        self.around_self = Residual(size, norm, drop_residual)
        self.cross = attention(size, source)
        if self.cross is not None:
            self.around_cross = Residual(size, norm, drop_residual)
            projects = isinstance(self.cross, MultiHead)
            self.fit = nn.Identity() if projects else nn.Linear(self.cross.size, size)
        self.feedforward = feedforward(size, inner)
        self.around_feedforward = Residual(size, norm, drop_residual)

    def forward(
        self, data: Data, cache: Memory, memory: Memory | None, state: State, asked: Asked
    ) -> tuple[Data, Memory, dict[str, Attended]]:
        """The data of the next layer, the cache with these tokens in it, and what each attention saw."""
        seen, looks = cache.keys.shape[2], dict[str, Attended]()
        entered = self.around_self.enter(data)
        cache = self.self.extend(cache if seen else None, entered)
        looks["self"] = self.self(entered, cache, weights=asked.weights, statistics=asked.statistics)
        data = self.around_self.leave(data, looks["self"].context)
        if self.cross is not None and memory is not None:
            entered = self.around_cross.enter(data)
            looks["cross"] = ask(self.cross, entered, memory, state, position=seen, **asked._asdict())
            data = self.around_cross.leave(data, self.fit(looks["cross"].context))
        data = self.around_feedforward.leave(data, self.feedforward(self.around_feedforward.enter(data)))
        return data, cache, looks


class Transformer(nn.Module):
    """Layers of causal self-attention, attention to the source, and feed-forward networks.

        x = layer_N(... layer_1(E[y] √d + PE)),  logits = E x + b

    Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762
    The source may be read by any attention; one without a projection of its own gets one behind it. Without attention the
    source in one vector is added to every input. A state holds the keys and values of the tokens so far, so that a step
    costs one token. Layer n is the submodule "n".
    """

    def __init__(
        self,
        vocabulary: int,
        source: int,
        size: int,
        *,
        embedding: int | None = None,
        layers: int = 1,
        heads: int = 4,
        inner: int | None = None,
        attention: Make = partial(attention, "transformer"),
        norm: str = "pre",
        positions: Positions | None = None,
        tie: bool = True,
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
        drop_attention: float = 0.0,
    ):
        super().__init__()
        embedding = embedding or size
        positions = Sinusoidal(embedding) if positions is None else positions
        self.embedding = Embedding(vocabulary, embedding, scaled=True, positions=positions, dropout=drop_embedding)
        self.widen = nn.Identity() if self.embedding.size == size else nn.Linear(self.embedding.size, size)
        self.names = [str(number) for number in range(layers)]
        options = attention, norm, drop_residual, drop_attention
        for name in self.names:
            self.add_module(name, Layer(size, source, heads, inner or 4 * size, *options))
        self.attends = any(layer.cross is not None for layer in self.layers)
        self.summary = None if self.attends else nn.Linear(source, size)
        self.norm = nn.LayerNorm(size) if norm == "pre" else nn.Identity()
        self.output = Output(size, vocabulary, embedding, tie)
        self.size = size

    @property
    def layers(self) -> list[Layer]:
        """The layers, from the lowest up."""
        return [cast(Layer, self.get_submodule(name)) for name in self.names]

    def remember(self, encoded: Encoded) -> Remembered:
        """The source as each layer's attention reads it, or in one vector."""
        if self.summary is not None:
            return Remembered({}, summary=self.summary(summarise(encoded)))
        crosses = {f"decoder.{name}.cross": layer.cross for name, layer in zip(self.names, self.layers, strict=True)}
        return Remembered({name: cross.remember(encoded) for name, cross in crosses.items() if cross is not None})

    def start(self, memory: Remembered) -> Carried:
        """The state before the first token: empty caches."""
        memories = list(memory.memories.values())
        like = memory.summary if self.summary is not None else memories[0].values
        caches, attentions = [], []
        for number, layer in enumerate(self.layers):
            nothing = like.new_empty(len(like), layer.self.key_heads, 0, layer.self.head)
            caches.append(Memory(nothing, nothing))
            attentions.append(() if layer.cross is None else layer.cross.start(memories[number]))
        return Carried(tuple(caches), tuple(attentions))

    def step(self, token: Int[Tensor, " rows"], memory: Remembered, state: Carried, *, weights: bool = False) -> Step:
        """One token for each row, and what follows from it."""
        step = self.write(token[:, None], memory, state, weights=weights)
        return step._replace(output=step.output[:, 0])

    def forward(
        self,
        target: Int[Tensor, "batch time"],
        memory: Remembered,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
        own: float = 0.0,
        draws: Float[Tensor, "batch time"] | None = None,
    ) -> Step:
        """All positions at once; with `own` above 0, each token is the decoder's own with that probability."""
        state = self.start(memory)
        if own:
            return write_alone(self, target, memory, own=own, draws=draws, weights=weights, statistics=statistics)
        return self.write(target, memory, state, weights=weights, statistics=statistics)

    def write(
        self,
        tokens: Int[Tensor, "rows time"],
        memory: Remembered,
        state: Carried,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
    ) -> Step:
        """Go on from a state by any number of tokens."""
        data = self.widen(self.embedding(tokens, state.caches[0].keys.shape[2]))
        if self.summary is not None:
            data = data + spread(memory.summary, len(tokens))[:, None]
        caches, attended = [], dict[str, Attended]()
        for number, layer in enumerate(self.layers):
            path = f"decoder.{number}"
            kept = memory.memories.get(f"{path}.cross")
            asked = Asked(weights, statistics)
            data, cache, looks = layer(data, state.caches[number], kept, state.attentions[number], asked)
            caches.append(cache)
            attended |= {f"{path}.{name}": look for name, look in looks.items()}
        carried = tuple(attended[name].state for name in memory.memories) or state.attentions
        output = self.output(self.norm(data), self.embedding.table.weight)
        return Step(output, Carried(tuple(caches), carried), attended)
