"""Windows that are gathered find what the formula over all keys finds, and touch nothing else."""

import pytest
import torch
from torch.export import Dim, export
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from regard import registry
from regard.attention import Attention, Dot, Encoded, Memory, Sampled, Softmax, dispatch
from regard.attention.local import (
    Windows,
    build_window,
    count_keys,
    fold_queries,
    gather_windows,
    scatter_windows,
    unfold_queries,
)
from regard.attention.mechanisms.local_m import LocalM, MonotoneCentre
from regard.attention.mechanisms.local_p import LocalP
from regard.attention.score import is_positional
from regard.attention.statistics import measure

BATCH, QUERIES, KEYS, SIZE = 3, 4, 7, 3
KEEP = torch.arange(KEYS) < torch.tensor([[7], [3], [1]])
SCORES = [name for name in registry.names("score") if not is_positional(registry.find(name, "score"))]
both = pytest.mark.parametrize("kind", [LocalM, LocalP], ids=["local_m", "local_p"])


def made(kind, **options):
    return kind(SIZE, **{"width": 1} | options).double().eval()


def inputs(queries=QUERIES, keys=KEYS, batch=BATCH):
    return (
        torch.randn(batch, queries, SIZE, dtype=torch.float64, requires_grad=True),
        torch.randn(batch, keys, SIZE, dtype=torch.float64, requires_grad=True),
    )


def dense(attention, query, source, keep, offset=0):
    """Luong's formulas over all keys: every score, every distance, everything masked that is outside."""
    batch, queries, _ = query.shape
    keys = source.shape[1]
    keep = torch.ones(batch, keys, dtype=torch.bool) if keep is None else keep
    place = torch.arange(keys, dtype=query.dtype)
    if isinstance(attention.centre, MonotoneCentre):
        centre = (torch.arange(queries) + offset).to(query.dtype).expand(batch, queries)
    else:
        predict = attention.centre
        bent = torch.tanh(query @ predict.W.weight.mT) @ predict.v.weight[0]
        centre = keep.sum(1, keepdim=True) / (1 + torch.exp(-bent))
    distance = place - centre[..., None]
    plain = Attention(SIZE, score=attention.score, normalise=attention.normalise)
    scores = attention.score(query[:, None], plain.remember(source.masked_fill(~keep[..., None], 0.0)).keys)
    allowed = (distance.abs() <= attention.width)[:, None] & keep[:, None, None]
    scope = attention.scope.allowed(batch, 1, queries, keys, offset, query.device)
    allowed = allowed if scope is None else allowed & scope
    weights = attention.normalise(scores, allowed)
    if not isinstance(attention.centre, MonotoneCentre):
        sigma = attention.width / 2
        weights = weights * torch.exp(-(distance**2) / (2 * sigma**2))[:, None]
    if attention.renormalise:
        weights = weights / weights.sum(-1, keepdim=True).where(weights.sum(-1, keepdim=True) > 0, torch.tensor(1.0))
    return (weights @ source.masked_fill(~keep[..., None], 0.0)[:, None])[:, 0], weights, allowed


def check(attention, query, source, keep=None, offset=0):
    """Context, weights and all gradients."""
    found = attention(query, attention.remember(Encoded(source, keep)), offset=offset, weights=True)
    context, weights, _ = dense(attention, query, source, keep, offset)
    assert_close(found.context, context)
    assert_close(found.weights, weights)
    assert_close(attention(query, attention.remember(Encoded(source, keep)), offset=offset).context, context)
    learned = [query, source, *attention.parameters()]
    direction = torch.randn_like(context)
    assert_close(*(gradients(each, learned, direction) for each in (found.context, context)))


def gradients(context, learned, direction):
    return torch.autograd.grad(context, learned, direction, allow_unused=True, materialize_grads=True)


@both
@pytest.mark.parametrize("score", SCORES)
def test_every_score_finds_in_its_windows_what_the_dense_formula_finds(kind, score):
    check(made(kind, score=score), *inputs(), KEEP)


@both
@pytest.mark.parametrize("normalise", registry.names("normalise"))
def test_every_normaliser_shares_the_window_as_the_dense_formula_does(kind, normalise):
    check(made(kind, normalise=normalise), *inputs(), KEEP)


