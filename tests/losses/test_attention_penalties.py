import math

import pytest
import torch
from torch.testing import assert_close

from regard.attention.types import Attended
from regard.config import Dropout, Model, Train
from regard.data.batch import shifted
from regard.losses.attention_penalties import coverage_loss, doubly_stochastic_loss, guided_attention_loss
from regard.losses.teacher_forcing import TeacherForcing, teacher_forcing_loss
from regard.losses.types import Progress
from regard.models.seq2seq import build

from ..training.small import VOCABULARY, Copies, Network, Plain

WEIGHTS = torch.tensor([[[[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]]]])  # one head, three tokens, three places
KEEP = torch.tensor([[True, True, False]])


def cross(*rows: list[float], name: str = "decoder.cross") -> dict[str, Attended]:
    """Weights of one head for each token of one row."""
    return {name: Attended(torch.zeros(()), torch.tensor([[rows]], requires_grad=True))}


def attended(weights, name="decoder.cross"):
    return {name: Attended(torch.zeros(1), weights)}


def mask(length: int, of: int) -> torch.Tensor:
    return (torch.arange(of) < length)[None]


def test_coverage_counts_what_is_read_again_and_not_at_padding():
    attended = cross((1.0, 0.0), (0.25, 0.75), (0.5, 0.5))  # before: (0, 0), (1, 0), (1.25, 0.75)
    assert coverage_loss(attended, KEEP).item() == pytest.approx(0.25)
    assert coverage_loss(attended, torch.ones(1, 3, dtype=torch.bool)).item() == pytest.approx(0.25 + 1.0)


def test_coverage_is_the_mean_of_all_heads_over_the_source():
    attended = cross((1.0, 0.0), (1.0, 0.0)) | cross((1.0, 0.0), (0.0, 1.0), name="decoder.1.cross")
    attended |= cross((1.0, 0.0), (1.0, 0.0), name="decoder.0.self")
    found = coverage_loss(attended, torch.ones(1, 2, dtype=torch.bool))
    assert found.item() == pytest.approx(0.5)  # 1 and 0; what looks at the target does not count
    found.backward()
    assert attended["decoder.cross"].weights.grad.any()
    assert attended["decoder.0.self"].weights.grad is None


def test_coverage_is_weighed_and_added_and_weights_are_asked_for_only_then():
    asked = []

    class Watched(Network):
        def forward(self, source, target, **options):
            asked.append(options)
            return super().forward(source, target, **options)

    model, batch = Watched(dropout=0.0), Copies().batch(0)
    plain, covered = teacher_forcing_loss(model, batch), teacher_forcing_loss(model, batch, coverage=0.5)
    assert asked == [{}, {"weights": True}]
    repeated = coverage_loss(model(batch.source, shifted(batch.target.data), weights=True).attended, batch.target.keep)
    assert covered.total.item() == pytest.approx((plain.total + 0.5 * repeated).item())
    assert covered.parts["coverage"].item() == pytest.approx(repeated.item())


def test_coverage_needs_an_attention_over_the_source():
    text = "train.coverage_weight needs an attention over the source, and this model has none; set it to 0"
    with pytest.raises(ValueError, match=text):
        TeacherForcing(Train(coverage_weight=1.0), Plain())
    with pytest.raises(ValueError, match=text):
        coverage_loss(cross((1.0, 0.0), name="decoder.0.self"), KEEP)


def test_the_doubly_stochastic_penalty_can_be_worked_by_hand():
    # two tokens count: the places get 0.75, 1.25 and 0, so they are 0.25, 0.25 and 1 away from one
    assert_close(doubly_stochastic_loss(attended(WEIGHTS), KEEP), torch.tensor(0.0625 + 0.0625 + 1.0))
    assert_close(doubly_stochastic_loss(attended(WEIGHTS), torch.ones_like(KEEP)), torch.tensor(0.0625 + 0.0625))


def test_padding_of_the_source_has_no_doubly_stochastic_penalty():
    places = torch.tensor([[True, True, False]])
    assert_close(doubly_stochastic_loss(attended(WEIGHTS), KEEP, places), torch.tensor(0.125))


def test_the_doubly_stochastic_penalty_is_a_sum_over_targets_and_a_mean_over_all_heads():
    even = torch.eye(3)[None, None]
    both = torch.cat((WEIGHTS, even), dim=1)  # the second head leaves the third place out
    assert_close(doubly_stochastic_loss(attended(both), KEEP), torch.tensor((1.125 + 1.0) / 2))
    apart = attended(WEIGHTS, "decoder.0.cross") | attended(even, "decoder.1.cross")
    assert_close(doubly_stochastic_loss(apart, KEEP), doubly_stochastic_loss(attended(both), KEEP))
    rows = torch.cat((WEIGHTS, WEIGHTS))
    assert_close(
        doubly_stochastic_loss(attended(rows), KEEP.expand(2, -1)), 2 * doubly_stochastic_loss(attended(WEIGHTS), KEEP)
    )


