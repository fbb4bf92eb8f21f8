"""Convolutional decoder with any cross-attention in every layer."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from regard import registry
from regard.attention.module import Attention
from regard.attention.multihead import MultiHead
from regard.attention.positions import Positions
from regard.attention.types import Attended, Encoded, Memory, State
from regard.data.feedback import NumberFeedback, TokenFeedback
from regard.data.modality import Feedback
from regard.models.attention_factory import AttentionFactory, build_attention, omit_attention
from regard.models.decoders import DecoderMemory, drop_weights, repeat_for_beams
from regard.models.decoders.base import BaseDecoder, build_output, check_outcome
from regard.models.encoders import find_summary
from regard.models.layers.attention_output import LastAttention, OutputParts, build_attention_output
from regard.models.layers.beam_attention import attend_beams
from regard.models.layers.embedding import Embedding
from regard.models.layers.gated_convolution import SQRT_HALF, GatedConvolution, initialise_layer
from regard.models.lr_scale import scale_learning_rate
from regard.models.output_heads import OutputFactory
from regard.models.output_heads.projection import Projection
from regard.models.types import Step

Data = Float[Tensor, "rows time size"]
Context = Float[Tensor, "rows time context"]
Logits = Float[Tensor, "rows time vocabulary"]


class ConvolutionState(NamedTuple):
    """Decoder state carried from step to step, one row per beam of each source."""

    inputs: tuple[Float[Tensor, "rows before size"], ...]
    """Last kernel - 1 inputs of each layer; zeros before the first token."""
    attentions: tuple[State, ...]
    """State of each layer's attention; () for most."""
    position: Int[Tensor, " rows"]


class AttentionRequest(NamedTuple):
    """Arguments of a cross-attention beside its query."""

    position: Int[Tensor, " rows"]
    weights: bool
    statistics: tuple[str, ...]


class Layer(nn.Module):
    """Decoder layer: a causal gated convolution, then cross-attention."""

    def __init__(self, size: int, embedding: int, source: int, kernel: int, attention: AttentionFactory, dropout: float):
        super().__init__()
        self.gated = GatedConvolution(size, kernel, dropout)
        self.cross = scale_learning_rate(attention(embedding, source))
        if self.cross is not None:
            self.query = initialise_layer(nn.Linear(size, embedding))
            projects = isinstance(self.cross, MultiHead) and self.cross.size == size
            self.fit = nn.Identity() if projects else initialise_layer(nn.Linear(self.cross.size, size))

    def convolve(
        self, data: Data, before: Float[Tensor, "rows before size"]
    ) -> tuple[Data, Float[Tensor, "rows before size"]]:
        """Convolve these inputs behind the cached ones; returns the output and the new cache."""
        whole = torch.cat((before, data), dim=1)
        return self.gated(whole), whole[:, whole.shape[1] - before.shape[1] :]

    def attend(
        self,
        cross: Attention,
        data: Data,
        embedded: Float[Tensor, "rows time _"],
        memory: Memory,
        state: State,
        request: AttentionRequest,
    ) -> Attended:
        """Cross-attention whose query adds the target embedding to the projected hidden state."""
        return attend_beams(cross, (self.query(data) + embedded) * SQRT_HALF, memory, state, **request._asdict())

    def add_context(self, data: Data, context: Context, memory: Memory) -> Data:
        """Add the context, scaled by √m because it is a mean over m source positions."""
        scale = repeat_for_beams(count_source_positions(memory).sqrt(), data.shape[0])[..., None].to(context.dtype)
        return (data + self.fit(context * scale)) * SQRT_HALF

    def add_residual(self, entered: Data, data: Data, context: Context | None, memory: Memory | None) -> Data:
        """Output of the layer: adds the context and the residual connection, position by position."""
        if context is not None and memory is not None:
            data = self.add_context(data, context, memory)
        return (data + entered) * SQRT_HALF


