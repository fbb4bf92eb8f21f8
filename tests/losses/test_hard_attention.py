"""Two looks at three keys, few enough to go through all nine ways to look."""

import math
from dataclasses import replace
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from regard.attention import Attention
from regard.attention.normalise.hard import Hard
from regard.attention.types import Attended, Sampled
from regard.config import AttentionPart, Dropout, Model, Train
from regard.losses.hard_attention import LearnedBaseline, MovingAverage, Reinforce, find_hard_attentions, set_soft_share
from regard.models.seq2seq import build

DRAWS = 20_000
NAMES = ("additive+hard", "additive")
FEW = 4
"""How many standard errors a mean of draws may be off: one seed in some hundreds goes further in one of the numbers."""


class Tables(NamedTuple):
    """A decoder in tables. The second look and the second token depend on where the first look fell."""

    first: Tensor
    """The scores of the first look, (keys)."""
    second: Tensor
    """The scores of the second look for each first one, (keys, keys)."""
    token: Tensor
    """log p of the first token for each first look, (keys)."""
    last: Tensor
    """log p of the second token for each pair of looks, (keys, keys)."""


def tables() -> Tables:
    """Where the first look falls decides how well the first token goes, and much of how well the second does."""
    numbers = (
        [0.2, -0.3, 0.5],
        [[0.1, 0.4, -0.2], [0.6, -0.5, 0.0], [-0.3, 0.2, 0.3]],
        [-1.0, -3.0, -5.0],
        [[-1.5, -2.5, -1.0], [-4.0, -3.0, -4.5], [-6.0, -7.0, -6.5]],
    )
    return Tables(*(torch.tensor(each, dtype=torch.float64) for each in numbers))


def exact() -> list[Tensor]:
    """The gradient of -E[log p(y | a)] over all nine ways to look."""
    made = Tables(*(each.requires_grad_() for each in tables()))
    chance = made.first.softmax(0)[:, None] * made.second.softmax(1)
    expected = (chance * (made.token[:, None] + made.last)).sum()
    return [-each for each in torch.autograd.grad(expected, made)]


VALUES = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)


def drawn(draws: int = DRAWS) -> tuple[Tables, Attended, Tensor]:
    """Many pairs of looks, each with tables of its own: each draw then has its own gradient."""
    made = Tables(*(each.expand(draws, *each.shape).clone().requires_grad_() for each in tables()))
    one, chance = Hard()(made.first[:, None, None])
    two, other = Hard()(one @ made.second[:, None])
    pair = one[:, 0, 0, :, None] * two[:, 0, 0, None]
    likelihood = torch.stack(((one[:, 0, 0] * made.token).sum(-1), (pair * made.last).sum((1, 2))), dim=1)
    sampled = Sampled(*(torch.cat(each, dim=2) for each in zip(chance, other, strict=True)))
    return made, Attended(torch.cat((one, two), dim=2)[:, 0] @ VALUES, sampled=sampled), likelihood


def looks(baseline: str = "none", reward: str = "rest", bonus: float = 0.0) -> Reinforce:
    """A teacher that has seen what is to be expected, if it expects anything."""
    made = Reinforce(Train(reinforce_baseline=baseline, reinforce_reward=reward, entropy_bonus=bonus), {"look": 2}).double()
    if made.baseline is not None:
        made.baseline.update(drawn(1000)[2].mean().detach())
    if baseline == "learned":
        learn(made)
    return made


def learn(made: Reinforce, steps: int = 60) -> None:
    """Let a baseline learn from its squared error, as a training does."""
    torch.nn.init.uniform_(made.baseline.v[0], -0.1, 0.1)
    optimiser = torch.optim.Adam(made.parameters(), lr=0.02)
    for _ in range(steps):
        optimiser.zero_grad()
        cost(made, *drawn(200)[1:]).backward()
        optimiser.step()


def cost(made: Reinforce, attended: Attended, likelihood: Tensor) -> Tensor:
    keep = torch.ones_like(likelihood, dtype=torch.bool)
    return made({"look": attended}, keep, likelihood.detach())[0] - likelihood.sum()


def gradients(made: Reinforce) -> list[Tensor]:
    """The gradient of every draw, by table."""
    torch.manual_seed(1)
    leaves, attended, likelihood = drawn()
    return list(torch.autograd.grad(cost(made, attended, likelihood), leaves))


def off(made: Reinforce) -> float:
    """By how many standard errors the mean of the draws misses the exact gradient, in the number where it misses most."""
    misses = [
        ((each.mean(0) - wanted).abs() / (each.std(0) / math.sqrt(DRAWS)).clamp_min(1e-12)).max().item()
        for each, wanted in zip(gradients(made), exact(), strict=True)
    ]
    return max(misses)


