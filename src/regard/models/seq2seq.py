"""Sequence to sequence: an encoder, a decoder, and how a config becomes the two."""

from functools import partial
from typing import Any

from jaxtyping import Int
from torch import Tensor, nn

from regard import lookup
from regard.attention.module import Attention
from regard.attention.positions import Positions
from regard.config import Dropout, Model
from regard.data.batch import Padded
from regard.models.attentions import attention
from regard.models.decoders.recurrent import Recurrent as RecurrentDecoder
from regard.models.decoders.transformer import Transformer as TransformerDecoder
from regard.models.encoders.recurrent import Recurrent as RecurrentEncoder
from regard.models.encoders.transformer import Transformer as TransformerEncoder
from regard.models.types import Decoder, Encoder, Step, Tree


class Seq2Seq(nn.Module):
    """Any encoder and any decoder.

        step = model(source, target_input)            teacher-forced, all positions
        memory = model.encode(source)                 once per source, then decoder.start and decoder.step

    Sutskever, Vinyals and Le 2014, https://arxiv.org/abs/1409.3215
    """

    def __init__(self, encoder: Encoder, decoder: Decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, source: Padded) -> Tree:
        """What the decoder remembers of a source."""
        return self.decoder.remember(self.encoder(source))

    def forward(self, source: Padded, target: Int[Tensor, "batch time"], **options: Any) -> Step:
        """The logits of every position, given the tokens before it: `target` begins with BOS. Options are the decoder's."""
        return self.decoder(target, self.encode(source), **options)

    def attentions(self) -> dict[str, Attention]:
        """Every attention by its module path, which is also its name in a Step, a log and a picture."""
        return {name: module for name, module in self.named_modules() if isinstance(module, Attention)}


def build(model: Model, dropout: Dropout, source_size: int, target_size: int, joint: bool) -> Seq2Seq:
    """The network that a config describes, for vocabularies of these sizes; `joint`: they are one and the same."""
    if joint and source_size != target_size:
        raise ValueError(f"a joint vocabulary has one size, got {source_size} and {target_size}; build with joint=False")
    encoder = build_encoder(model, dropout, source_size)
    decoder = build_decoder(model, dropout, encoder.size, target_size)
    for part in (encoder, decoder):
        if isinstance(part, TransformerEncoder | TransformerDecoder):
            initialise(part)
    if joint and model.tie:
        encoder.embedding.table = decoder.embedding.table
    return Seq2Seq(encoder, decoder)


def build_encoder(model: Model, dropout: Dropout, vocabulary: int) -> RecurrentEncoder | TransformerEncoder:
    """The encoder that a config describes."""
    if model.encoder == "recurrent":
        return RecurrentEncoder(
            vocabulary,
            model.size,
            embedding=model.embedding,
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
            "reverse_source needs the recurrent encoder, got the transformer, which reads in no order; drop one"
        )
    return TransformerEncoder(vocabulary, model.size, **shared(model, dropout))


def build_decoder(model: Model, dropout: Dropout, source: int, vocabulary: int) -> RecurrentDecoder | TransformerDecoder:
    """The decoder that a config describes, for an encoder of size `source`."""
    named = model.attention
    make = partial(attention, named.name, heads=named.heads, size=named.size, dropout=dropout.attention)
    if model.decoder == "transformer":
        return TransformerDecoder(vocabulary, source, model.size, attention=make, tie=model.tie, **shared(model, dropout))
    return RecurrentDecoder(
        vocabulary,
        source,
        model.size,
        embedding=model.embedding,
        layers=model.layers,
        cell=model.cell,
        attention=make,
        order=model.order,
        input_feeding=model.input_feeding,
        summary=model.summary,
        bridge=model.encoder != "recurrent",  # states of the same cells and sizes are taken as they are
        tie=model.tie,
        drop_embedding=dropout.embedding,
        drop_residual=dropout.residual,
        variational=dropout.variational,
    )


def shared(model: Model, dropout: Dropout) -> dict[str, Any]:
    """What both halves of a Transformer are told."""
    positions: type[Positions] = lookup.find(model.positions, "positions")
    return {
        "embedding": model.embedding,
        "layers": model.layers,
        "heads": model.heads,
        "inner": model.feedforward,
        "norm": model.norm,
        "positions": positions(model.embedding or model.size, model.join),
        "drop_embedding": dropout.embedding,
        "drop_residual": dropout.residual,
        "drop_attention": dropout.attention,
    }


def initialise(part: nn.Module) -> None:
    """Xavier's start for the matrices of a Transformer; recurrent parts keep PyTorch's, uniform within ±1/√size.

    Glorot and Bengio 2010, https://proceedings.mlr.press/v9/glorot10a.html
    """
    for module in part.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