@both
@pytest.mark.parametrize("scope", registry.names("scope"))
def test_every_scope_holds_inside_the_window(kind, scope):
    check(made(kind, scope=registry.find(scope, "scope").sample(BATCH, KEYS)), *inputs(), KEEP)


@both
@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (4, 1), (1, 7), (9, 2), (5, 5)])
@pytest.mark.parametrize(("width", "renormalise"), [(1, False), (2, True), (10, False)])
def test_lengths_of_one_and_windows_wider_than_the_source(kind, queries, keys, width, renormalise):
    keep = torch.arange(keys) < torch.tensor([[keys], [1], [0]])
    for mask in (None, keep):
        check(made(kind, width=width, renormalise=renormalise), *inputs(queries, keys), mask)


@both
def test_positions_count_from_the_offset_of_each_row(kind):
    attention, (query, source) = made(kind, scope="causal"), inputs()
    memory = attention.remember(Encoded(source, KEEP))
    places = torch.tensor([2, 0, 5])
    found = attention(query, memory, offset=places, weights=True)
    for row, place in enumerate(places.tolist()):
        check(attention, query, source, KEEP, place)
        alone = attention(query, memory, offset=place, weights=True)
        assert_close((found.context[row], found.weights[row]), (alone.context[row], alone.weights[row]))


@both
def test_query_by_query_is_all_at_once(kind):
    attention, (query, source) = made(kind), inputs()
    memory = attention.remember(Encoded(source, KEEP))
    together = attention(query, memory, offset=1).context
    steps = [attention(query[:, t : t + 1], memory, offset=1 + t).context for t in range(QUERIES)]
    assert_close(torch.cat(steps, dim=1), together)


@both
def test_without_an_offset_the_last_query_stands_at_the_last_key(kind):
    attention, (query, source) = made(kind), inputs()
    memory = attention.remember(source)
    assert_close(attention(query, memory).context, attention(query, memory, offset=KEYS - QUERIES).context)


@both
def test_padding_might_as_well_not_exist(kind):
    attention, (query, source) = made(kind), inputs()
    poisoned = source.detach().masked_fill(~KEEP[..., None], torch.nan)
    found = attention(query, attention.remember(Encoded(poisoned, KEEP)), offset=0)
    for row, length in enumerate(KEEP.sum(1).tolist()):
        alone = attention(query[row : row + 1], attention.remember(source[row : row + 1, :length]), offset=0)
        assert_close(found.context[row : row + 1], alone.context)


@both
def test_a_source_that_is_all_padding_gives_zeros_and_takes_no_gradient(kind):
    attention, (query, source) = made(kind), inputs()
    found = attention(query, attention.remember(Encoded(source, torch.zeros_like(KEEP))), weights=True)
    assert not found.context.any()
    assert not found.weights.any()
    learned = [query, source, *attention.parameters()]
    assert not any(each.any() for each in gradients(found.context, learned, torch.ones_like(found.context)))


@both
def test_a_source_without_keys_and_no_query_at_all_are_empty_and_not_errors(kind):
    attention = made(kind)
    query, source = inputs(keys=0)
    assert not attention(query, attention.remember(source)).context.any()
    assert attention(query[:, :0], attention.remember(inputs()[1])).context.shape == (BATCH, 0, SIZE)


@both
@pytest.mark.parametrize("keep", [KEEP, None], ids=["padded", "whole"])
def test_statistics_are_those_of_the_dense_weights_in_what_the_window_leaves(kind, keep):
    attention, (query, source) = made(kind, scope="causal"), inputs()
    names = ("entropy", "argmax", "received", "uniform", "top_2", "spread")
    found = attention(query, attention.remember(Encoded(source, keep)), offset=0, statistics=names)
    _, weights, allowed = dense(attention, query, source, keep)
    assert_close(found.statistics, measure(weights, allowed, names))
    assert found.weights is None


@both
def test_dropout_falls_on_what_is_read_and_not_on_what_is_shown(kind):
    attention, (query, source) = made(kind, dropout=0.5), inputs()
    memory = attention.remember(source)
    quiet, loud = attention(query, memory, weights=True), attention.train()(query, memory, weights=True)
    assert_close(loud.weights, quiet.weights)
    assert not torch.allclose(loud.context, quiet.context)
    mean = torch.stack([attention(query, memory).context for _ in range(100)]).mean(0)
    assert_close(mean, quiet.context, atol=0.5, rtol=0)