def noise(made: Reinforce) -> float:
    """The variance of one draw's gradient for the scores, summed over all numbers."""
    first, second, *_ = gradients(made)
    return (first.var(0).sum() + second.var(0).sum()).item()


@pytest.mark.parametrize("reward", ["rest", "sentence"])
@pytest.mark.parametrize("baseline", ["none", "moving_average", "learned"])
def test_the_mean_gradient_of_draws_meets_the_exact_one(baseline, reward):
    assert off(looks(baseline, reward)) < FEW


def test_a_reward_of_the_token_alone_is_blind_to_what_a_look_changes_later():
    assert off(looks("none", "token")) > 5 * FEW


def test_a_baseline_lowers_the_variance_and_a_better_one_more():
    none, average, learned = (noise(looks(baseline)) for baseline in ("none", "moving_average", "learned"))
    assert average < none / 4
    assert learned < average / 1.5


def test_what_came_before_a_look_only_adds_to_the_variance():
    assert noise(looks("moving_average", "rest")) < 0.7 * noise(looks("moving_average", "sentence"))


def look(log: list[float], entropy: list[float], context: list[list[float]]) -> Attended:
    """Looks of one row and one head."""
    learned = torch.tensor([[log]], requires_grad=True)
    return Attended(torch.tensor([context]), sampled=Sampled(learned, torch.tensor([[entropy]], requires_grad=True)))


LIKELIHOOD = torch.tensor([[-1.0, -2.0, -4.0, 0.0]])
KEEP = torch.tensor([[True, True, True, False]])
CONTEXT = [[1.0], [2.0], [3.0], [4.0]]


@pytest.mark.parametrize(("reward", "credited"), [("token", [1, 2, 4]), ("rest", [7, 6, 4]), ("sentence", [7, 7, 7])])
def test_each_look_is_credited_with_what_the_reward_says(reward, credited):
    attended = look([0.0] * 4, [0.0] * 4, CONTEXT)
    total, _ = Reinforce(Train(reinforce_baseline="none", reinforce_reward=reward), {})({"look": attended}, KEEP, LIKELIHOOD)
    (slope,) = torch.autograd.grad(total, attended.sampled.log_probability)
    assert slope.flatten().tolist() == [*credited, 0]  # -(R - 0), and nothing for padding


def test_the_baseline_is_a_token_s_times_the_tokens_that_a_look_is_credited_with():
    made = Reinforce(Train(reinforce_baseline="moving_average", reinforce_reward="rest"), {})
    made.baseline.update(torch.tensor(-2.0))
    attended = look([0.0] * 4, [0.0] * 4, CONTEXT)
    total, told = made({"look": attended}, KEEP, LIKELIHOOD)
    (slope,) = torch.autograd.grad(total, attended.sampled.log_probability)
    assert slope.flatten().tolist() == [7 - 6, 6 - 4, 4 - 2, 0]
    assert told["baseline_error"].item() == pytest.approx(1 / 3 + 4 / 2 + 4 / 1)


def test_being_undecided_is_paid_for_and_what_only_steers_costs_nothing():
    attended = look([-1.0, -2.0, -3.0, -4.0], [1.0, 2.0, 3.0, 100.0], CONTEXT)
    total, told = Reinforce(Train(reinforce_baseline="none", entropy_bonus=0.5), {})({"look": attended}, KEEP, LIKELIHOOD)
    assert total.item() == pytest.approx(-0.5 * 6)
    assert told["attention_entropy"].item() == 6
    (slope,) = torch.autograd.grad(total, attended.sampled.entropy)
    assert slope.flatten().tolist() == [-0.5, -0.5, -0.5, 0]


def test_every_head_of_every_attention_gets_its_term_and_one_that_draws_nothing_gets_none():
    two = Sampled(torch.zeros(1, 2, 4, requires_grad=True), torch.ones(1, 2, 4))
    one = look([0.0] * 4, [1.0] * 4, CONTEXT)
    attended = {"a": Attended(torch.zeros(1, 4, 1), sampled=two), "b": Attended(torch.zeros(1, 4, 1)), "c": one}
    made = Reinforce(Train(reinforce_baseline="none", entropy_bonus=0.5), {})
    total, told = made(attended, KEEP, LIKELIHOOD)
    assert total.item() == pytest.approx(-0.5 * 9)  # three heads, three tokens
    assert told["attention_entropy"].item() == pytest.approx(3)  # of a head
    slopes = torch.autograd.grad(total, (two.log_probability, one.sampled.log_probability))
    assert slopes[0].tolist() == [[[7, 6, 4, 0], [7, 6, 4, 0]]]
    assert slopes[1].tolist() == [[[7, 6, 4, 0]]]


