"""Compatibility of a model with the plain Transformer of other libraries, and reasons against it."""

from collections.abc import Iterator

from torch import nn

from regard.attention.kinds import is_builtin
from regard.attention.multihead import MultiHead
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.scaled_dot import ScaledDot
from regard.errors import RefusedError
from regard.models.decoders.transformer import Transformer as Decoder
from regard.models.encoders.transformer import Transformer as Encoder
from regard.models.output_heads.projection import Projection
from regard.models.seq2seq import Seq2Seq


def find_misfit(model: nn.Module) -> str | None:
    """None for a plain Transformer, else the first incompatible part and what is needed."""
    return next(_misfits(model), None)


def find_composition(model: nn.Module) -> str | None:
    """None for a single network, else the reason that it is none."""
    if isinstance(model, Seq2Seq):
        return None
    return "is no single network of PyTorch but an ensemble or an export, and one network is needed"


def refuse_unfinite(model: nn.Module, library: str) -> None:
    """Raise for weights that are not finite, which other libraries accept without an error."""
    for name, weights in model.named_parameters():
        if broken := int((~weights.isfinite()).sum()):
            raise RefusedError(
                f"{library} takes weights that are finite numbers, and {broken:,} of the {weights.numel():,} in {name} are "
                "not: train the model anew; `regard predict` without --engine answers the inputs whose scores are finite"
            )


def get_halves(model: nn.Module) -> tuple[Encoder, Decoder]:
    """Encoder and decoder of a Transformer."""
    encoder, decoder = model.get_submodule("encoder"), model.get_submodule("decoder")
    if not isinstance(encoder, Encoder) or not isinstance(decoder, Decoder):
        raise TypeError(f"halves needs a Transformer, got a model that {find_misfit(model)}")
    return encoder, decoder


def _misfits(model: nn.Module) -> Iterator[str]:
    if fault := find_composition(model):
        yield fault
        return
    assert isinstance(model, Seq2Seq), "it is whole"
    for half, kind in ((model.encoder, Encoder), (model.decoder, Decoder)):
        if not isinstance(half, kind):
            name = type(half).__name__.lower()
            yield f"has a {name} {kind.__module__.split('.')[-2][:-1]}, and a transformer is needed"
            return
    encoder, decoder = get_halves(model)
    for name, attention in model.attentions().items():
        yield from _attention(name, attention, decoder.layers[0].self.heads)
    layer = decoder.layers[0]
    if not isinstance(layer.around_self.norm, nn.LayerNorm):
        yield "has norms of the mean square alone (model.norm=rms), and layer norms (pre or post) are needed"
    if not isinstance(layer.feedforward[0], nn.Linear):
        yield "has gated feed-forward networks (model.gated=true), and plain ones are needed"
    if layer.self.query.bias is None:
        yield "has no biases (model.bias=false), and they are needed"
    if not decoder.attends:
        yield "has no attention to its source (model.attention=none), and transformer is needed"
    for half in (encoder, decoder):
        if half.embedding.positions is None:
            yield "knows no positions (model.positions=none), and sinusoidal or learned ones are needed"
        elif half.embedding.positions.join != "add":
            yield "sets positions beside its embeddings (model.join=concat), and add is needed"
        if not isinstance(half.widen, nn.Identity):
            yield f"has embeddings of another size ({half.embedding.size}) than its layers ({half.size}), and one is needed"
    if type(decoder.output) is not Projection:
        yield f"chooses words by model.output={type(decoder.output).__name__.lower()}, and projection is needed"
    if decoder.outcome is not None:
        yield "lets its attention have a say in the output, and a projection alone is needed"


def _attention(name: str, attention: nn.Module, heads: int) -> Iterator[str]:
    if not isinstance(attention, MultiHead) or not is_builtin(attention):
        advice = ": train with model.attention=transformer" * name.endswith(".cross")
        yield f"has the attention {type(attention).__name__} in {name}, and multi-head attention is needed{advice}"
        return
    stages = attention.score, attention.normalise, attention.scope
    causal = name.startswith("decoder.") and name.endswith(".self")
    if stages != (ScaledDot(), Softmax(), Causal() if causal else Everywhere()):
        usual = "causal" if causal else "everywhere"
        yield f"attends with {', '.join(map(str, stages))} in {name}, and scaled_dot, softmax, {usual} are needed"
    if attention.key_heads != attention.heads or attention.how != "concat" or not isinstance(attention.output, nn.Linear):
        yield f"has other heads of keys, or joins them by {attention.how}, in {name}, and concatenated heads are needed"
    if attention.heads != heads:
        yield f"has {attention.heads} heads in {name} and {heads} elsewhere, and one number for all is needed"
    if attention.query.out_features != attention.size:
        yield f"projects to size {attention.query.out_features} in {name}, and {attention.size}, the model's, is needed"
