"""Sequence-to-sequence model: encoder and decoder, and how a config builds them."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from jaxtyping import Shaped
from torch import Tensor, nn

from regard import registry
from regard.attention.module import Attention
from regard.attention.positions import Positions
from regard.attention.types import Encoded
from regard.config import Dropout, EncoderDecoder, Model
from regard.data.feedback import TokenFeedback
from regard.data.modality import Feedback, Source
from regard.models.attention_factory import attention_options, build_attention, select_coverage
from regard.models.decoders.convolution import Convolution as ConvolutionDecoder
from regard.models.decoders.recurrent import Recurrent as RecurrentDecoder
from regard.models.decoders.transformer import Transformer as TransformerDecoder
from regard.models.encoders.convolution import Convolution as ConvolutionEncoder
from regard.models.encoders.embedding_values import EmbeddingValues
from regard.models.encoders.hierarchical import Hierarchical as HierarchicalEncoder
from regard.models.encoders.recurrent import Recurrent as RecurrentEncoder
from regard.models.encoders.transformer import Transformer as TransformerEncoder
from regard.models.output_heads import make_output_factory
from regard.models.types import Decoder, Encoder, Step
from regard.tree import Tree


class Seq2Seq(nn.Module):
    """Sequence-to-sequence model: any encoder and any decoder.

        step = model(source, target_input)            teacher-forced, all positions
        memory = model.encode(source)                 once per source, then decoder.start and decoder.step

    Sutskever, Vinyals and Le 2014, https://arxiv.org/abs/1409.3215
    """

    def __init__(self, encoder: Encoder, decoder: Decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, source: Source) -> Tree:
        """Encode a source into the decoder's memory."""
        return self.decoder.remember(self.read(source))

    def read(self, source: Any) -> Encoded:
        """Encode a source of the encoder's modality, without the decoder's projections."""
        return attach_copies(self.encoder(source), source)

    def forward(self, source: Source, target: Shaped[Tensor, "batch time *channels"], **options: Any) -> Step:
        """Forward with teacher forcing: logits, or numbers, of every position. Options are the decoder's.

        `target` is the decoder's input: of tokens it begins with BOS, of numbers with the first input of their feedback.
        """
        return self.decoder(target, self.decoder.remember(self.read(source)), **options)

    def attentions(self) -> dict[str, Attention]:
        """Attentions by module path, which is also their name in a Step, a log and a picture."""
        return {name: module for name, module in self.named_modules() if isinstance(module, Attention)}


def attach_copies(encoded: Encoded, source: Any) -> Encoded:
    """Encoded source with the tokens that a decoder may copy, where the source comes with them."""
    copies = getattr(source, "copies", None)
    return encoded if copies is None else encoded._replace(copies=copies)


def build(
    model: Model,
    dropout: Dropout,
    source_size: int,
    target_size: int,
    joint: bool,
    counterparts: Sequence[int] | None = None,
    longest: tuple[int, int] = (1024, 1024),
    ends: Sequence[int] = (),
) -> Seq2Seq:
    """Build the model that a config describes, for vocabularies of these sizes; `joint`: they are one and the same.

    `longest` are the maximum lengths of source and target, for parts with parameters for each position. `counterparts` are
    for an attention that copies: the target's id of each source id, or -1. Without them equal ids are equal tokens. `ends`
    are the source's tokens that end a sentence, for the hierarchical encoder.
    """
    if joint and source_size != target_size:
        raise ValueError(f"a joint vocabulary has one size, got {source_size} and {target_size}; build with joint=False")
    if counterparts is not None and len(counterparts) != source_size:
        raise ValueError(
            f"counterparts need a target token, or -1, for each of {source_size} source tokens, got {len(counterparts)}"
        )
    encoder = build_encoder(model, dropout, source_size, longest[0], ends)
    decoder = build_decoder(model, dropout, encoder.size, target_size, counterparts, longest)
    for part in (encoder, decoder):
        if isinstance(part, TransformerEncoder | TransformerDecoder):
            initialise(part)
    if joint and model.tie_embeddings:
        encoder.embedding.table = decoder.embedding.table
    reading = EmbeddingValues(encoder, source_size, dropout.embedding) if model.values == "embeddings" else encoder
    return Seq2Seq(reading, decoder)


def build_encoder(
    model: Model, dropout: Dropout, vocabulary: int, longest: int = 1024, ends: Sequence[int] = ()
) -> RecurrentEncoder | ConvolutionEncoder | TransformerEncoder | HierarchicalEncoder:
    """Build the encoder that a config describes."""
    if model.encoder == "recurrent":
        return RecurrentEncoder(
            vocabulary,
            model.hidden_size,
            embedding=model.embedding_size,
            layers=model.layers,
            cell=model.cell,
            bidirectional=model.bidirectional,
            reverse=model.reverse_source,
            drop_embedding=dropout.embedding,
            drop_residual=dropout.residual,
            variational=dropout.variational,
        )
    if model.reverse_source:
        raise ValueError(
            f"reverse_source needs the recurrent encoder, got the {model.encoder}, which reads in no order; drop one"
        )
    if model.encoder == "hierarchical":
        return HierarchicalEncoder(
            vocabulary,
            model.hidden_size,
            ends=ends,
            embedding=model.embedding_size,
            layers=model.layers,
            cell=model.cell,
            drop_embedding=dropout.embedding,
            drop_residual=dropout.residual,
            variational=dropout.variational,
        )
    if model.encoder == "convolution":
        return ConvolutionEncoder(
            vocabulary, model.hidden_size, kernel=model.kernel_size, **position_options(model, dropout, longest)
        )
    return TransformerEncoder(vocabulary, model.hidden_size, **transformer_options(model, dropout, longest))


