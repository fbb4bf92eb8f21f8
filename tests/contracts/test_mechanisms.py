"""What must hold for every mechanism, built from its sizes or by its name, and in every decoder that reads by it."""

from copy import deepcopy
from functools import partial

import pytest
import torch
from torch import nn
from torch.autograd import grad, gradcheck
from torch.func import functional_call
from torch.testing import assert_close

from regard import registry
from regard.attention import Encoded, Padding
from regard.attention.stateful import concatenate_steps
from regard.attention.statistics import measure
from regard.models.decoders.convolution import Convolution
from regard.models.decoders.recurrent import Recurrent
from regard.models.decoders.transformer import Transformer
from regard.models.layers.beam_attention import attend_beams
from regard.tree import map_tree, repeat, select

from .mechanisms import (
    BATCH,
    BEAMS,
    CASES,
    KEEP,
    KEY,
    KEYS,
    LENGTHS,
    NAMES,
    OFFSETS,
    OFTEN,
    QUERIES,
    QUERY,
    awake,
    every_case,
    loud,
    named,
    question,
    read,
    source,
    spoiled,
)
from .stages import soaked

close = partial(assert_close, rtol=1e-10, atol=1e-10)
unhooked = pytest.mark.unhooked  # what takes longest, since all the others check the same shapes


def test_every_file_in_the_folder_is_under_contract():
    assert set(registry.names("mechanisms")) <= {case.name for case in CASES} & set(NAMES)


@every_case
def test_there_is_something_to_see(case):
    """A case that reads nothing, or every query the same, would fulfil any contract."""
    made, query, encoded = case.build(), question(), source(None)
    found = made(query, made.remember(encoded), offset=1, weights=True)
    assert found.weights.any(-1).float().mean() > 0.5
    assert len(found.context.flatten(0, 1).unique(dim=0)) > BATCH


@every_case
def test_queries_one_at_a_time_equal_all_at_once(case):
    made, query = case.build(), question()
    memory = made.remember(source())
    together = made(query, memory, made.start(memory), offset=1, weights=True)
    state, looks = made.start(memory), []
    for place in range(QUERIES):
        offset = torch.full((BATCH,), 1 + place)
        looks.append(made(query[:, place : place + 1], memory, state, offset=offset, weights=True))
        state = looks[-1].state
    alone = concatenate_steps(looks)
    close((together.context, together.weights, together.state), (alone.context, alone.weights, alone.state))
    close(made(query, memory, offset=1).context, together.context)  # without a state it begins by itself


@every_case
def test_padding_might_as_well_not_exist(case):
    made, query, whole = case.build(), question(), source()
    padded = made(query, made.remember(spoiled(whole)), offset=1, weights=True)
    assert not padded.weights.masked_select(~KEEP[:, None, None]).any()
    for row, length in enumerate(LENGTHS):
        short = Encoded(whole.data[row : row + 1, :length], values=whole.values[row : row + 1, :length])
        alone = made(query[row : row + 1], made.remember(short), offset=1, weights=True)
        close(padded.context[row : row + 1], alone.context)
        close(padded.weights[row : row + 1, ..., :length], alone.weights)


@every_case
def test_what_stands_in_padding_teaches_nothing(case):
    made, query, whole = case.build(), question(), source()
    clean, dirty = (taught(made, query, encoded) for encoded in (whole, spoiled(whole)))
    close(dirty, clean)
    for gradient in dirty[1:3]:
        assert not gradient[~KEEP].any()


def taught(made, query, encoded, rows=slice(None)):
    """The gradients of some rows' context and weights in query, source, values and parameters; zeros where there is none."""
    inputs = [each.clone().requires_grad_() for each in (query, encoded.data, encoded.values)]
    inputs += made.parameters()
    found = made(inputs[0], made.remember(encoded._replace(data=inputs[1], values=inputs[2])), offset=1, weights=True)
    loss = sum((torch.arange(1, each[rows].numel() + 1) * each[rows].flatten()).sum() for each in found[:2])
    return grad(loss, inputs, allow_unused=True, materialize_grads=True)


