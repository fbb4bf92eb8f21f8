import math
from functools import partial
from itertools import combinations_with_replacement

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.func import functional_call
from torch.testing import assert_close

from regard.attention import Encoded
from regard.attention.mechanisms import monotonic
from regard.attention.mechanisms.mocha import Mocha
from regard.attention.mechanisms.monotonic import Energy, Monotonic, MonotonicNormaliser
from regard.attention.monotonic import BLOCK
from regard.attention.scope import Scope
from regard.models.attention_factory import build_attention
from regard.models.decoders.convolution import Convolution
from regard.models.decoders.recurrent import Recurrent
from regard.models.decoders.transformer import Transformer
from regard.models.layers.beam_attention import attend_beams
from regard.registry import find
from regard.tree import repeat

from .walks import Largest, counted, given

both_modes = pytest.mark.parametrize("mode", [True, False], ids=["training", "evaluation"])
both = pytest.mark.parametrize("name", ["monotonic", "mocha"])
HOLES = torch.tensor([[True] * 7, [True, True, False, True, False, True, False], [False] * 7])


def weights(made, query, memory, **options):
    return made(query, memory, weights=True, **options).weights[:, 0]


def test_the_energy_by_hand():
    """v is 5 long, so 10 vᵀ tanh / 5 - 1 with tanh of 0 and of something large."""
    energy = Energy(query=1, key=1, hidden=2, r=-1.0)
    energy.W.weight.data, energy.U.weight.data = torch.tensor([[[1.0], [0.0]]]), torch.tensor([[[0.0], [1.0]]])
    energy.v.weight.data, energy.g.data = torch.tensor([[[3.0, 4.0]]]), torch.full((1, 1, 1), 10.0)
    energy.b.data = torch.tensor([[[0.0, 50.0]]])
    found = energy(torch.zeros(1, 1, 1, 1), energy.prepare(torch.tensor([[[[-50.0], [50.0]]]])))
    assert_close(found, torch.tensor([[[[-1.0, 7.0]]]]))


def test_energies_begin_below_0_with_the_length_that_the_paper_gives_them():
    made = Monotonic(query=3, key=9)
    assert (made.score.r.item(), made.normalise.noise) == (-1.0, 3.0)
    assert_close(made.score.g.item(), 1 / 3)
    assert not made.score.b.any()
    assert Monotonic(query=3, r=-4.0).score.r.item() == -4.0


def test_even_chances_by_hand():
    made, memory = given(Monotonic(3, noise=0.0), torch.zeros(1, 2, 3), mode=True)
    found = weights(made, torch.zeros(1, 2, 3), memory)[0]
    assert found.tolist() == [[1 / 2, 1 / 4, 1 / 8], [1 / 4, 1 / 4, 3 / 16]]


@both
def test_training_makes_no_more_numbers_at_once_than_there_is_room_for(name, monkeypatch):
    made = find(name, "mechanisms")(8, noise=0.0).train()
    query, source = torch.randn(2, 9, 8, requires_grad=True), torch.randn(2, 5, 8)

    def gradients():
        context = made(query, made.remember(source)).context
        return [context, *torch.autograd.grad(context.square().sum(), [query, *made.parameters()])]

    right = gradients()
    monkeypatch.setattr(monotonic, "BLOCK", 400)
    for one, other in zip(gradients(), right, strict=True):
        assert_close(one, other)
    with torch.no_grad(), Largest() as largest:
        made(query, made.remember(source))
    assert largest.numbers <= 400 < 2 * 9 * 5 * 8


def test_training_weights_are_those_of_all_ways_to_walk():
    energies = torch.randn(2, 3, 4, dtype=torch.float64)
    made, memory = given(Monotonic(4, noise=0.0), energies, mode=True)
    assert_close(weights(made, energies, memory), walked(energies.sigmoid()), rtol=1e-13, atol=1e-13)


def walked(p):
    """Every row of stops, none before the one before; a stop behind the last key ends the walk."""
    rows, queries, keys = p.shape
    found = torch.zeros_like(p)
    for row in range(rows):
        for stops in combinations_with_replacement(range(keys + 1), queries):
            chance, begin = 1.0, 0
            for query, stop in enumerate(stops):
                chance *= math.prod(1 - p[row, query, key].item() for key in range(begin, stop))
                chance *= p[row, query, stop].item() if stop < keys else 1.0
                begin = stop
            for query, stop in enumerate(stops):
                if stop < keys:
                    found[row, query, stop] += chance
    return found


