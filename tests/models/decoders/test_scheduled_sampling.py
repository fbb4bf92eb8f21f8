import math

import pytest
import torch
from torch.testing import assert_close

from regard.config import Train
from regard.models.decoders.scheduled_sampling import (
    forward_scheduled,
    sampling_probability,
    solve_half_way,
    teacher_forcing_share,
)

from ..small import batch, made

KINDS = {
    "luong": {},
    "bahdanau": {"order": "bahdanau"},
    "without feeding": {"input_feeding": False},
    "none": {"attention": "none"},
    "convolution": {"encoder": "convolution", "decoder": "convolution", "layers": 2},
    "transformer": {"decoder": "transformer", "layers": 2},
}
SCHEDULES = ("constant", "linear", "exponential", "inverse_sigmoid")
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


@every_kind
def test_fed_only_the_target_it_equals_the_fast_way(kind):
    model = made(**kind).eval()
    source, target = batch()
    memory = model.encode(source)
    names = ("entropy", "received", "uniform")
    expected = model.decoder(target, memory, weights=True, statistics=names)
    found = forward_scheduled(model.decoder, target, memory, own=0.0, weights=True, statistics=names)
    assert_close(found.output, expected.output)
    assert set(found.attended) == set(expected.attended)
    for name, attended in expected.attended.items():
        assert_close(found.attended[name].weights, attended.weights)
        assert_close(dict(found.attended[name].statistics), dict(attended.statistics), check_dtype=False)
    assert all(each.weights is None for each in forward_scheduled(model.decoder, target, memory, own=0.0).attended.values())


@every_kind
def test_fed_only_its_own_it_equals_a_greedy_search(kind):
    model = made(**kind).eval()
    source, target = batch()
    memory = model.encode(source)
    found = model.decoder(target, memory, own=1.0).output
    state, token = model.decoder.start(memory), target[:, 0]
    for place in range(3):
        step = model.decoder.step(token, memory, state)
        state, token = step.state, step.output.argmax(-1)
        assert_close(found[:, place], step.output)
    other = torch.randint_like(target, 4, 13)
    other[:, 0] = target[:, 0]
    assert torch.equal(model.decoder(other, memory, own=1.0).output, found)


@every_kind
def test_where_the_draw_is_below_own_the_token_is_its_own(kind):
    model = made(**kind).eval()
    source, target = batch()
    memory = model.encode(source)
    draws = torch.tensor([[0.0, 0.9, 0.1], [0.0, 0.1, 0.9], [0.0, 0.1, 0.1]])
    found = model.decoder(target, memory, own=0.5, draws=draws).output
    best = found.argmax(-1)
    mixed = target.clone()
    for row, place in ((0, 2), (1, 1), (2, 1), (2, 2)):
        mixed[row, place] = best[row, place - 1]
    assert_close(found, model.decoder(mixed, memory).output)


@every_kind
def test_gradients_reach_every_parameter(kind):
    model = made(**kind)
    source, target = batch()
    model(source, target, own=0.5).output.square().sum().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in model.parameters())


def test_draws_that_are_not_given_come_from_the_seed():
    model = made()
    source, target = batch()
    torch.manual_seed(3)
    one = model(source, target, own=0.5).output
    torch.manual_seed(3)
    assert torch.equal(model(source, target, own=0.5).output, one)


@pytest.mark.parametrize("own", [-0.5, 1.5])
def test_a_share_that_is_no_probability_is_refused(own):
    with pytest.raises(ValueError, match=f"own needs to be a probability from 0 to 1, got {own}"):
        made()(*batch(), own=own)


def schedule(kind, most=1.0, steps=1000):
    return Train(scheduled_sampling=kind, scheduled_sampling_max=most, scheduled_sampling_steps=steps)


def test_without_a_schedule_the_target_is_always_fed():
    assert sampling_probability(schedule("none"), 500) == 0.0


@pytest.mark.parametrize("kind", SCHEDULES)
@pytest.mark.parametrize("most", [1.0, 0.25])
@pytest.mark.parametrize("steps", [1, 2, 7, 60])
def test_every_schedule_rises_to_its_most_and_stays_there(kind, most, steps):
    shares = [sampling_probability(schedule(kind, most, steps), step) for step in range(2 * steps + 1)]
    assert shares == sorted(shares)
    assert shares[0] == (most if kind == "constant" else 0.0)
    assert set(shares[steps:]) == {most}


def test_schedules_have_their_shape():
    assert sampling_probability(schedule("linear"), 250) == pytest.approx(0.25)
    assert sampling_probability(schedule("exponential"), 500) == pytest.approx((1 - 0.1) / (1 - 0.01))
    assert sampling_probability(schedule("inverse_sigmoid"), 500) == pytest.approx(0.5, abs=0.01)
    assert sampling_probability(schedule("inverse_sigmoid"), 100) < 0.03


def test_the_inverse_sigmoid_is_the_paper_s():
    k = solve_half_way(500.0)
    assert k * math.log(k) == pytest.approx(500)
    assert teacher_forcing_share("inverse_sigmoid", 500, 1000) == pytest.approx(0.5)
    assert teacher_forcing_share("inverse_sigmoid", 0, 1000) == pytest.approx(k / (k + 1))


def test_a_share_above_one_is_refused():
    with pytest.raises(ValueError, match=r"train.scheduled_sampling_max needs to be from 0 to 1, got 1.5"):
        sampling_probability(schedule("constant", 1.5), 0)