def build_decoder(
    model: EncoderDecoder,
    dropout: Dropout,
    source: int,
    vocabulary: int,
    counterparts: Sequence[int] | None = None,
    longest: tuple[int, int] = (1024, 1024),
    feedback: Feedback = TokenFeedback(),
) -> RecurrentDecoder | ConvolutionDecoder | TransformerDecoder:
    """Build the decoder that a config describes, for an encoder of size `source`.

    With a `NumberFeedback` it is one of numbers, and `vocabulary` is the number of their channels.
    """
    named, coverage = model.attention, getattr(model, "coverage", False)
    options: dict[str, Any] = attention_options(named) | {"dropout": dropout.attention, "bias": model.bias}
    name = select_coverage(named.name) if coverage else named.name
    make = partial(build_attention, name, limit=longest[0], **options)
    last = model.output
    chosen = make_output_factory(last.name, score=last.score, scale=last.scale, heads=last.heads, bias=model.bias)
    every: dict[str, Any] = {"attention": make, "output": chosen, "tie": model.tie_embeddings, "counterparts": counterparts}
    every |= {"feedback": feedback, "copy": getattr(model, "copy", False)}
    if model.decoder == "transformer":
        known = transformer_options(model, dropout, longest[1]) | {"layers": model.decoder_layers or model.layers}
        known["attending"] = parse_layers(model.cross_attention_layers, known["layers"])
        return TransformerDecoder(vocabulary, source, model.hidden_size, **every, **known)
    if model.decoder == "convolution":
        known = every | position_options(model, dropout, longest[1])
        known["attending"] = parse_layers(model.cross_attention_layers, model.layers)
        return ConvolutionDecoder(vocabulary, source, model.hidden_size, kernel=model.kernel_size, **known)
    return RecurrentDecoder(
        vocabulary,
        source,
        model.hidden_size,
        embedding=model.embedding_size,
        layers=model.layers,
        cell=model.cell,
        order=model.order,
        input_feeding=model.input_feeding,
        initial=model.initial,
        summary=model.summary,
        bridge=model.encoder != "recurrent",  # states of the same cells and sizes are taken as they are
        drop_embedding=dropout.embedding,
        drop_residual=dropout.residual,
        variational=dropout.variational,
        **every,
    )


def parse_layers(text: str, layers: int) -> frozenset[int] | None:
    """Layers that a setting names, counted from 1, as indices from 0; None for an empty text, which means all."""
    if not text.strip():
        return None
    numbers = [part.strip() for part in text.split(",")]
    if not all(number.isdecimal() and 1 <= int(number) <= layers for number in numbers):
        raise ValueError(
            f"model.cross_attention_layers needs numbers of decoder layers from 1 to {layers}, with commas between them, "
            f"got {text!r}"
        )
    return frozenset(int(number) - 1 for number in numbers)


def transformer_options(model: EncoderDecoder, dropout: Dropout, longest: int) -> dict[str, Any]:
    """Arguments that the Transformer's encoder and decoder share."""
    return position_options(model, dropout, longest) | {
        "heads": model.heads,
        "self_attention": model.self_attention,
        "self_attention_size": model.self_attention_size,
        "shared_bias": model.shared_bias,
        "inner": model.feedforward_size,
        "norm": model.norm,
        "activation": model.activation,
        "gated": model.gated,
        "bias": model.bias,
        "scaled": model.scale_embedding,
        "embedding_norm": model.embedding_norm,
        "drop_attention": dropout.attention,
    }


def position_options(model: EncoderDecoder, dropout: Dropout, longest: int) -> dict[str, Any]:
    """Arguments of all encoders and decoders with position embeddings, for at most `longest` positions."""
    sizes = {"size": model.embedding_size or model.hidden_size, "join": model.join, "limit": longest}
    positions: Positions | None = None
    if model.positions != "none":
        positions = registry.build(model.positions, "positions", **sizes)
    return {
        "embedding": model.embedding_size,
        "layers": model.layers,
        "positions": positions,
        "drop_embedding": dropout.embedding,
        "drop_residual": dropout.residual,
    }


def initialise(part: nn.Module) -> None:
    """Xavier initialisation of a Transformer's matrices; recurrent ones keep PyTorch's, uniform within ±1/√size.

    Glorot and Bengio 2010, https://proceedings.mlr.press/v9/glorot10a.html
    Matrices with a `pace` keep theirs too, which is scaled down as their learning rate is.
    """
    for module in part.modules():
        if isinstance(module, nn.Linear) and not hasattr(module, "pace"):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