def test_the_gradient_of_the_doubly_stochastic_penalty_asks_for_what_was_left_out():
    weights = WEIGHTS.clone().requires_grad_()
    doubly_stochastic_loss(attended(weights), KEEP).backward()
    assert_close(weights.grad[0, 0, 0], torch.tensor([-0.5, 0.5, -2.0]))
    assert not weights.grad[0, 0, 2].any()


def test_half_precision_is_added_up_in_single():
    assert doubly_stochastic_loss(attended(WEIGHTS.bfloat16()), KEEP).dtype == torch.float32


@pytest.mark.parametrize(
    "source", [{}, attended(WEIGHTS, "decoder.0.self"), attended(None)], ids=["none", "self", "no weights"]
)
def test_without_weights_over_the_source_the_doubly_stochastic_penalty_is_refused(source):
    with pytest.raises(ValueError, match="needs the weights of an attention over the source, got none; ask for weights"):
        doubly_stochastic_loss(source, KEEP)


def test_places_that_are_not_read_once_have_their_price():
    model, batch = (
        build(Model(hidden_size=8), Dropout(0.0, 0.0), VOCABULARY, VOCABULARY, joint=False).eval(),
        Copies().batch(0),
    )
    plain, priced = teacher_forcing_loss(model, batch), teacher_forcing_loss(model, batch, doubly_stochastic=2.0)
    weights = model(batch.source, shifted(batch.target.data), weights=True).attended["decoder.cross"].weights[:, 0]
    read = weights.masked_fill(~batch.target.keep[..., None], 0.0).sum(1)
    uneven = (1 - read).square().masked_fill(~batch.source.keep, 0.0).sum()
    torch.testing.assert_close(priced.parts["doubly_stochastic"], uneven)
    torch.testing.assert_close(priced.total, plain.total + 2 * uneven)


def test_attention_along_the_diagonal_costs_nothing():
    found = guided_attention_loss(cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]), mask(3, 3), mask(3, 3))
    assert found.item() == 0.0


def test_the_guided_attention_loss_of_one_weight_by_hand():
    price = 1 - math.exp(-(0.5**2) / (2 * 0.2**2))  # half a sentence away
    found = guided_attention_loss(cross([0.25, 0.75], [0.0, 1.0]), mask(2, 2), mask(2, 2))
    assert found.item() == pytest.approx(0.75 * price)


def test_sentences_of_unlike_length_have_a_diagonal_too_and_padding_is_no_part_of_them():
    rows = [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
    price = 1 - math.exp(-(0.25**2) / (2 * 0.2**2))  # the second and the fourth of four tokens look a quarter back
    found = guided_attention_loss(cross(*rows), mask(2, 3), mask(4, 5))
    assert found.item() == pytest.approx(2 * price)


def test_guided_attention_is_the_mean_over_heads_of_cross_attentions():
    one = cross([0.0, 1.0], [0.0, 1.0])
    both = one | cross([1.0, 0.0], [0.0, 1.0], name="decoder.1.cross") | cross([0.0, 1.0], [1.0, 0.0], name="decoder.self")
    assert guided_attention_loss(both, mask(2, 2), mask(2, 2)).item() == pytest.approx(
        guided_attention_loss(one, mask(2, 2), mask(2, 2)).item() / 2
    )


def test_guided_attention_is_weighted_and_added():
    model, batch = Network(dropout=0.0), Copies().batch(0)
    plain, charged = teacher_forcing_loss(model, batch), teacher_forcing_loss(model, batch, guided_attention=0.5)
    attended = model(batch.source, shifted(batch.target.data), weights=True).attended
    far = guided_attention_loss(attended, batch.source.keep, batch.target.keep)
    assert far.item() > 0
    assert charged.total.item() == pytest.approx((plain.total + 0.5 * far).item())
    assert charged.parts["guided_attention"].item() == pytest.approx(far.item())


def test_a_teacher_adds_guided_attention_by_its_weight():
    model, batch = Network(dropout=0.0), Copies().batch(0)
    taught = TeacherForcing(Train(guided_attention=0.5), model)(model, batch, Progress(0, 1))
    assert taught.total.item() == pytest.approx(teacher_forcing_loss(model, batch, guided_attention=0.5).total.item())


def test_guided_attention_needs_an_attention_over_the_source():
    text = "train.guided_attention needs an attention over the source, and this model has none; set it to 0"
    with pytest.raises(ValueError, match=text):
        TeacherForcing(Train(guided_attention=1.0), Plain())
    with pytest.raises(ValueError, match=text):
        guided_attention_loss(cross([1.0, 0.0], name="decoder.0.self"), mask(2, 2), mask(1, 1))