class Largest(TorchDispatchMode):
    """Keeps the number of elements of the largest tensor that any operation gives."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        for each in found if isinstance(found, tuple | list) else [found]:
            if isinstance(each, torch.Tensor):
                self.elements = max(self.elements, each.numel())
        return found


@both
@pytest.mark.parametrize("score", ["bilinear", "additive", "location"])
def test_nothing_of_the_size_of_queries_times_keys_ever_exists(kind, score):
    attention = kind(2, score=score, width=3, limit=600, scope="causal").train()
    query, source = torch.randn(1, 500, 2, requires_grad=True), torch.randn(1, 600, 2, requires_grad=True)
    with Largest() as largest:
        memory = attention.remember(Encoded(source, torch.ones(1, 600, dtype=torch.bool)))
        attention(query, memory, offset=0).context.sum().backward()
    assert 500 * 7 <= largest.elements <= 500 * 7 * 2  # queries x window x size


@both
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_stays_finite_and_counts_on(kind, dtype):
    attention = kind(2, score="dot", width=2).to(dtype)
    query, source = (100 * torch.randn(1, 3, 2)).to(dtype), (100 * torch.randn(1, 1000, 2)).to(dtype)
    found = attention(query.requires_grad_(), attention.remember(source.requires_grad_()), offset=901, weights=True)
    found.context.float().sum().backward()
    assert all(each.isfinite().all() for each in (found.context, query.grad, source.grad))
    if kind is LocalM:
        assert not found.weights[0, 0, 0, :899].any()
        assert not found.weights[0, 0, 0, 904:].any()
        assert found.weights.float().sum(-1).allclose(torch.ones(3), atol=1e-2)


class Counts:
    """A normaliser that says the number of each query's row instead of what it drew."""

    sums_to_one = True

    def __call__(self, scores, allowed):
        drawn = torch.arange(scores.shape[0], dtype=scores.dtype).view(-1, 1, 1)
        return Softmax()(scores, allowed), Sampled(drawn, -drawn)


@both
def test_what_was_drawn_is_given_for_each_query(kind):
    attention, (query, source) = made(kind, normalise=Counts()), inputs()
    sampled = attention(query, attention.remember(source)).sampled
    assert sampled.log_probability.tolist() == torch.arange(BATCH * QUERIES).view(BATCH, 1, QUERIES).tolist()
    assert_close(sampled.entropy, -sampled.log_probability)


def test_without_a_centre_it_is_attention_to_everything():
    attention = Windows(SIZE, centre=None, score="additive", width=1)
    plain = Attention(SIZE, score=attention.score)
    query, source = torch.randn(2, 3, SIZE), torch.randn(2, 5, SIZE)
    found = attention(query, attention.remember(source), weights=True, statistics=("entropy",))
    expected = plain(query, plain.remember(source), weights=True, statistics=("entropy",))
    assert_close((found.context, found.weights), (expected.context, expected.weights))
    assert found.statistics.keys() == {"entropy"}
    assert not attention.positional


class Clock(Dot):
    """A score that asks where it is."""

    positional = True


@both
def test_a_score_that_looks_at_positions_is_refused(kind):
    text = r"without their positions, and Clock needs these; use a score that compares what is there"
    with pytest.raises(ValueError, match=text):
        kind(4, score=Clock())


@both
def test_a_width_of_nothing_and_a_kernel_that_is_not_there_are_refused(kind):
    with pytest.raises(ValueError, match="needs a width of 1 or more keys on either side, got 0"):
        kind(4, width=0)
    asked = kind(4, impl="fused")
    name = "flash" if kind is LocalM else "predicted_window"
    text = rf"no kernel covers this request: {name} needs a GPU, got cpu. impl='auto' gathers the windows instead"
    with pytest.raises(ValueError, match=text):
        asked(torch.randn(1, 2, 4), asked.remember(torch.randn(1, 3, 4)))


@both
def test_a_memory_of_another_batch_is_refused(kind):
    attention, (query, source) = made(kind), inputs()
    with pytest.raises(ValueError, match="a memory of 3 rows met queries of 2; there must be one for each"):
        attention(query[:2], attention.remember(source))