def test_the_moving_average_begins_with_what_it_sees_first_and_then_follows_slowly():
    average = MovingAverage()
    assert average("", torch.zeros(1, 2, 3), torch.zeros(1, 2), torch.ones(1, 2)).tolist() == [[0, 0]]
    for value, expected in ((-4.0, -4.0), (-2.0, -3.8), (-2.0, -3.62)):
        average.update(torch.tensor(value))
        assert average.mean.item() == pytest.approx(expected)


def test_a_learned_baseline_begins_as_the_moving_average():
    learned = LearnedBaseline({"look": 1})
    learned.update(torch.tensor(-3.0))
    assert learned("look", torch.randn(2, 4, 1), torch.rand(2, 4), torch.ones(2, 4)).tolist() == [[-3.0] * 4] * 2


def test_a_learned_baseline_knows_the_look_before_the_entropy_and_the_tokens_and_nothing_of_the_draw_itself():
    learned = LearnedBaseline({"other": 5, "look": 1})
    torch.nn.init.normal_(learned.v[1])
    context, entropy, count = torch.randn(1, 4, 1), torch.rand(1, 4), torch.ones(1, 4)
    before = learned("look", context, entropy, count)
    context[0, 2] += 1.0
    changed = learned("look", context, entropy, count) != before
    assert changed.tolist() == [[False, False, False, True]]
    entropy[0, 1] += 1.0
    assert (learned("look", context, entropy, count) != before).tolist() == [[False, True, False, True]]
    count[0, 0] += 1.0
    assert (learned("look", context, entropy, count) != before).tolist() == [[True, True, False, True]]


def test_a_learned_baseline_learns_by_its_squared_error_and_teaches_the_model_nothing():
    made = Reinforce(Train(reinforce_baseline="learned", reinforce_reward="token", entropy_bonus=0.0), {"look": 1})
    attended = look([0.0] * 4, [1.0] * 4, CONTEXT)
    attended.context.requires_grad_()
    total, _ = made({"look": attended}, KEEP, LIKELIHOOD)
    found = torch.autograd.grad(total, (made.baseline.v[0], attended.context, attended.sampled.entropy), allow_unused=True)
    known = torch.tensor([[0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [2.0, 1.0, 1.0]])  # the context before, the entropy, 1 / tokens
    hidden = torch.tanh(made.baseline.W[0](known))
    torch.testing.assert_close(found[0], (-2 * LIKELIHOOD[0, :3, None] * hidden).sum(0))
    assert not any(each is not None and each.any() for each in found[1:])


def test_only_attentions_that_draw_are_found_by_name_and_size():
    model = Model(decoder="transformer", hidden_size=8, layers=2, attention=AttentionPart("additive+hard"), heads=2)
    made = build(model, Dropout(), 7, 7, joint=False)
    assert find_hard_attentions(made) == {"decoder.0.cross": 8, "decoder.1.cross": 8}
    assert (
        find_hard_attentions(build(replace(model, attention=AttentionPart("additive+gumbel")), Dropout(), 7, 7, joint=False))
        == {}
    )
    assert find_hard_attentions(Attention(4, 6, normalise="hard", score="additive")) == {"": 6}


@pytest.mark.parametrize("baseline", ["none", "moving_average", "learned"])
def test_draws_teach_an_attention_where_to_look(baseline):
    """Each query names a place, and the value that stands there is right."""
    places, batch = 5, 32
    attention = Attention(places, places, places, score="bilinear", normalise="hard")
    made = Reinforce(Train(reinforce_baseline=baseline), {"look": places})
    optimiser = torch.optim.Adam([*attention.parameters(), *made.parameters()], lr=0.05)
    keys = torch.eye(places).expand(batch, places, places)

    def asked() -> tuple[Attended, Tensor, Tensor]:
        values, named = torch.eye(places)[torch.rand(batch, places).argsort()], torch.randint(places, (batch, 4))
        attended = attention(torch.eye(places)[named], attention.remember(keys, values), weights=True)
        right = (values.gather(1, named[..., None].expand(-1, -1, places)) * attended.context).sum(-1)
        return attended, named, 3 * (right - 1)

    for _ in range(150):
        attended, _, likelihood = asked()
        total, _ = made({"look": attended}, torch.ones_like(likelihood, dtype=torch.bool), likelihood)
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
        if made.baseline is not None:
            made.baseline.update(likelihood.mean())
    attention.eval()
    attended, named, _ = asked()
    assert torch.equal(attended.weights[:, 0].argmax(-1), named)


def test_attentions_that_draw_are_told_how_many_of_their_looks_are_soft():
    hard, soft = (build(Model(attention=AttentionPart(name), hidden_size=8), Dropout(), 7, 7, joint=False) for name in NAMES)
    for model in (hard, soft):
        set_soft_share(model, 0.5)
    assert hard.decoder.cross.normalise.soft == 0.5
    assert not hasattr(soft.decoder.cross.normalise, "soft")