def test_a_walk_by_hand():
    """It stops at the first energy above 0, may stay there, and is over when there is none left."""
    energies = torch.tensor([[[-1.0, 2.0, 3.0], [9.0, 1.0, 9.0], [9.0, 0.0, 1.0], [9.0, 9.0, -1.0], [9.0, 9.0, 9.0]]])
    made, memory = given(Monotonic(3), energies)
    attended = made(energies, memory, weights=True)
    assert attended.weights[0, 0].tolist() == [[0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]
    assert attended.context[0].tolist() == attended.weights[0, 0].tolist()
    assert attended.state.tolist() == [3]


def test_when_energies_are_certain_training_and_evaluation_agree():
    energies = torch.randn(3, 6, 7).mul(3).sign().mul(100.0)
    made = Monotonic(7, noise=1.0)
    _, memory = given(made, energies)
    hard = weights(made, energies, memory)
    assert_close(weights(made.train(), energies, memory), hard)
    assert hard.any()


def test_over_all_queries_at_once_the_stages_give_the_same():
    energies = torch.randn(2, 5, 6)
    for mode in (True, False):
        made, memory = given(Monotonic(6, noise=0.0), energies, HOLES[:2, :6], mode)
        stages = made.normalise(energies[:, None], HOLES[:2, None, None, :6])
        assert_close(stages[:, 0], weights(made, energies, memory))


def test_long_sources_stay_exact_in_single_precision():
    """Where the product of 1 - p falls far below the smallest number, and where p is almost 0 for long."""
    quiet, loud = torch.full((1, 3, 2000), -9.0), torch.randn(1, 3, 2000).mul(4)
    energies = torch.cat((quiet, loud, quiet.clone().index_fill(-1, torch.arange(0, 2000, 700), 5.0)))
    normalise = MonotonicNormaliser(noise=0.0)
    exact = normalise(energies.double()[:, None], None)
    assert_close(normalise(energies[:, None], None).double(), exact, rtol=1e-5, atol=1e-30)
    assert exact[0, 0, 0].sum() > 0.2


def test_gradients_equal_small_differences():
    made = Monotonic(3, 2, noise=0.0, r=0.0).double()
    learned = dict(made.named_parameters())

    def run(query, source, *rest):
        memory = functional_call(Remembering(made), dict(zip(named(learned), rest, strict=True)), (source,))
        return functional_call(made, dict(zip(learned, rest, strict=True)), (query, memory)).context

    inputs = [torch.randn(1, 2, 3, dtype=torch.float64), torch.randn(1, 4, 2, dtype=torch.float64)]
    assert gradcheck(run, [*(each.requires_grad_() for each in inputs), *learned.values()])


class Remembering(nn.Module):
    def __init__(self, made):
        super().__init__()
        self.made = made

    def forward(self, source):
        return self.made.remember(Encoded(source, torch.tensor([[True, True, False, True]])))


def named(learned):
    return [f"made.{name}" for name in learned]


@both
@both_modes
def test_step_by_step_equals_all_at_once(name, mode):
    made = find(name)(4, 5, r=0.0, noise=0.0).train(mode)
    memory, query = made.remember(Encoded(torch.randn(3, 7, 5), HOLES)), torch.randn(3, 4, 4)
    together = made(query, memory, weights=True, statistics=("received",))
    state = made.start(memory)
    for place in range(4):
        step = made(query[:, place : place + 1], memory, state, offset=place, weights=True)
        assert_close(step.context[:, 0], together.context[:, place])
        assert_close(step.weights[:, :, 0], together.weights[:, :, place])
        state = step.state
    assert_close(state, together.state)
    assert_close(together.context, together.weights[:, 0] @ memory.values[:, 0])
    assert_close(together.statistics["received"], together.weights.sum(2))


@both
@both_modes
def test_padding_might_as_well_not_exist_wherever_it_stands(name, mode):
    made = find(name)(4, 5, r=0.0, noise=0.0).train(mode)
    nn.init.constant_(made.score.g, 3.0)
    source, query = torch.randn(3, 7, 5), torch.randn(3, 4, 4)
    poisoned = source.masked_fill(~HOLES[..., None], math.nan)
    attended = made(query, made.remember(Encoded(poisoned, HOLES)), weights=True)
    assert attended.weights[:2].any()
    for row, keep in enumerate(HOLES[:2]):
        alone = made(query[row : row + 1], made.remember(source[row : row + 1, keep]), weights=True)
        assert_close(attended.context[row], alone.context[0])
        assert_close(attended.weights[row, :, :, keep], alone.weights[0])
        assert not attended.weights[row, :, :, ~keep].any()
    assert not attended.context[2].any()
    assert not attended.weights[2].any()


@both
@both_modes
def test_a_source_without_keys_gives_nothing(name, mode):
    made = find(name)(4, 5).train(mode)
    attended = made(torch.randn(2, 3, 4), made.remember(torch.randn(2, 0, 5)), weights=True)
    assert attended.context.tolist() == torch.zeros(2, 3, 5).tolist()
    assert attended.weights.shape == (2, 1, 3, 0)


class NotYet(Scope):
    """Query q does not see key q."""

    def __call__(self, b, h, q, k):
        return k != q


@both
@both_modes
def test_what_a_scope_hides_from_a_query_is_passed_over(name, mode):
    energies = torch.full((1, 2, 3 if name == "monotonic" else 6), 100.0)
    made, memory = given(find(name)(3, scope=NotYet(), noise=0.0), energies, mode=mode)
    first = {0: [0, 1, 0], 1: [1, 0, 0], 2: [1, 0, 0]}
    for offset in (0, 1, 2):
        assert_close(weights(made, energies[:, :1], memory, offset=offset)[0, 0], torch.tensor(first[offset]).float())
    per_row = made(energies[:, :1], memory, offset=torch.tensor([1]), weights=True)
    assert per_row.weights[0, 0, 0].tolist() == [1, 0, 0]


@both
def test_a_query_that_sees_nothing_teaches_nothing(name):
    made = find(name)(4, 5)
    query = torch.randn(2, 3, 4, requires_grad=True)
    source = torch.randn(2, 4, 5, requires_grad=True)
    keep = torch.tensor([[False] * 4, [True] * 4])
    made(query, made.remember(Encoded(source, keep))).context.sum().backward()
    assert not query.grad[0].any()
    assert not source.grad[0].any()
    assert query.grad[1].any()
    assert all(each.grad.isfinite().all() for each in (query, source, *made.parameters()))


@both
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@both_modes
def test_half_precision_stays_finite(name, dtype, mode):
    made = find(name)(4, 5).to(dtype).train(mode)
    nn.init.constant_(made.score.g, 1e4)
    query = torch.randn(2, 3, 4, dtype=dtype, requires_grad=True)
    attended = made(query, made.remember(torch.randn(2, 20, 5, dtype=dtype)), weights=True)
    assert attended.context.dtype == attended.weights.dtype == dtype
    assert attended.context.isfinite().all()
    if mode:
        attended.context.float().sum().backward()
        assert query.grad.isfinite().all()
        assert attended.state.dtype == torch.float32  # what is passed on adds up over many queries


def test_noise_is_drawn_only_while_training():
    made = Monotonic(4, 5, r=0.0)
    memory, query = made.remember(torch.randn(1, 6, 5)), torch.randn(1, 2, 4)
    assert not torch.equal(weights(made, query, memory), weights(made, query, memory))
    quiet = Monotonic(4, 5, noise=0.0)
    quiet.load_state_dict(made.state_dict())
    assert torch.equal(weights(quiet, query, memory), weights(quiet, query, memory))
    made.eval()
    assert torch.equal(weights(made, query, memory), weights(made, query, memory))


def test_noise_has_the_deviation_that_was_asked_for():
    normalise = MonotonicNormaliser(noise=2.0)
    stop, go = normalise.stop_probabilities(torch.zeros(1, 1, 1, 100_000))
    assert_close(stop + go, torch.ones_like(stop))
    assert 1.97 < stop.logit().std() < 2.03


def test_weights_are_those_before_dropout():
    torch.manual_seed(1)
    made, memory = given(Monotonic(3, noise=0.0, dropout=0.5), torch.zeros(1, 2, 3), mode=True)
    attended = made(torch.zeros(1, 2, 3), memory, weights=True)
    assert attended.weights[0, 0].tolist() == [[1 / 2, 1 / 4, 1 / 8], [1 / 4, 1 / 4, 3 / 16]]
    dropped = attended.context == 0
    assert dropped.any()
    assert_close(attended.context[~dropped], 2 * attended.weights[0][~dropped])


@pytest.mark.parametrize(("name", "keys", "queries"), [("monotonic", 2_000, 20), ("mocha", 10_000, 40)])
def test_evaluation_takes_linear_time_and_holds_no_row_of_the_source(name, keys, queries):
    made = find(name)(4, 4).eval()
    source, query = torch.randn(2, keys, 4), torch.randn(2, queries, 4)
    memory = made.remember(source)
    made.score.r.data -= made.score(query[:, None, :1], memory.keys).quantile(0.995)
    with counted(made.score) as energies, Largest() as largest:
        attended = made(query, memory)
    assert (attended.state > keys / 2).all()  # it went somewhere
    assert energies[0] <= 2 * (keys + queries * BLOCK)
    assert largest.numbers < keys / 4


@both
def test_beams_walk_each_on_their_own(name):
    """And share one memory, which is not copied for them."""
    made, keep = build_attention(name, 4, 5).eval(), torch.arange(2000).expand(2, 2000) % 7 != 3
    nn.init.constant_(made.score.r, 0.0)
    memory, query = made.remember(Encoded(torch.randn(2, 2000, 5), keep)), torch.randn(6, 3, 4)
    alone = made(query, repeat(memory, 3), weights=True)
    state = repeat(made.start(memory), 3)
    for place in range(3):
        with Largest() as largest:
            step = attend_beams(made, query[:, place : place + 1], memory, state, position=place)
        assert_close(step.context[:, 0], alone.context[:, place])
        assert largest.numbers <= 6 * BLOCK * 10
        again = attend_beams(made, query[:, place : place + 1], memory, state, position=place, weights=True)
        assert_close(again.weights[:, :, 0], alone.weights[:, :, place])
        state = step.state
    assert state.tolist() == alone.state.tolist()
    assert len(set(state.tolist())) > 1


@both
@pytest.mark.parametrize("decoder", [Recurrent, Convolution, Transformer])
def test_every_decoder_writes_the_same_at_once_and_step_by_step(name, decoder):
    made = decoder(9, 6, 4, attention=partial(build_attention, name)).eval()
    for module in made.modules():
        if isinstance(module, Energy):
            nn.init.constant_(module.r, 0.0)
    encoded = Encoded(torch.randn(2, 7, 6), HOLES[:2], (torch.randn(2, 1, 6),) * 2)
    memory, target = made.remember(encoded), torch.tensor([[1, 4, 5], [1, 6, 2]])
    together, state = made(target, memory, weights=True), made.start(memory)
    assert any(attended.weights.any() for attended in together.attended.values())
    for place in range(3):
        step = made.step(target[:, place], memory, state)
        assert_close(step.output, together.output[:, place], rtol=1e-4, atol=1e-5)
        state = step.state


@both
def test_by_one_word_with_a_size_and_a_scope(name):
    made = build_attention(f"{name}+local", 4, 6, size=3, dropout=0.25, scope="causal")
    assert (type(made), made.size, made.dropout) == (find(name), 3, 0.25)
    assert made(torch.randn(2, 3, 4), made.remember(torch.randn(2, 5, 6))).context.shape == (2, 3, 3)
    assert made.positional


@both
def test_a_normaliser_is_refused(name):
    with pytest.raises(ValueError, match=f"{name.title()} brings its own normalisation, got normalise='sparsemax'; leave"):
        build_attention(f"{name}+sparsemax", 4, 6)


@pytest.mark.parametrize("kind", [Monotonic, Mocha])
def test_a_kernel_is_refused_since_there_is_none(kind):
    with pytest.raises(ValueError, match=f"no kernel covers {kind.__name__}, which walks along its source"):
        kind(4, 6, impl="fused")


def test_a_negative_noise_is_refused():
    with pytest.raises(ValueError, match="Monotonic needs noise of 0 or more, a standard deviation, got -1"):
        Monotonic(4, noise=-1.0)


@both
def test_it_learns_to_walk_and_then_walks_without_doubt(name):
    """Each query asks for the next key of its own kind, further to the right each time."""
    kinds, rows, keys = 6, 32, 9
    made = find(name)(kinds, noise=1.0)  # of 3, the default, it learns in four times as many steps
    optimiser = torch.optim.Adam(made.parameters(), 0.1)
    for _ in range(80):
        query, source, wanted = lesson(rows, keys, kinds)
        loss = (made(query, made.remember(source)).context - wanted).square().sum(-1).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    query, source, wanted = lesson(200, keys, kinds)
    read = made.eval()(query, made.remember(source)).context
    assert (read.argmax(-1) == wanted.argmax(-1)).float().mean() > 0.98
    assert read.sum(-1).bool().float().mean() > 0.98


def lesson(rows, keys, kinds):
    """A row of different kinds among blanks, and the same kinds in order as queries."""
    order = torch.rand(rows, kinds).argsort(-1)[:, :3]
    places = torch.rand(rows, keys).argsort(-1)[:, :3].sort(-1).values
    one_hot = nn.functional.one_hot(order, kinds).float()
    source = torch.zeros(rows, keys, kinds).scatter(1, places[..., None].expand(-1, -1, kinds), one_hot)
    return one_hot, source, one_hot