class Convolution(BaseDecoder):
    """Convolutional decoder: layers of causal gated convolutions, each with its own cross-attention.

        g = E[y] √d + PE,   h⁰ = W g
        u = gated(hˡ⁻¹),   d = (W_d u + g) √½,   c = attend(d),   hˡ = ((u + √m W_c c) √½ + hˡ⁻¹) √½,   logits = E W_o hᴺ + b

    Gehring et al. 2017, section 3, eq. 1 and 2, https://arxiv.org/abs/1705.03122
    m is the source length without padding. Values differ from keys where the encoder provides them (Encoded.values). The
    receptive field is (kernel - 1) · layers tokens. The state holds the last kernel - 1 inputs of each layer, so that the
    cost of a step does not grow with the target. Any attention may read the source, in all layers or in those `attending`;
    without one the summary vector of the source is added to every input. The top layer's attention may take part in the
    output (models/layers/attention_output.py), and `counterparts` tell a pointing one what it copies. The encoder's
    docstring lists the differences from the paper. Layer n is the submodule "n".
    """

    def __init__(
        self,
        vocabulary: int,
        source: int,
        size: int,
        *,
        embedding: int | None = None,
        layers: int = 1,
        kernel: int = 3,
        attention: AttentionFactory = partial(build_attention, "dot"),
        attending: Collection[int] | None = None,
        positions: Positions | str | None = "sinusoidal",
        output: OutputFactory = Projection,
        tie: bool = True,
        counterparts: Sequence[int] | None = None,
        copy: bool = False,
        feedback: Feedback = TokenFeedback(),
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
    ):
        super().__init__()
        self.feedback, numbers = feedback, isinstance(feedback, NumberFeedback)
        embedding = embedding or size
        placed = registry.build(positions, "positions", size=embedding)
        self.embedding = Embedding(
            vocabulary, embedding, scaled=True, positions=placed, dropout=drop_embedding, numbers=numbers
        )
        self.widen = initialise_layer(nn.Linear(self.embedding.size, size), dropout=drop_embedding)
        self.names = [str(number) for number in range(layers)]
        for number, name in enumerate(self.names):
            chosen = attention if attending is None or number in attending else omit_attention
            self.add_module(name, Layer(size, self.embedding.size, source, kernel, chosen, drop_residual))
        self.attends = any(layer.cross is not None for layer in self.layers)
        self.summary = None if self.attends else nn.Linear(source, size)
        self.narrow = initialise_layer(nn.Linear(size, embedding))
        self.drop = nn.Dropout(drop_residual)
        self.output = build_output(feedback, output, embedding, vocabulary, embedding, tie)
        sizes = {"state": size, "token": self.embedding.size, "vocabulary": vocabulary}
        self.outcome = build_attention_output(self.layers[-1].cross, **sizes, counterparts=counterparts, copy=copy)
        check_outcome(feedback, self.outcome)
        self.size, self.before = size, kernel - 1

    @property
    def layers(self) -> list[Layer]:
        """Layers, bottom to top."""
        return [cast(Layer, self.get_submodule(name)) for name in self.names]

    def remember(self, encoded: Encoded) -> DecoderMemory:
        """Memory of the source for each layer's attention, or its summary vector."""
        if self.summary is not None:
            return DecoderMemory({}, summary=self.summary(find_summary(encoded)))
        crosses = {f"decoder.{name}.cross": layer.cross for name, layer in zip(self.names, self.layers, strict=True)}
        memories = {name: cross.remember(encoded) for name, cross in crosses.items() if cross is not None}
        return DecoderMemory(memories, tokens=() if self.outcome is None else self.outcome.tokens(encoded))

    def start(self, memory: DecoderMemory) -> ConvolutionState:
        """Initial state, before the first token: zeros as the inputs of every layer."""
        memories = list(memory.memories.values())
        like = memory.summary if self.summary is not None else memories[0].values
        crosses = [layer.cross for layer in self.layers]
        names = [f"decoder.{name}.cross" for name in self.names]
        attentions = [
            () if cross is None else cross.start(memory.memories[name]) for name, cross in zip(names, crosses, strict=True)
        ]
        inputs = (like.new_zeros(like.shape[0], self.before, self.size),) * len(self.names)
        return ConvolutionState(inputs, tuple(attentions), torch.zeros(like.shape[0], dtype=torch.long, device=like.device))

    def write(
        self,
        tokens: Shaped[Tensor, "rows time *channels"],
        memory: DecoderMemory,
        state: ConvolutionState,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
        project: bool = True,
    ) -> Step:
        """Advance a state by any number of tokens."""
        embedded = self.embedding(tokens, state.position)
        data = self.widen(embedded)
        if self.summary is not None:
            data = data + repeat_for_beams(memory.summary, tokens.shape[0])[:, None]
        inputs, attended, hidden = [], dict[str, Attended](), data
        for number, layer in enumerate(self.layers):
            name, highest = f"decoder.{number}.cross", number + 1 == len(self.names)
            hidden, cache = layer.convolve(self.drop(data), state.inputs[number])
            inputs.append(cache)
            source = memory.memories.get(name)
            if layer.cross is not None and source is not None:
                request = AttentionRequest(state.position, weights or (highest and self.outcome is not None), statistics)
                attended[name] = layer.attend(layer.cross, hidden, embedded, source, state.attentions[number], request)
            if not highest:
                data = layer.add_residual(data, hidden, attended[name].context if name in attended else None, source)
        logits, parts = self.compute_logits(data, hidden, embedded, attended, memory, project)
        crosses = [attended.get(f"decoder.{name}.cross") for name in self.names]
        states = tuple(() if cross is None else cross.state for cross in crosses)
        state = ConvolutionState(tuple(inputs), states, state.position + tokens.shape[1])
        return Step(logits, state, drop_weights(attended, weights), parts)

    def compute_logits(
        self,
        entered: Data,
        data: Data,
        embedded: Float[Tensor, "rows time _"],
        attended: Mapping[str, Attended],
        memory: DecoderMemory,
        project: bool,
    ) -> OutputParts:
        """Logits of every position, from the top layer or through its attention's outcome."""
        layer, name = self.layers[-1], f"decoder.{self.names[-1]}.cross"
        source, last = memory.memories.get(name), attended.get(name)

        def logits(context: Context | None, entered: Data, data: Data) -> Logits:
            narrow = self.drop(self.narrow(layer.add_residual(entered, data, context, source)))
            output: Logits = self.output(narrow, self.embedding.table.weight) if project else narrow
            return output

        if layer.cross is None or source is None or last is None or self.outcome is None:
            return OutputParts(logits(None if last is None else last.context, entered, data))
        attention = LastAttention(layer.cross, source, last, data, embedded, memory.tokens)
        parts: OutputParts = self.outcome(attention, logits, entered, data, project=project)
        return parts


def count_source_positions(memory: Memory) -> Float[Tensor, "sources 1"]:
    """Source length of each example without padding, at least 1, so that an empty source stays finite."""
    if memory.keep is None:
        return memory.values.new_full((memory.values.shape[0], 1), memory.values.shape[2])
    return memory.keep.sum(1, keepdim=True).clamp_min(1).to(memory.values.dtype)