@every_case
def test_a_row_alone_equals_the_row_in_a_batch(case):
    made, query, whole = case.build(), question(), source()
    together = made(query, made.remember(whole), offset=torch.tensor(OFFSETS), weights=True)
    for row, offset in enumerate(OFFSETS):
        only = torch.tensor([row])
        alone = made(query[only], made.remember(select(whole, only)), offset=offset, weights=True)
        expected = select(together, only)
        close((alone.context, alone.weights, alone.state), (expected.context, expected.weights, expected.state))


@every_case
def test_who_sees_nothing_reads_zeros_and_teaches_nothing(case):
    """A projection behind the heads has a bias, and that is all that is left of it."""
    made, query, blind = case.build(), question(), torch.tensor([False, True, False])
    encoded = source(~blind[:, None].expand_as(KEEP))
    memory = made.remember(encoded)
    found = made(query, memory, offset=1, weights=True)
    nothing = read(made, torch.zeros_like(found.weights), memory)
    assert not found.weights[blind].any()
    assert torch.equal(found.context[blind], nothing[blind])
    assert isinstance(made.output, nn.Linear) or not nothing.any()
    assert all(each.isfinite().all() for each in taught(made, query, encoded))
    names = ["query", "source", "values", *(name for name, _ in made.named_parameters())]
    gradients = zip(names, taught(made, query, encoded, blind), strict=True)
    assert [name for name, each in gradients if each.any()] == ["output.bias"] * isinstance(made.output, nn.Linear)


@every_case
def test_a_source_without_places_is_like_one_of_padding(case):
    made, query, nothing = case.build(), question(), source(torch.zeros_like(KEEP))
    padded = made(query, made.remember(nothing), offset=1, weights=True)
    assert not padded.weights.any()
    assert all(each.isfinite().all() for each in taught(made, query, nothing))
    for keep in (None, KEEP[:, :0]):
        empty = made(query, made.remember(source(keep, keys=0)), offset=1, weights=True)
        assert empty.weights.shape == (*padded.weights.shape[:3], 0)
        close(empty.context, padded.context)


LESS = {
    "local_p": "the Gaussian takes from what its window shares",
    "local_p+additive+sparsemax": "as local_p",
    "local_p+dilated": "as local_p",
    "luong by location in a window": "as local_p",
    "local_m": "a window behind the end of a short source is empty",
}
"""Weights that add up to less than one although their normaliser would have them add up."""

MORE = {
    "memory_network": "it reads several times, and adds what it reads to the question",
    "memory_network, layerwise": "as memory_network",
    "memory_network+hard+causal": "as memory_network",
}
"""Contexts that are more than weights @ values."""


@every_case
def test_weights_are_shares_of_what_may_be_seen(case):
    made = case.build()
    weights = made(question(), made.remember(source()), offset=1, weights=True).weights
    allowed = (made.scope & Padding(KEEP)).allowed(BATCH, 1, QUERIES, KEYS, 1, weights.device)
    total = weights.sum(-1)
    assert (weights >= 0).all()
    assert not weights.masked_select(~allowed).any()
    if case.name in LESS:
        assert made.normalise.sums_to_one
        assert (total <= 1 + 1e-9).all()
        assert (total < 0.99).any(), "it need not be among those that read less"
    elif made.normalise.sums_to_one:
        close(total, allowed.any(-1).double().expand_as(total))


@every_case
def test_the_context_is_the_values_by_their_weights(case):
    made = case.build()
    memory = made.remember(source())
    found = made(question(), memory, offset=1, weights=True)
    if case.name in MORE:
        assert (read(made, found.weights, memory) - found.context).abs().amax() > 0.1, "it need not be among those"
    else:
        close(read(made, found.weights, memory), found.context)


STATISTICS = ("entropy", "max", "argmax", "top_2", "received", "mean_position", "spread")


