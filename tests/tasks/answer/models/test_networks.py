"""One suite over the networks: what each owes to its inputs, and what is its own."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard.config import AttentionPart, Dropout
from regard.tasks.answer.batch import Stories
from regard.tasks.answer.config import AnswerModel
from regard.tasks.answer.experiment import AnswerConfig, build_network

KINDS = ("memory", "dynamic", "entity", "universal", "reader")
QUIET = Dropout(embedding=0.0, residual=0.0)


def make(kind, **settings):
    torch.manual_seed(0)
    config = AnswerConfig(model=AnswerModel(kind=kind, hidden_size=8, hops=2, blocks=3, **settings), dropout=QUIET)
    return build_network(config, 12, 5, 16, 6).eval()


def stories():
    data = torch.tensor([[[4, 5, 6], [7, 4, 0], [8, 0, 0]], [[5, 9, 0], [10, 6, 4], [0, 0, 0]]])
    return Stories(data, torch.tensor([[4, 6, 0], [5, 7, 8]]), (data != 0).any(-1))


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing_and_hops_share_their_reading_among_the_sentences(kind):
    model, source = make(kind), stories()
    answer = model(source, weights=True)
    assert answer.logits.shape == (2, 5)
    assert_close(answer.hops.sum(-1), torch.ones(answer.hops.shape[:2]))
    assert answer.hops[1, :, 2].abs().max() == 0
    padded = model(source.round_shape(), weights=True)
    assert_close(padded.logits, answer.logits, atol=1e-5, rtol=1e-5)
    assert_close(padded.hops[:, :, :3], answer.hops, atol=1e-5, rtol=1e-5)
    alone = model(source.select_rows([1]))
    assert_close(alone.logits, answer.logits[1:], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_every_parameter_learns_and_the_order_of_sentences_counts(kind):
    model, source = make(kind).train(), stories()
    F.cross_entropy(model(source).logits, torch.tensor([1, 3])).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    model.eval()
    turned = source._replace(data=source.data.flip(1)).select_rows([0])
    assert not torch.allclose(model(turned).logits, model(source.select_rows([0])).logits)


@pytest.mark.parametrize("tying", ["adjacent", "layerwise"])
def test_a_linear_start_takes_scores_for_weights_in_the_rows_that_it_marks(tying):
    model, source = make("memory", tying=tying, nonlinear=True), stories()
    plain = model(source)
    mixed = model(source, torch.tensor([True, False]))
    assert_close(mixed.logits[1], plain.logits[1])
    assert not torch.allclose(mixed.hops[0].sum(-1), torch.ones(2))
    sets = model.encoder.sets
    assert sets == (3 if tying == "adjacent" else 2)
    assert isinstance(model.H, nn.Identity if tying == "adjacent" else nn.Linear)


def test_temporal_noise_is_of_training_alone():
    model, source = make("memory", temporal_noise=0.9), stories()
    assert_close(model.age(source.keep), model.age(source.keep))
    assert model.age(source.keep).tolist() == [[2, 1, 0], [1, 0, 0]]
    assert model.train().age(source.keep).max() > 2


def test_an_entity_network_writes_nothing_for_padding_and_keeps_its_blocks_normalised():
    model, source = make("entity"), stories()
    blocks, gates = model.write(model.story(model.embed(source.data)), source)
    assert_close(blocks.norm(dim=-1), torch.ones(2, 3))
    assert gates[1, :, 2].abs().max() == 0
    assert set(model(source, weights=True).inner) == {"blocks", "gates"}


def test_the_gate_of_an_attention_gru_is_the_weight_of_a_sentence():
    model = make("dynamic")
    facts = torch.randn(1, 3, 8)
    only = model.read(facts, torch.tensor([[0.0, 1.0, 0.0]]))
    assert_close(only, model.read(facts[:, 1:2], torch.tensor([[1.0]])))
    assert model.read(facts, torch.zeros(1, 3)).abs().max() == 0


def test_a_reader_may_have_any_attention():
    model, source = make("reader", attention=AttentionPart("dot+sparsemax")), stories()
    assert "words" in model(source, weights=True).inner
    with pytest.raises(ValueError, match="the reader reads by an attention"):
        make("reader", attention=AttentionPart("none"))