@pytest.mark.unhooked
@both
def test_a_query_without_its_batch_is_refused(kind):
    attention, (query, source) = made(kind), inputs()
    with pytest.raises(ValueError, match=r"needs a query of \(batch, queries, dim\), got \(4, 3\); one query a row is"):
        attention(query[0], attention.remember(source))


def test_a_window_is_moved_inwards_at_the_ends_and_keeps_its_distance():
    window = build_window(torch.tensor([[0.0, 2.4, 9.0]]), width=1, keys=5)
    assert window.keys.tolist() == [[[0, 1, 2], [2, 3, 4], [2, 3, 4]]]
    assert_close(window.distance[0], torch.tensor([[0.0, 1.0, 2.0], [-0.4, 0.6, 1.6], [-7.0, -6.0, -5.0]]))
    assert window.near.tolist() == [[[True, True, False], [True, True, False], [False, False, False]]]
    assert build_window(torch.tensor([[1.0]]), width=4, keys=3).keys.tolist() == [[[0, 1, 2]]]


def test_folding_and_unfolding_and_spreading_out_undo_each_other():
    data, window = torch.randn(2, 1, 4, 5), build_window(torch.zeros(2, 4), width=1, keys=5)
    assert torch.equal(fold_queries(data)[5, 0, 0], data[1, 0, 1])
    assert torch.equal(unfold_queries(fold_queries(data), window), data)
    source, places = torch.randn(2, 1, 6, 3), torch.tensor([[[4, 5]], [[0, 1]]])
    found = gather_windows(source, places)
    assert torch.equal(found[:, 0], torch.stack((source[0, 0, 4:6], source[1, 0, 0:2])))
    spread = scatter_windows(torch.tensor([[[[0.1, 0.2]]], [[[0.3, 0.4]]]]), places, 6)
    assert_close(spread[:, 0, 0], torch.tensor([[0, 0, 0, 0, 0.1, 0.2], [0.3, 0.4, 0, 0, 0, 0]]))


def test_lengths_leave_the_padding_out():
    values = torch.zeros(3, 1, KEYS, 2)
    assert count_keys(Memory(values, values, KEEP)).tolist() == [7, 3, 1]
    assert count_keys(Memory(values, values)).tolist() == [7, 7, 7]


class Whole(torch.nn.Module):
    """A source with padding, remembered and read."""

    def __init__(self, attention):
        super().__init__()
        self.attention = attention

    def forward(self, query, source, keep):
        return self.attention(query, self.attention.remember(Encoded(source, keep)), offset=0).context


@pytest.mark.unhooked
def test_it_compiles_whole_and_is_exported_with_open_lengths():
    module = Whole(LocalP(SIZE, width=3)).eval()
    keys = {1: Dim("keys")}
    program = export(module, batch_of(4, 9), dynamic_shapes=({1: Dim("queries", min=2)}, keys, keys)).module()
    compiled = torch.compile(module, fullgraph=True, backend="eager", dynamic=True)
    for sizes in ((4, 9), (6, 5)):
        expected = module(*batch_of(*sizes))
        assert_close(program(*batch_of(*sizes)), expected)
        assert_close(compiled(*batch_of(*sizes)), expected)


def batch_of(queries, keys):
    torch.manual_seed(queries)
    keep = torch.arange(keys) < torch.tensor([[keys], [keys // 2]])
    return torch.randn(2, queries, SIZE), torch.randn(2, keys, SIZE), keep


@both
def test_a_window_as_wide_as_the_source_is_the_source_and_asks_no_kernel(kind, monkeypatch):
    asked = []
    monkeypatch.setattr(dispatch, "find_refusal", lambda kernel, request: asked.append(request) or "is not asked here")
    check(made(kind, width=3), *inputs(), KEEP)  # 7 keys, and windows of 7
    assert not asked
    check(made(kind, width=2), *inputs(), KEEP)
    assert asked
    source = torch.randn(2, 1, KEYS, SIZE)
    found = gather_windows(source, torch.arange(KEYS).expand(2, QUERIES, KEYS))
    assert torch.equal(found, source.repeat_interleave(QUERIES, 0))
