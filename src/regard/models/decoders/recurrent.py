"""Recurrent decoder with attention before the step (Bahdanau), after it (Luong), or none."""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from regard.attention.module import Attention
from regard.attention.stateful import concatenate_steps
from regard.attention.types import Attended, Encoded, Memory
from regard.data.feedback import NumberFeedback, TokenFeedback
from regard.data.modality import Feedback
from regard.models.attention_factory import AttentionFactory, build_attention
from regard.models.decoders import DecoderMemory, drop_weights, recurrent_fused, repeat_for_beams
from regard.models.decoders.base import BaseDecoder, build_output, check_outcome
from regard.models.encoders import find_summary as summarise
from regard.models.layers.attention_output import LastAttention, OutputParts, build_attention_output
from regard.models.layers.beam_attention import attend_beams, measure_weights
from regard.models.layers.cells import STATES, LayerStack, RepeatedLinear, build_cells, run_cells, stack_states
from regard.models.layers.deferred_grad import DeferredAttention
from regard.models.layers.dropout import Drop
from regard.models.layers.embedding import Embedding
from regard.models.output_heads import OutputFactory as MakeOutput
from regard.models.output_heads.projection import Projection
from regard.models.types import Step

CROSS_NAME = "decoder.cross"
EMBEDDING_BOUND = 0.5
"""Bound of the uniform initialisation of token embeddings. With ±0.1 the states after any two tokens are almost equal: an
attention whose queries barely differ learns to prefer positions, whatever the query, and many training runs never
recover."""

Data = Float[Tensor, "rows time _"]


class RecurrentState(NamedTuple):
    """Decoder state carried from step to step, one row per beam of each source."""

    hidden: tuple[Float[Tensor, "rows layers size"], ...]
    fed: Any
    """Attentional vector of the previous step; () without input feeding."""
    attention: Any
    position: Int[Tensor, " rows"]
    masks: tuple[Any, ...]
    """Variational dropout masks shared by all steps: on the embedding, into each layer but the first, on the readout."""


class StepStates(NamedTuple):
    """Decoder states from which the logits of each position are computed."""

    top: Data
    """Hidden state of the top layer after the step."""
    readout: Data
    attended: Attended | None = None


