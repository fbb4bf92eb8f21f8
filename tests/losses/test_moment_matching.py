import pytest
import torch

from regard.attention.mechanisms.memory_network import MemoryNetwork
from regard.attention.module import Attention
from regard.attention.multihead import MultiHead
from regard.attention.types import Attended, Encoded
from regard.config import AttentionPart, Dropout, Model, Train
from regard.data.batch import Batch, pad
from regard.data.special_tokens import EOS
from regard.losses.moment_matching import compute_moments, list_single_contexts, moment_distance, moment_matching_loss
from regard.losses.teacher_forcing import TeacherForcing, teacher_forcing_loss
from regard.losses.types import Progress
from regard.models.seq2seq import build

BATCH = Batch(pad([[4, 5, 6, EOS], [5, EOS]]), pad([[6, 4, EOS], [5, 5, 4, EOS]]))


def network(decoder="recurrent", attention="additive"):
    torch.manual_seed(0)
    kind = Model(
        hidden_size=8, heads=2, encoder=decoder, decoder=decoder, attention=AttentionPart(attention, heads=2), layers=2
    )
    return build(kind, Dropout(embedding=0.0, residual=0.0), 9, 9, joint=False)


def test_mean_and_scale_are_those_of_kept_places():
    data = torch.tensor([[[1.0, 0.0], [3.0, 0.0], [99.0, 99.0]]])
    mean, scale = compute_moments(data, torch.tensor([[True, True, False]]))
    assert mean.tolist() == [[2.0, 0.0]]
    assert scale[0].tolist() == pytest.approx([1.0, 0.0], abs=2e-6)
    mean, scale = compute_moments(data, None)
    assert mean[0].tolist() == pytest.approx([103 / 3, 33.0])


def test_the_distance_by_hand():
    memory = Attention(1).remember(Encoded(torch.tensor([[[0.0], [4.0], [77.0]]]), torch.tensor([[True, True, False]])))
    attended = Attended(torch.tensor([[[1.0], [1.0], [4.0], [50.0]]]))  # mean 2, variance (1 + 1 + 4) / 3
    found = moment_distance(attended, Attention(1), memory, torch.tensor([[True, True, True, False]]))
    assert found.item() == pytest.approx((2 - 2) ** 2 + (2**0.5 - 2) ** 2)  # the source: mean 2, scale 2
    attended = Attended(torch.tensor([[[5.0]]]))
    assert moment_distance(attended, Attention(1), memory, torch.tensor([[True]])).item() == pytest.approx(3**2 + 2**2)


def test_a_single_step_and_a_constant_feature_have_a_finite_gradient():
    context = torch.tensor([[[5.0, 1.0]]], requires_grad=True)
    memory = Attention(2).remember(Encoded(torch.tensor([[[2.0, 1.0], [4.0, 1.0]]])))
    moment_distance(Attended(context), Attention(2), memory, torch.tensor([[True]])).backward()
    assert context.grad[0, 0].tolist() == pytest.approx([4.0, 0.0])  # 2 (5 - 3)


def test_the_source_is_where_contexts_are_drawn_to_and_is_not_drawn_itself():
    data = torch.randn(1, 3, 2, requires_grad=True)
    found = list_single_contexts(Attention(2), Attention(2).remember(data))
    assert found.requires_grad
    total = moment_distance(
        Attended(torch.randn(1, 2, 2, requires_grad=True)),
        Attention(2),
        Attention(2).remember(data),
        torch.ones(1, 2, dtype=torch.bool),
    )
    total.backward()
    assert data.grad is None


@pytest.mark.parametrize("options", [{}, {"key_heads": 1}, {"key_heads": 2}, {"merge": "mean"}])
def test_what_is_readable_is_what_a_look_at_one_place_finds(options):
    attention = MultiHead(8, heads=4, **options)
    data = torch.randn(1, 5, 8)
    alone = [attention(torch.randn(1, 1, 8), attention.remember(data[:, place : place + 1])).context for place in range(5)]
    torch.testing.assert_close(list_single_contexts(attention, attention.remember(data)), torch.cat(alone, dim=1))


def test_a_memory_network_is_refused_in_words():
    attention = MemoryNetwork(8)
    with pytest.raises(ValueError, match="MemoryNetwork adds its question to that; set it to 0, or use another attention"):
        list_single_contexts(attention, attention.remember(torch.randn(1, 3, 8)))


@pytest.mark.parametrize("decoder", ["recurrent", "convolution", "transformer"])
@pytest.mark.parametrize("attention", ["additive", "transformer", "local_p", "channelwise", "pointer", "monotonic", "luong"])
def test_every_decoder_pays_for_every_attention_over_its_source(decoder, attention):
    model = network(decoder, attention)
    memory = model.encode(BATCH.source)
    step = model.decoder(torch.ones(2, 4, dtype=torch.long), memory)
    found = moment_matching_loss(model, step, memory, BATCH.target.keep)
    attentions = model.attentions()
    each = [
        moment_distance(step.attended[name], attentions[name], kept, BATCH.target.keep)
        for name, kept in memory.memories.items()
    ]
    assert len(each) == (1 if decoder == "recurrent" else 2)
    assert found.item() == pytest.approx(sum(one.item() for one in each), rel=1e-5)
    assert found > 0


def test_the_penalty_is_weighed_and_added_and_only_then_paid():
    model = network()
    plain, charged = teacher_forcing_loss(model, BATCH), teacher_forcing_loss(model, BATCH, moment_matching=0.5)
    moved = charged.parts["moment_matching"]
    assert charged.total.item() == pytest.approx((plain.total + 0.5 * moved).item(), rel=1e-6)
    assert set(plain.parts) == {"nll"}
    same = TeacherForcing(Train(moment_matching=0.0), model)(model, BATCH, Progress(0, 1))
    assert torch.equal(same.total, plain.total)


@pytest.mark.parametrize("order", ["bahdanau", "luong"])
def test_its_gradient_is_that_of_differences(order):
    """Contexts of a recurrent decoder have a gradient of their own making."""
    torch.manual_seed(0)
    kind = Model(hidden_size=4, order=order)
    model = build(kind, Dropout(embedding=0.0, residual=0.0), 9, 9, joint=False).double()
    weight = next(model.decoder.cross.parameters())

    def value() -> torch.Tensor:
        return teacher_forcing_loss(model, BATCH, moment_matching=3.0).total - teacher_forcing_loss(model, BATCH).total

    [gradient] = torch.autograd.grad(value(), [weight])
    with torch.no_grad():
        way = 1e-5 * torch.randn_like(weight)
        weight += way
        above = value()
        weight -= 2 * way
        below = value()
    assert 2 * (gradient * way).sum().item() == pytest.approx((above - below).item(), rel=1e-3)


def test_it_needs_an_attention_over_the_source():
    with pytest.raises(
        ValueError, match=r"train\.moment_matching needs an attention over the source, and this model has none"
    ):
        TeacherForcing(Train(moment_matching=1.0), network(attention="none"))
