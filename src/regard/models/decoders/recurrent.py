"""The recurrent decoder, with attention before the step (Bahdanau), after it (Luong), or none."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.stateful import join
from regard.attention.types import Attended, Encoded, Memory
from regard.models.attention_factory import Make, attention
from regard.models.decoders import Remembered, recurrent_fused, shown, spread
from regard.models.decoders.base import Writing
from regard.models.encoders import summary as summarise
from regard.models.layers.attention_output import Look, outcome
from regard.models.layers.beam_attention import ask, report
from regard.models.layers.cells import STATES, Repeated, Stack, layer, run, stacked
from regard.models.layers.deferred_grad import Deferred
from regard.models.layers.dropout import Drop
from regard.models.layers.embedding import Embedding
from regard.models.output_heads import Make as MakeOutput
from regard.models.output_heads.projection import Projection
from regard.models.types import Step

NAME = "decoder.cross"
SPREAD = 0.5
"""Within ± what the embeddings of tokens begin. From ±0.1 the states after any two tokens are much the same: an attention
that is asked the same again and again learns to prefer places, whoever asks, and many trainings never get over that."""

Data = Float[Tensor, "rows time _"]


class Carried(NamedTuple):
    """What goes from step to step, one row for each beam of each source."""

    hidden: tuple[Float[Tensor, "rows layers size"], ...]
    fed: Any
    """The attentional vector of the step before; () without input feeding."""
    attention: Any
    position: Int[Tensor, " rows"]
    masks: tuple[Any, ...]
    """One mask of dropout for all steps: on the embedding, into each layer but the first, on the read-out."""


class Found(NamedTuple):
    """What each position can say something from."""

    top: Data
    """The highest cell after the step."""
    readout: Data
    attended: Attended | None = None


class Recurrent(Writing):
    """Write with recurrent cells that look at the source once for each token.

        bahdanau:  c_t = attend(h_{t-1}),  h_t = cell([y_t; c_t], h_{t-1}),        r_t = tanh(W [h_t; c_t; y_t])
        luong:     h_t = cell([y_t; r_{t-1}], h_{t-1}),  c_t = attend(h_t),        r_t = tanh(W [h_t; c_t])
        none:      h_t = cell([y_t; s], h_{t-1}),                                  r_t = tanh(W [h_t; s; y_t])

    with y_t the embedding of the token before, s the source in one vector, and logits from r_t.
    Bahdanau, Cho and Bengio 2015, appendix A.2.2, https://arxiv.org/abs/1409.0473 (a tanh in place of its maxout);
    Luong, Pham and Manning 2015, eq. 5 and section 3.3, https://arxiv.org/abs/1508.04025; Cho et al. 2014, section 2.2,
    https://arxiv.org/abs/1406.1078. Luong's r_{t-1} is input feeding and may be switched off; all cells then run as one
    fused call, and the attention is asked once. `summary` says what a decoder without attention gets of s: the "initial"
    state, s at "every_step", or "both". `bridge` learns the initial states from s; without it they are the encoder's own.
    With an attention they may be `initial="zeros"`: the source is then known through the attention alone, which may read it
    while it still arrives.
    An attention may have a say in the output (models/layers/attention_output.py), and `counterparts` tell one that points
    what it copies; the cells are fed its context all the same.
    """

    def __init__(
        self,
        vocabulary: int,
        source: int,
        size: int,
        *,
        embedding: int | None = None,
        layers: int = 1,
        cell: str = "lstm",
        attention: Make = partial(attention, "additive"),
        order: str = "luong",
        input_feeding: bool = True,
        initial: str = "source",
        summary: str = "both",
        bridge: bool = True,
        output: MakeOutput = Projection,
        tie: bool = True,
        counterparts: Sequence[int] | None = None,
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
        variational: bool = False,
    ):
        super().__init__()
        check(order, summary, initial)
        embedding = embedding or size
        self.cross = attention(size, source)
        self.before = order == "bahdanau"
        self.feeds = self.cross is not None and (self.before or input_feeding)
        self.starts = initial == "source" if self.cross is not None else summary != "every_step"
        self.sees = self.cross is None and summary != "initial"
        context = self.cross.size if self.cross is not None else source * self.sees
        fed = (context if self.before else size) * self.feeds + source * self.sees
        self.embedding = Embedding(vocabulary, embedding, spread=SPREAD, dropout=drop_embedding, variational=variational)
        self.layers = nn.ModuleList(layer(cell, size if number else embedding + fed, size) for number in range(layers))
        self.bridge = nn.Linear(source, STATES[cell] * layers * size) if bridge and self.starts else None
        token = 0 if self.cross is not None and not self.before else embedding  # the token before, unless as Luong does it
        self.readout = nn.Linear(size + context + token, size)
        self.output = output(size, vocabulary, embedding, tie)
        sizes = {"state": size, "token": embedding, "vocabulary": vocabulary}
        self.outcome = outcome(self.cross, **sizes, counterparts=counterparts)
        self.drop = Drop(drop_residual, variational)
        self.size, self.states = size, STATES[cell]

    def remember(self, encoded: Encoded) -> Remembered:
        """The attention's memory, the initial states and the summary, as far as each is used."""
        vector = summarise(encoded)
        if not self.starts:
            initial = (vector.new_zeros(vector.shape[0], len(self.layers), self.size),) * self.states
        elif self.bridge is None:
            initial = self.fitting(encoded.final)
        else:
            states = torch.tanh(self.bridge(vector)).view(vector.shape[0], self.states, len(self.layers), self.size)
            initial = states.unbind(1)
        memories = {} if self.cross is None else {NAME: self.cross.remember(encoded)}
        tokens = () if self.outcome is None else self.outcome.tokens(encoded)
        return Remembered(memories, initial, vector if self.sees else (), tokens)

    def fitting(self, final: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The encoder's last states, or an error where these cells cannot start from them."""
        needed = [(len(self.layers), self.size)] * self.states
        given = [tuple(each.shape[1:]) for each in final]
        if given != needed:
            raise ValueError(f"the cells start from states of (layers, size) {needed}, got {given}; build with bridge=True")
        return final

    def start(self, memory: Remembered) -> Carried:
        """The state before the first token."""
        first = memory.initial[0]
        masks = [
            self.embedding.drop.draw(first, self.embedding.size),
            *(self.drop.draw(first, self.size) for _ in self.layers),
        ]
        return Carried(
            memory.initial,
            first.new_zeros(first.shape[0], self.size) if self.feeds and not self.before else (),
            () if self.cross is None else self.cross.start(memory.memories[NAME]),
            torch.zeros(first.shape[0], dtype=torch.long, device=first.device),
            tuple(masks),
        )

    def write(
        self,
        tokens: Int[Tensor, "rows time"],
        memory: Remembered,
        state: Carried,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
        project: bool = True,
    ) -> Step:
        """Go on from a state by any number of tokens: what can be done for all of them at once is."""
        embedded = self.embedding(tokens, mask=state.masks[0])
        if self.sees:
            vector = spread(memory.summary, tokens.shape[0])[:, None].expand(-1, tokens.shape[1], -1)
            embedded = torch.cat((embedded, vector), dim=-1)
        needed = weights or self.outcome is not None
        found, state = self.find(embedded, memory, state, weights=needed, statistics=statistics)
        state = state._replace(position=state.position + tokens.shape[1])
        output = self.say(found, embedded, memory, state.masks[-1], project)
        return Step(output, state, shown({} if found.attended is None else {NAME: found.attended}, weights))

    def say(self, found: Found, embedded: Data, memory: Remembered, mask: Tensor | None, project: bool) -> Data:
        """The output of every position, from its read-out or from what the attention makes of it."""

        def logits(readout: Data) -> Data:
            data = self.drop(readout, mask)
            said: Data = self.output(data, self.embedding.table.weight) if project else data
            return said

        if self.cross is None or self.outcome is None or found.attended is None:
            return logits(found.readout)
        look = Look(self.cross, memory.memories[NAME], found.attended, found.top, embedded, memory.tokens)
        token = (embedded,) if self.before else ()
        said: Data = self.outcome(look, lambda c, h, *y: logits(self.read(h, c, *y)), found.top, *token)
        return said

    def find(
        self, embedded: Data, memory: Remembered, state: Carried, *, weights: bool, statistics: tuple[str, ...]
    ) -> tuple[Found, Carried]:
        """The read-out of every position, by the shortest way that this decoder allows."""
        if self.cross is None:
            data, state = self.at_once(embedded, state)
            return Found(data, self.read(data, embedded)), state
        kept = memory.memories[NAME]
        if not self.feeds:
            data, after = self.at_once(embedded, state)
            asked: dict[str, Any] = {"position": state.position, "weights": weights, "statistics": statistics}
            attended = ask(self.cross, data, kept, state.attention, **asked)
            return Found(data, self.read(data, attended.context), attended), after._replace(attention=attended.state)
        way = self.bahdanau if self.before else self.luong
        top, readout, attended, after = way(self.cross, embedded, kept, state, weights or bool(statistics))
        attended = report(self.cross, attended, kept.keep, weights=weights, statistics=statistics)
        return Found(top, readout, attended), after

    def at_once(self, embedded: Data, state: Carried) -> tuple[Data, Carried]:
        """Nothing that is found returns into the cells, so each layer is one fused call."""
        data, lasts = embedded, []
        for number, rnn in enumerate(self.layers):
            data = self.drop(data, state.masks[number]) if number else data
            begin = tuple(each[None, :, number].contiguous() for each in state.hidden)
            data, last = run(rnn, data, begin if len(begin) > 1 else begin[0])
            lasts.append(tuple(each[0] for each in last) if len(begin) > 1 else (last[0],))
        return data, state._replace(hidden=stacked(lasts))

    def bahdanau(
        self, cross: Attention, embedded: Data, memory: Memory, state: Carried, weights: bool
    ) -> tuple[Data, Data, Attended, Carried]:
        """Look with the state before the step; what is found enters the step."""
        time = embedded.shape[1]
        stack = Stack(self.layers, embedded, state.hidden, self.drop, state.masks)
        looks = Deferred(cross, memory, state.attention, time, state.position, weights)
        tops = [stack.advance(place, looks(place, stack.top)) for place in range(time)]
        attended, top = join(looks.found), torch.stack(tops, dim=1)
        readout = self.read(top, attended.context, embedded)
        return top, readout, attended, state._replace(hidden=stack.hidden, attention=looks.state)

    def luong(
        self, cross: Attention, embedded: Data, memory: Memory, state: Carried, weights: bool
    ) -> tuple[Data, Data, Attended, Carried]:
        """Look with the state after the step; the read-out enters the next step."""
        if recurrent_fused.covers(self.layers, cross, embedded, memory, weights) is None:
            return self.luong_at_once(cross, embedded, memory, state)
        rows, time, _ = embedded.shape
        stack = Stack(self.layers, embedded, state.hidden, self.drop, state.masks)
        reads = Repeated(self.readout.bias.expand(time, rows, -1), self.readout.weight)
        looks = Deferred(cross, memory, state.attention, time, state.position, weights)
        tops, found, fed = [], [], state.fed
        for place in range(time):
            tops.append(stack.advance(place, fed))
            fed = torch.tanh(reads(place, tops[-1], looks(place, tops[-1])))
            found.append(fed)
        state = state._replace(hidden=stack.hidden, attention=looks.state, fed=fed)
        return torch.stack(tops, dim=1), torch.stack(found, dim=1), join(looks.found), state

    def luong_at_once(
        self, cross: Attention, embedded: Data, memory: Memory, state: Carried
    ) -> tuple[Data, Data, Attended, Carried]:
        """The same loop as one operation, on a GPU."""
        hidden, cell = (each[:, 0] for each in state.hidden)
        found = recurrent_fused.loop(self.layers[0], self.readout, cross, embedded, memory, state.fed, hidden, cell)
        top, context, read = (each.transpose(0, 1) for each in found[:3])
        state = state._replace(hidden=(top[:, -1:], found.cell[:, None]), fed=read[:, -1])
        return top, read, Attended(context), state

    def read(self, *parts: Data) -> Data:
        """tanh(W [h; c; y]), for all positions at once."""
        return torch.tanh(self.readout(torch.cat(parts, dim=-1)))


def check(order: str, summary: str, initial: str) -> None:
    """Raise for an order, a summary or a beginning that does not exist."""
    if order not in ("bahdanau", "luong"):
        raise ValueError(f"order needs to be 'bahdanau' or 'luong', got {order!r}")
    if summary not in ("initial", "every_step", "both"):
        raise ValueError(f"summary needs to be 'initial', 'every_step' or 'both', got {summary!r}")
    if initial not in ("source", "zeros"):
        raise ValueError(f"initial needs to be 'source' or 'zeros', got {initial!r}")