@every_case
def test_what_is_asked_for_beside_the_context_does_not_change_it(case):
    made, query = case.build(), question()
    memory = made.remember(source())
    plain, looks, numbers, both = (
        made(query, memory, offset=1, weights=weights, statistics=statistics)
        for weights, statistics in ((False, ()), (True, ()), (False, STATISTICS), (True, STATISTICS))
    )
    for found in (looks, numbers, both):
        close((found.context, found.state), (plain.context, plain.state))
    assert (plain.weights, numbers.weights, dict(plain.statistics), dict(looks.statistics)) == (None, None, {}, {})
    expected = measure(looks.weights, None, STATISTICS)
    close((dict(numbers.statistics), dict(both.statistics)), (expected, expected))
    close(both.weights, looks.weights)


@every_case
def test_asking_changes_nothing_that_was_given(case):
    made, query, encoded = case.build(), question(), source()
    memory = made.remember(encoded)
    state = made(query, memory, offset=1).state
    given = query, encoded, memory, state, made.state_dict()
    before = map_tree(torch.clone, given)
    first, second = (made(query, memory, state, offset=1, weights=True) for _ in range(2))
    assert torch.equal(first.context, second.context)
    assert_close(given, before, rtol=0, atol=0)


@every_case
def test_weights_are_those_before_dropout(case):
    made = case.build(dropout=0.5).train()
    memory, query, contexts, weights = made.remember(source()), question(), [], []
    for made.dropout in (0.0, 0.5):
        torch.manual_seed(1)  # what is drawn by lot comes before what is dropped
        found = made(query[:, :1], memory, offset=1, weights=True)
        contexts.append(found.context)
        weights.append(found.weights)
    close(*(each[:, :1] if case.name in MORE else each for each in weights))  # later hops ask for what was not dropped
    assert not torch.allclose(*contexts)


@unhooked
@every_case
def test_gradients_equal_small_differences(case):
    """In a random direction of the space that holds query, source, values and all parameters at once."""
    whole, encoded = Whole(case.build()), source()
    learned = dict(whole.named_parameters())
    parts = [question(2), encoded.data, encoded.values, *learned.values()]
    sizes = [part.numel() for part in parts]

    def run(together):
        given = [piece.view_as(part) for piece, part in zip(together.split(sizes), parts, strict=True)]
        return functional_call(whole, dict(zip(learned, given[3:], strict=True)), tuple(given[:3]))

    together = torch.cat([part.detach().flatten() for part in parts]).requires_grad_()
    assert gradcheck(run, together, fast_mode=True, rtol=1e-5, atol=1e-7, check_undefined_grad=False)


class Whole(nn.Module):
    """A source remembered and asked: the context as it comes, and the context and weights as the stages give them."""

    def __init__(self, made):
        super().__init__()
        self.made = made

    def forward(self, query, data, values):
        memory = self.made.remember(Encoded(data, KEEP, values=values))
        return self.made(query, memory, offset=1).context, *self.made(query, memory, offset=1, weights=True)[:2]


@unhooked
@every_case
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_every_precision_stays_finite_at_scores_of_ten_thousand(case, dtype):
    made, query, encoded = loud(case)
    made = deepcopy(made).to(dtype)
    inputs = [each.to(dtype).requires_grad_() for each in (query, encoded.data, encoded.values)]
    memory = made.remember(Encoded(inputs[1], KEEP, values=inputs[2]))
    found = made(inputs[0], memory, offset=1, weights=True)
    plain = made(inputs[0], memory, offset=1)
    assert found.context.dtype == found.weights.dtype == plain.context.dtype == dtype
    results = found.context, found.weights, plain.context
    loss = sum(each.float().mean() for each in results)
    gradients = grad(loss, [*inputs, *made.parameters()], allow_unused=True, materialize_grads=True)
    assert all(each.isfinite().all() for each in (*results, *gradients))