class Recurrent(BaseDecoder):
    """Recurrent decoder whose cells attend to the source once per token.

        bahdanau:  c_t = attend(h_{t-1}),  h_t = cell([y_t; c_t], h_{t-1}),        r_t = tanh(W [h_t; c_t; y_t])
        luong:     h_t = cell([y_t; r_{t-1}], h_{t-1}),  c_t = attend(h_t),        r_t = tanh(W [h_t; c_t])
        none:      h_t = cell([y_t; s], h_{t-1}),                                  r_t = tanh(W [h_t; s; y_t])

    with y_t the embedding of the previous token, s the summary vector of the source, and logits from r_t.
    Bahdanau, Cho and Bengio 2015, appendix A.2.2, https://arxiv.org/abs/1409.0473 (a tanh of h_t in place of its maxout of
    h_{t-1}); Luong, Pham and Manning 2015, eq. 5 and section 3.3, https://arxiv.org/abs/1508.04025; Cho et al. 2014, section
    2.2, https://arxiv.org/abs/1406.1078. Luong's r_{t-1} is input feeding and may be switched off; all cells then run as one
    fused call, with one call of the attention. `summary` says how a decoder without attention receives s: as the "initial"
    state, at "every_step", or "both". `bridge` learns the initial states from s; without it they are the encoder's final
    states. With attention they may be `initial="zeros"`: the source is then read through attention alone, which also works
    on a source that is still arriving (streaming).
    An attention may take part in the output (models/layers/attention_output.py), and `counterparts` tell a pointing one what
    it copies; the cells are fed its context all the same.
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
        attention: AttentionFactory = partial(build_attention, "additive"),
        order: str = "luong",
        input_feeding: bool = True,
        initial: str = "source",
        summary: str = "both",
        bridge: bool = True,
        output: MakeOutput = Projection,
        tie: bool = True,
        counterparts: Sequence[int] | None = None,
        copy: bool = False,
        feedback: Feedback = TokenFeedback(),
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
        variational: bool = False,
    ):
        super().__init__()
        check_options(order, summary, initial)
        self.feedback, numbers = feedback, isinstance(feedback, NumberFeedback)
        embedding = embedding or size
        self.cross = attention(size, source)
        self.before = order == "bahdanau"
        self.feeds = self.cross is not None and (self.before or input_feeding)
        self.starts = initial == "source" if self.cross is not None else summary != "every_step"
        self.sees = self.cross is None and summary != "initial"
        context = self.cross.size if self.cross is not None else source * self.sees
        fed = (context if self.before else size) * self.feeds + source * self.sees
        self.embedding = Embedding(
            vocabulary,
            embedding,
            spread=EMBEDDING_BOUND,
            dropout=drop_embedding,
            variational=variational,
            numbers=numbers,
        )
        self.layers = nn.ModuleList(build_cells(cell, size if number else embedding + fed, size) for number in range(layers))
        self.bridge = nn.Linear(source, STATES[cell] * layers * size) if bridge and self.starts else None
        token = 0 if self.cross is not None and not self.before else embedding  # previous token, except in Luong's order
        self.readout = nn.Linear(size + context + token, size)
        self.output = build_output(feedback, output, size, vocabulary, embedding, tie)
        sizes = {"state": size, "token": embedding, "vocabulary": vocabulary}
        self.outcome = build_attention_output(self.cross, **sizes, counterparts=counterparts, copy=copy)
        check_outcome(feedback, self.outcome)
        self.drop = Drop(drop_residual, variational)
        self.size, self.states = size, STATES[cell]

    def remember(self, encoded: Encoded) -> DecoderMemory:
        """Memory of the attention, initial states and summary vector, each where it is used."""
        vector = summarise(encoded)
        if not self.starts:
            initial = (vector.new_zeros(vector.shape[0], len(self.layers), self.size),) * self.states
        elif self.bridge is None:
            initial = self.fitting(encoded.final)
        else:
            states = torch.tanh(self.bridge(vector)).view(vector.shape[0], self.states, len(self.layers), self.size)
            initial = states.unbind(1)
        memories = {} if self.cross is None else {CROSS_NAME: self.cross.remember(encoded)}
        tokens = () if self.outcome is None else self.outcome.tokens(encoded)
        return DecoderMemory(memories, initial, vector if self.sees else (), tokens)

    def fitting(self, final: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Final states of the encoder; raises where the cells cannot start from them."""
        needed = [(len(self.layers), self.size)] * self.states
        shapes = [tuple(state.shape[1:]) for state in final]
        if shapes != needed:
            raise ValueError(f"the cells start from states of (layers, size) {needed}, got {shapes}; build with bridge=True")
        return final

    def start(self, memory: DecoderMemory) -> RecurrentState:
        """Initial state, before the first token."""
        first = memory.initial[0]
        masks = [
            self.embedding.drop.draw(first, self.embedding.size),
            *(self.drop.draw(first, self.size) for _ in self.layers),
        ]
        return RecurrentState(
            memory.initial,
            first.new_zeros(first.shape[0], self.size) if self.feeds and not self.before else (),
            () if self.cross is None else self.cross.start(memory.memories[CROSS_NAME]),
            torch.zeros(first.shape[0], dtype=torch.long, device=first.device),
            tuple(masks),
        )

    def write(
        self,
        tokens: Shaped[Tensor, "rows time *channels"],
        memory: DecoderMemory,
        state: RecurrentState,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
        project: bool = True,
    ) -> Step:
        """Advance a state by any number of tokens, all at once where the recurrence allows."""
        embedded = self.embedding(tokens, mask=state.masks[0])
        if self.sees:
            vector = repeat_for_beams(memory.summary, tokens.shape[0])[:, None].expand(-1, tokens.shape[1], -1)
            embedded = torch.cat((embedded, vector), dim=-1)
        mask, needed, attended = state.masks[-1], weights or self.outcome is not None, None
        if self.cross is None:
            top, after = self.run_layers(embedded, state)
            readout = self.read(top, embedded)
        elif not self.feeds:
            top, after = self.run_layers(embedded, state)
            attended = attend_beams(
                self.cross,
                top,
                memory.memories[CROSS_NAME],
                state.attention,
                position=state.position,
                weights=needed,
                statistics=statistics,
            )
            readout, after = self.read(top, attended.context), after._replace(attention=attended.state)
        else:
            unroll, cross_memory = self.bahdanau if self.before else self.luong, memory.memories[CROSS_NAME]
            top, readout, attended, after = unroll(self.cross, embedded, cross_memory, state, needed or bool(statistics))
            attended = measure_weights(self.cross, attended, cross_memory.keep, weights=needed, statistics=statistics)
        after = after._replace(position=state.position + tokens.shape[1])
        logits, parts = self.compute_logits(StepStates(top, readout, attended), embedded, memory, mask, project)
        return Step(logits, after, drop_weights({} if attended is None else {CROSS_NAME: attended}, weights), parts)

    def compute_logits(
        self, states: StepStates, embedded: Data, memory: DecoderMemory, mask: Tensor | None, project: bool
    ) -> OutputParts:
        """Logits of every position, from its readout or through the attention's outcome."""

        def logits(readout: Data) -> Data:
            data = self.drop(readout, mask)
            output: Data = self.output(data, self.embedding.table.weight) if project else data
            return output

        if self.cross is None or self.outcome is None or states.attended is None:
            return OutputParts(logits(states.readout))
        last = LastAttention(self.cross, memory.memories[CROSS_NAME], states.attended, states.top, embedded, memory.tokens)
        token = (embedded,) if self.before else ()
        parts: OutputParts = self.outcome(
            last, lambda c, h, *y: logits(self.read(h, c, *y)), states.top, *token, project=project
        )
        return parts

    def run_layers(self, embedded: Data, state: RecurrentState) -> tuple[Data, RecurrentState]:
        """Fused call per layer: no context returns into the cells."""
        data, lasts = embedded, []
        for number, rnn in enumerate(self.layers):
            data = self.drop(data, state.masks[number]) if number else data
            begin = tuple(tensor[None, :, number].contiguous() for tensor in state.hidden)
            data, last = run_cells(rnn, data, begin if len(begin) > 1 else begin[0])
            lasts.append(tuple(tensor[0] for tensor in last) if len(begin) > 1 else (last[0],))
        return data, state._replace(hidden=stack_states(lasts))

    def bahdanau(
        self, cross: Attention, embedded: Data, memory: Memory, state: RecurrentState, weights: bool
    ) -> tuple[Data, Data, Attended, RecurrentState]:
        """Bahdanau's order: attend with the previous state; the context enters the step."""
        time = embedded.shape[1]
        stack = LayerStack(self.layers, embedded, state.hidden, self.drop, state.masks)
        attention = DeferredAttention(cross, memory, state.attention, time, state.position, weights)
        tops = [stack.advance(place, attention(place, stack.top)) for place in range(time)]
        attended, top = concatenate_steps(attention.steps), torch.stack(tops, dim=1)
        readout = self.read(top, attended.context, embedded)
        return top, readout, attended, state._replace(hidden=stack.hidden, attention=attention.state)

    def luong(
        self, cross: Attention, embedded: Data, memory: Memory, state: RecurrentState, weights: bool
    ) -> tuple[Data, Data, Attended, RecurrentState]:
        """Luong's order: attend with the state after the step; the readout enters the next step."""
        if recurrent_fused.covers(self.layers, cross, embedded, memory, weights) is None:
            return self.luong_fused(cross, embedded, memory, state)
        rows, time, _ = embedded.shape
        stack = LayerStack(self.layers, embedded, state.hidden, self.drop, state.masks)
        reads = RepeatedLinear(self.readout.bias.expand(time, rows, -1), self.readout.weight)
        attention = DeferredAttention(cross, memory, state.attention, time, state.position, weights)
        tops, readouts, fed = [], [], state.fed
        for place in range(time):
            tops.append(stack.advance(place, fed))
            fed = torch.tanh(reads(place, tops[-1], attention(place, tops[-1])))
            readouts.append(fed)
        state = state._replace(hidden=stack.hidden, attention=attention.state, fed=fed)
        return torch.stack(tops, dim=1), torch.stack(readouts, dim=1), concatenate_steps(attention.steps), state

    def luong_fused(
        self, cross: Attention, embedded: Data, memory: Memory, state: RecurrentState
    ) -> tuple[Data, Data, Attended, RecurrentState]:
        """Luong's order over all steps as one fused GPU operation."""
        hidden, cell = (tensor[:, 0] for tensor in state.hidden)
        steps = recurrent_fused.run_loop(self.layers[0], self.readout, cross, embedded, memory, state.fed, hidden, cell)
        top, context, read = (tensor.transpose(0, 1) for tensor in steps[:3])
        state = state._replace(hidden=(top[:, -1:], steps.cell[:, None]), fed=read[:, -1])
        return top, read, Attended(context), state

    def read(self, *parts: Data) -> Data:
        """Readout tanh(W [h; c; y]), for all positions at once."""
        return torch.tanh(self.readout(torch.cat(parts, dim=-1)))


def check_options(order: str, summary: str, initial: str) -> None:
    """Raise for an unknown order, summary or initial state."""
    if order not in ("bahdanau", "luong"):
        raise ValueError(f"order needs to be 'bahdanau' or 'luong', got {order!r}")
    if summary not in ("initial", "every_step", "both"):
        raise ValueError(f"summary needs to be 'initial', 'every_step' or 'both', got {summary!r}")
    if initial not in ("source", "zeros"):
        raise ValueError(f"initial needs to be 'source' or 'zeros', got {initial!r}")
