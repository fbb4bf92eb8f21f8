"""Transformer decoder with any cross-attention."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import ClassVar, NamedTuple, cast

from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from regard import registry
from regard.attention.multihead import MultiHead
from regard.attention.positions import Positions
from regard.attention.types import Attended, Encoded, Memory, State
from regard.data.batch import places
from regard.data.feedback import NumberFeedback, TokenFeedback
from regard.data.modality import Feedback
from regard.models.attention_factory import AttentionFactory, build_attention, omit_attention
from regard.models.decoders import DecoderMemory, drop_weights, repeat_for_beams
from regard.models.decoders.base import BaseDecoder, build_output, check_outcome
from regard.models.encoders import find_summary
from regard.models.layers.attention_output import LastAttention, OutputParts, build_attention_output
from regard.models.layers.beam_attention import attend_beams
from regard.models.layers.embedding import Embedding
from regard.models.layers.shared_bias import share_bias
from regard.models.layers.transformer import Sublayers
from regard.models.lr_scale import scale_learning_rate
from regard.models.output_heads import OutputFactory
from regard.models.output_heads.projection import Projection
from regard.models.types import Step

Data = Float[Tensor, "rows time size"]
Context = Float[Tensor, "rows time context"]
Logits = Float[Tensor, "rows time vocabulary"]


class TransformerState(NamedTuple):
    """Decoder state: the KV cache of each layer's self-attention, and the states of the cross-attentions."""

    caches: tuple[Memory, ...]
    attentions: tuple[State, ...]
    """State of each layer's cross-attention; () for most."""


class AttentionRequest(NamedTuple):
    """Optional results of the attentions beside the output."""

    weights: bool
    statistics: tuple[str, ...]
    source: bool = False
    """True if the cross-attention's weights are needed in any case."""
    documents: Int[Tensor, "rows time"] | None = None
    """Example of each token in packed rows."""


class Layer(nn.Module):
    """Decoder layer: causal self-attention, cross-attention, feed-forward."""

    def __init__(self, source: int, attention: AttentionFactory, sublayers: Sublayers):
        super().__init__()
        self.self = sublayers.build_self_attention("causal")
        self.around_self = sublayers.build_residual()
        self.cross = scale_learning_rate(attention(sublayers.size, source))
        if self.cross is not None:
            self.around_cross = sublayers.build_residual()
            projects = isinstance(self.cross, MultiHead)
            self.fit = nn.Identity() if projects else nn.Linear(self.cross.size, sublayers.size)
        self.feedforward = sublayers.build_feedforward()
        self.around_feedforward = sublayers.build_residual()

    def attend(
        self, data: Data, entered: Data, cache: Memory, memory: Memory | None, state: State, request: AttentionRequest
    ) -> tuple[Data, Memory, dict[str, Attended]]:
        """Self- and cross-attention: returns the residual stream, the extended KV cache and each attention's output."""
        attended: dict[str, Attended] = {}  # dict[str, Attended]() would stop torch.compile
        position, statistics = cache.keys.shape[2], request.statistics
        before, documents = cache if position else None, request.documents
        source = Encoded(entered, documents=documents)
        attended["self"], cache = self.self.attend_self(source, before, weights=request.weights, statistics=statistics)
        if self.cross is None or memory is None:
            return self.around_self.add(data, attended["self"].context), cache, attended
        data, entered = self.around_self.add_and_normalise(data, attended["self"].context, self.around_cross.norm)
        weights = request.weights or request.source
        attended["cross"] = attend_beams(
            self.cross,
            entered,
            memory,
            state,
            position=position,
            weights=weights,
            statistics=statistics,
            documents=documents,
        )
        return data, cache, attended

    def transform(self, data: Data, context: Context | None, norm: nn.Module) -> tuple[Data, Data]:
        """Cross-attention residual and feed-forward: returns the residual stream, and its norm for the next layer."""
        if context is None:
            entered = self.around_feedforward.normalise_input(data)
        else:
            data, entered = self.around_cross.add_and_normalise(data, self.fit(context), self.around_feedforward.norm)
        return self.around_feedforward.add_and_normalise(data, self.feedforward(entered), norm)


