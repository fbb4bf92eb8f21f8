"""The loss straight from what a decoder found equals the loss of its logits, whatever the decoder."""

import pytest
import torch
from torch.testing import assert_close

from regard.config import AttentionPart, Dropout, Model
from regard.data.batch import Batch, pad, shifted
from regard.losses.cross_entropy import is_fusable, likelihood_loss
from regard.losses.teacher_forcing import teacher_forcing_loss
from regard.models.seq2seq import build

BATCH = Batch(pad([[4, 5, 6, 2], [7, 2]]), pad([[5, 4, 2], [6, 7, 5, 4, 2]]), ())
DECODERS = ("recurrent", "convolution", "transformer")


def network(decoder, attention="additive", **options):
    return build(
        Model(decoder=decoder, encoder=decoder, attention=AttentionPart(attention), hidden_size=8, heads=2, **options),
        Dropout(0.0, 0.0),
        9,
        9,
        joint=False,
    ).double()


@pytest.mark.parametrize("tie", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("embedding", [None, 6])
@pytest.mark.parametrize("decoder", DECODERS)
def test_the_loss_and_its_gradients_are_those_of_the_logits(decoder, embedding, tie):
    model = network(decoder, tie_embeddings=tie, embedding_size=embedding)
    assert is_fusable(model)
    straight = teacher_forcing_loss(model, BATCH, smoothing=0.1, confidence=0.2)
    usual = likelihood_loss(model(BATCH.source, shifted(BATCH.target.data)).output, BATCH.target, 0.1, 0.2)
    assert_close(straight.total, usual.total, check_dtype=False, rtol=1e-6, atol=1e-6)
    assert_close(dict(straight.parts), dict(usual.parts), check_dtype=False, rtol=1e-6, atol=1e-6)
    assert straight.tokens == usual.tokens
    found, expected = (
        torch.autograd.grad(each.total, list(model.parameters()), allow_unused=True) for each in (straight, usual)
    )
    for name, mine, other in zip(dict(model.named_parameters()), found, expected, strict=True):
        assert (mine is None) == (other is None), name
        if mine is not None:
            assert_close(mine, other, rtol=1e-5, atol=1e-6, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("decoder", DECODERS)
def test_an_output_that_is_no_projection_is_left_to_the_decoder(decoder):
    model = network(decoder, "additive+marginal")
    assert not is_fusable(model)
    usual = likelihood_loss(model(BATCH.source, shifted(BATCH.target.data)).output, BATCH.target)
    assert_close(teacher_forcing_loss(model, BATCH).total, usual.total)


def test_no_logits_of_all_tokens_are_held():
    model, sizes = network("recurrent").float(), []
    with torch.autograd.graph.saved_tensors_hooks(lambda kept: sizes.append(tuple(kept.shape)) or kept, lambda kept: kept):
        teacher_forcing_loss(model, BATCH)
    assert (2, 5, 9) not in sizes
    assert (10, 9) not in sizes