@every_case
def test_beams_that_share_a_memory_find_what_they_would_alone(case):
    """Also when search has let the beams of a source change places between two steps."""
    made, whole = case.build(), source()
    memory, query, position = made.remember(whole), question(3, BEAMS * BATCH), repeat(torch.tensor(OFFSETS), BEAMS)
    swapped = torch.tensor([1, 0, 3, 2, 5, 4])
    first = attend_beams(made, query[:, :1], memory, repeat(made.start(memory), BEAMS), position=position, weights=True)
    first = select(first, swapped)
    second = attend_beams(made, query[:, 1:], memory, first.state, position=position + 1, weights=True)
    found = concatenate_steps([first, second])
    asked = torch.cat((query[swapped, :1], query[:, 1:]), dim=1)
    alone = made(asked, made.remember(repeat(whole, BEAMS)), offset=position, weights=True)
    close((found.context, found.weights, found.state), (alone.context, alone.weights, alone.state))


@pytest.mark.parametrize("name", NAMES)
def test_a_name_takes_the_options_of_a_config(name):
    made = awake(named(name)(QUERY, KEY, size=6, dropout=0.25, scope="causal")).eval()
    assert (made.dropout, made.scope) == (0.25, registry.build("causal", "scope"))
    found = made(question(), made.remember(Encoded(source().data)), offset=1, weights=True)
    assert found.context.shape == (BATCH, QUERIES, made.size)
    assert not found.weights.triu(2).any()
    assert found.weights.any()


TARGET = torch.tensor([[1, 4, 5], [1, 3, 3], [1, 6, 2], [1, 2, 2], [1, 5, 4], [1, 5, 3]])  # of both beams of each source
DECODERS = {
    "luong": partial(Recurrent, 7, KEY, QUERY),
    "bahdanau": partial(Recurrent, 7, KEY, QUERY, order="bahdanau"),
    "convolution": partial(Convolution, 7, KEY, QUERY, layers=2),
    "transformer": partial(Transformer, 7, KEY, QUERY, layers=2, heads=2),
}


@unhooked
@pytest.mark.parametrize("name", [name if name in (*OFTEN, "shaw") else soaked(name) for name in NAMES])
@pytest.mark.parametrize("kind", DECODERS)
def test_a_decoder_step_by_step_equals_itself_taught_and_itself_saved(name, kind):
    """With one memory for the beams of a source in the steps, and one for each row when taught; gradients included.

    Taught means all at once, with weights, and a second stretch that goes on from the state after a step.
    """
    made = decoder(name, kind)
    final = torch.randn(BATCH, 1, KEY, dtype=torch.float64)
    encoded = source()._replace(final=(final,), tokens=torch.randint(7, (BATCH, KEYS)))
    learned = [encoded.data.requires_grad_(), encoded.values.requires_grad_(), *made.parameters()]
    memory = made.remember(encoded)
    output, steps = written(made, memory, TARGET)
    taught, looks = (made(TARGET, repeat(memory, BEAMS), weights=weights) for weights in (False, True))
    rest = made.write(TARGET[:, 1:], repeat(memory, BEAMS), steps[0].state)
    close((taught.output, looks.output, rest.output), (output, output, output[:, 1:]))
    for found, expected in ((taught.output, output), (rest.output, output[:, 1:])):
        assert_close(slopes(found, learned), slopes(expected, learned), rtol=1e-7, atol=1e-7)
    for path in memory.memories:
        joined = concatenate_steps([step.attended[path] for step in steps])
        close(looks.attended[path].weights, joined.weights)
        close((looks.attended[path].state, taught.attended[path].state), (joined.state, joined.state))
    saved = decoder(name, kind)
    saved.load_state_dict(made.state_dict())
    assert torch.equal(written(saved, saved.remember(encoded), TARGET[:, :1])[0], output[:, :1])


def decoder(name, kind):
    """A decoder that reads by `name`."""
    return awake(DECODERS[kind](attention=named(name))).eval()


def written(made, memory, target):
    """The output of each step, and the steps."""
    state, steps = repeat(made.start(memory), BEAMS), []
    for token in target.unbind(1):
        steps.append(made.step(token, memory, state, weights=True))
        state = steps[-1].state
    return torch.stack([step.output for step in steps], dim=1), steps


def slopes(output, inputs):
    """How the output changes with each input; zeros where it does not."""
    return grad(output.square().sum(), inputs, retain_graph=True, allow_unused=True, materialize_grads=True)