class Transformer(BaseDecoder):
    """Transformer decoder: layers of causal self-attention, cross-attention and feed-forward networks.

        x = layer_N(... layer_1(E[y] √d + PE)),  logits = E x + b

    Vaswani et al. 2017, section 3.1, https://arxiv.org/abs/1706.03762
    Any attention may read the source, in all layers or in those `attending`; one without an output projection gets one.
    Without attention the summary vector of the source is added to every input. The state is the KV cache, so that a step
    costs one token. The top layer's attention may take part in the output (models/layers/attention_output.py), and
    `counterparts` tell a pointing one what it copies. Layer n is the submodule "n".
    """

    packs: ClassVar[bool] = True

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
        activation: str = "relu",
        gated: bool = False,
        bias: bool = True,
        attention: AttentionFactory = partial(build_attention, "transformer"),
        attending: Collection[int] | None = None,
        self_attention: str = "scaled_dot",
        self_attention_size: int | None = None,
        shared_bias: bool = False,
        norm: str = "pre",
        positions: Positions | str | None = "sinusoidal",
        scaled: bool = True,
        embedding_norm: bool = False,
        output: OutputFactory = Projection,
        tie: bool = True,
        counterparts: Sequence[int] | None = None,
        copy: bool = False,
        feedback: Feedback = TokenFeedback(),
        drop_embedding: float = 0.0,
        drop_residual: float = 0.0,
        drop_attention: float = 0.0,
    ):
        super().__init__()
        self.feedback, numbers = feedback, isinstance(feedback, NumberFeedback)
        embedding = embedding or size
        placed = registry.build(positions, "positions", size=embedding)
        self.embedding = Embedding(
            vocabulary,
            embedding,
            scaled=scaled,
            positions=placed,
            dropout=drop_embedding,
            norm=embedding_norm,
            numbers=numbers,
        )
        self.widen = nn.Identity() if self.embedding.size == size else nn.Linear(self.embedding.size, size)
        self.names = [str(number) for number in range(layers)]
        options = self_attention, self_attention_size, norm, drop_residual, drop_attention
        sublayers = Sublayers(size, heads, inner, activation, gated, bias, *options)
        for number, name in enumerate(self.names):
            chosen = attention if attending is None or number in attending else omit_attention
            self.add_module(name, Layer(source, chosen, sublayers))
        if shared_bias:
            share_bias([layer.self for layer in self.layers], causal=True)
        self.attends = any(layer.cross is not None for layer in self.layers)
        self.summary = None if self.attends else nn.Linear(source, size)
        self.norm = sublayers.build_final_norm()
        self.output = build_output(feedback, output, size, vocabulary, embedding, tie)
        sizes = {"state": size, "token": size, "vocabulary": vocabulary}
        self.outcome = build_attention_output(self.layers[-1].cross, **sizes, counterparts=counterparts, copy=copy)
        check_outcome(feedback, self.outcome)
        self.size = size

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

    def start(self, memory: DecoderMemory) -> TransformerState:
        """Initial state, before the first token: empty KV caches."""
        memories = list(memory.memories.values())
        like = memory.summary if self.summary is not None else memories[0].values
        caches, attentions = [], []
        for number, layer in enumerate(self.layers):
            nothing = like.new_empty(like.shape[0], layer.self.key_heads, 0, layer.self.head)
            caches.append(Memory(nothing, nothing))
            name = f"decoder.{number}.cross"
            attentions.append(() if layer.cross is None else layer.cross.start(memory.memories[name]))
        return TransformerState(tuple(caches), tuple(attentions))

    def write(
        self,
        tokens: Shaped[Tensor, "rows time *channels"],
        memory: DecoderMemory,
        state: TransformerState,
        *,
        weights: bool = False,
        statistics: tuple[str, ...] = (),
        project: bool = True,
        documents: Int[Tensor, "rows time"] | None = None,
    ) -> Step:
        """Advance a state by any number of tokens; packed rows are written whole."""
        placed = None if documents is None else places(documents)
        data = embedded = self.widen(self.embedding(tokens, state.caches[0].keys.shape[2], places=placed))
        if self.summary is not None:
            data = data + repeat_for_beams(memory.summary, tokens.shape[0])[:, None]
        caches, attended, layers = [], dict[str, Attended](), self.layers
        entered = layers[0].around_self.normalise_input(data)
        for number, layer in enumerate(layers):
            path, highest = f"decoder.{number}", number + 1 == len(layers)
            source = memory.memories.get(f"{path}.cross")
            request = AttentionRequest(weights, statistics, highest and self.outcome is not None, documents)
            data, cache, outputs = layer.attend(
                data, entered, state.caches[number], source, state.attentions[number], request
            )
            caches.append(cache)
            attended |= {f"{path}.{name}": output for name, output in outputs.items()}
            if not highest:
                context = outputs["cross"].context if "cross" in outputs else None
                data, entered = layer.transform(data, context, layers[number + 1].around_self.norm)
        logits, parts = self.compute_logits(data, embedded, attended, memory, project)
        crosses = [attended.get(f"decoder.{name}.cross") for name in self.names]
        states = tuple(() if cross is None else cross.state for cross in crosses)
        return Step(logits, TransformerState(tuple(caches), states), drop_weights(attended, weights), parts)

    def compute_logits(
        self, data: Data, embedded: Data, attended: Mapping[str, Attended], memory: DecoderMemory, project: bool
    ) -> OutputParts:
        """Logits of every position, from the top layer or through its attention's outcome."""
        layer, name = self.layers[-1], f"decoder.{self.names[-1]}.cross"
        last = attended.get(name)

        def logits(context: Context | None, data: Data) -> Logits:
            _, normalised = layer.transform(data, context, self.norm)
            output: Logits = self.output(normalised, self.embedding.table.weight) if project else normalised
            return output

        if layer.cross is None or last is None or self.outcome is None:
            return OutputParts(logits(None if last is None else last.context, data))
        query = layer.around_cross.normalise_input(data)
        attention = LastAttention(layer.cross, memory.memories[name], last, query, embedded, memory.tokens)
        parts: OutputParts = self.outcome(attention, logits, data, project=project)
        return parts
