"""Windows in one pass, in Triton's interpreter, beside the gathered ones."""

import os

import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend
from torch.utils._python_dispatch import TorchDispatchMode

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.attention import Causal, Dot, Encoded, Everywhere, Softmax, Sparsemax, local, statistics
from regard.attention.attend import run_reference
from regard.attention.local_window import GaussianWindow, WindowScope
from regard.attention.mechanisms.local_m import LocalM
from regard.attention.mechanisms.local_p import LocalP
from regard.attention.score.rotary import Rotary
from regard.attention.types import Request
from regard.kernels import flash, predicted_window
from regard.kernels.triton.flash import backward, backward_windows, forward, launch_window_sort
from regard.kernels.triton.flash import window_sort as order


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setattr(flash, "DEVICES", ("cuda", "cpu"))
    monkeypatch.setattr(flash, "select_tiles", lambda query, values: [16, 16, 4, 1])


def outcome(module, query, source, keep, impl, **options):
    """Context, and the gradients of query, source and all parameters."""
    module.impl = impl
    leaves = [each.detach().clone().requires_grad_() for each in (query, source)]
    memory = module.remember(Encoded(leaves[1], keep))
    context = module(leaves[0], memory, **options).context
    weight = torch.arange(context.numel(), dtype=context.dtype).view(context.shape).cos()
    return [context.detach(), *torch.autograd.grad(context, [*leaves, *module.parameters()], weight)]


KEEP = torch.arange(37)[None] < torch.tensor([[37], [20]])
CASES = {
    "local_m": (lambda: LocalM(5, width=4), {"offset": 0}),
    "local_m, rows that begin elsewhere": (lambda: LocalM(5, width=2, score="dot"), {"offset": torch.tensor([3, 30])}),
    "local_p": (lambda: LocalP(5, width=3), {}),
    "local_p, divided by the sum": (lambda: LocalP(5, width=6, renormalise=True), {}),
    "local_p, causal": (lambda: LocalP(5, width=9, scope=Causal(), score="scaled_dot"), {"offset": 10}),
    "local_p, a window wider than the source": (lambda: LocalP(5, width=50), {}),
    "location": (lambda: LocalP(5, width=4, score="location", limit=37), {}),
}


@pytest.mark.parametrize(("build", "options"), CASES.values(), ids=CASES)
def test_it_equals_the_gathered_windows_in_output_and_every_gradient(build, options):
    module, query, source = build(), torch.randn(2, 19, 5), torch.randn(2, 37, 5)
    found = outcome(module, query, source, KEEP, "fused", **options)
    plain = outcome(module, query, source, KEEP, "reference", **options)
    truth = outcome(module.double(), query.double(), source.double(), KEEP, "reference", **options)
    for place, (ours, theirs, exact) in enumerate(zip(found, plain, truth, strict=True)):
        assert ours.isfinite().all()
        error, usual = ((each.double() - exact).abs().max() for each in (ours, theirs))
        assert error <= (3 if place else 2) * usual + 5e-6 * exact.abs().max(), place


def test_windows_at_the_place_of_their_query_are_put_in_no_order(monkeypatch):
    monkeypatch.setattr(predicted_window, "run", None)
    module, query = LocalM(5, width=3, impl="fused"), torch.randn(1, 20, 5)
    with Calls() as calls:
        found = module(query, module.remember(torch.randn(1, 40, 5)), offset=9)
    assert found.context.shape == (1, 20, 5)
    assert "sort" not in calls.names


def test_in_which_order_queries_come_changes_nothing():
    module, query, source = LocalP(5, width=3), 3 * torch.randn(2, 40, 5), torch.randn(2, 37, 5)
    centres, order = module.centre(query, torch.tensor([37, 20]), 0), torch.randperm(40)
    assert not torch.equal(centres.argsort(dim=1), torch.arange(40).expand(2, -1))
    module.impl = "fused"
    memory, weight = module.remember(Encoded(source.requires_grad_(), KEEP)), torch.randn(2, 40, 5)
    found = []
    for places in (torch.arange(40), order):
        asked = query[:, places].requires_grad_()
        context = module(asked, memory).context
        wanted = [asked, source, *module.parameters()]
        d_query, *others = torch.autograd.grad(context, wanted, weight[:, places], retain_graph=True)
        back = places.argsort()
        found.append([context[:, back], d_query[:, back], *others])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("keys", [37, 48, 16, 1])
def test_windows_that_stand_anywhere_are_read_by_their_own_queries_alone(keys):
    """Stretches of many queries, windows outside the source, lengths that fill tiles or none, and rows that differ."""
    near = 20 + torch.randn(150)
    centre = torch.stack([torch.full((150,), 20.0), near, 90 * torch.rand(150) - 30, torch.arange(150.0).flip(0)])
    leaves = [torch.randn(4, 1, length, 4, requires_grad=True) for length in (150, keys, keys)]
    centre.requires_grad_()
    ours, plain = (gradients(run, leaves, centre, 3) for run in (predicted_window.run, run_reference))
    for mine, theirs in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=2e-5)


def gradients(run, leaves, centre, width):
    """The context, and the gradients of everything."""
    asked = Request(*leaves, Dot(), GaussianWindow(Softmax(), centre, width), WindowScope(centre, width), 0.0, 0, False, ())
    context = run(asked).context
    weight = torch.arange(context.numel(), dtype=context.dtype).view(context.shape).cos()
    return [context, *torch.autograd.grad(context, [*leaves, centre], weight)]


def test_a_row_that_programs_do_not_count_is_sorted_to_the_same_bits(monkeypatch):
    leaves = [torch.randn(2, 1, length, 4, requires_grad=True) for length in (70, 40, 40)]
    centre = (50 * torch.rand(2, 70) - 5).requires_grad_()
    counted = gradients(predicted_window.run, leaves, centre, 4)
    monkeypatch.setattr(launch_window_sort, "MAX_COUNTED", 69)
    monkeypatch.setattr(launch_window_sort, "sort_by_counting", None)
    for one, other in zip(counted, gradients(predicted_window.run, leaves, centre, 4), strict=True):
        assert torch.equal(one, other)


def test_centres_that_are_no_number_leave_all_others_alone():
    query, source = torch.randn(2, 1, 70, 4), torch.randn(2, 1, 40, 4)
    centre = 40 * torch.rand(2, 70)
    odd = centre.clone()
    odd[:, ::7], odd[:, 1::7], odd[:, 2::7] = torch.nan, torch.inf, -torch.inf
    whole, found = (
        predicted_window.run(
            Request(query, source, source, Dot(), Softmax(), WindowScope(each, 4), 0.0, 0, False, ())
        ).context
        for each in (centre, odd)
    )
    same = odd == centre
    torch.testing.assert_close(found[:, 0][same], whole[:, 0][same])  # in other tiles
    assert (found[:, 0][~same] == 0).all()  # they see nothing


def test_weights_and_statistics_come_beside_the_same_context():
    module, query = LocalP(5, width=3), torch.randn(1, 3, 5)
    memory = module.remember(torch.randn(1, 9, 5))
    alone = module(query, memory)
    asked = module(query, memory, weights=True, statistics=("entropy",))
    assert torch.equal(alone.context, asked.context)
    torch.testing.assert_close(asked.weights @ memory.values, asked.context[:, None], rtol=1e-5, atol=1e-5)
    assert asked.statistics["entropy"].shape == (1, 1, 3)


@pytest.mark.parametrize("kind", [LocalP, LocalM])
def test_statistics_that_a_kernel_does_not_know_come_from_gathered_windows_beside_its_context(kind):
    module, query = kind(5, width=3, impl="fused"), torch.randn(1, 9, 5)
    memory = module.remember(torch.randn(1, 25, 5))
    asked, alone = module(query, memory, statistics=("top_20", "max")), module(query, memory)
    assert torch.equal(asked.context, alone.context)
    assert asked.statistics["top_20"].shape == (1, 1, 9, 20)
    torch.testing.assert_close(asked.statistics["max"], asked.statistics["top_20"][..., 0])


STATISTICS = ("entropy", "max", "argmax", "mean_position", "spread", "received", "uniform", "top_2")


@pytest.mark.parametrize("kind", [LocalP, LocalM])
@pytest.mark.parametrize("block", [1, 1 << 20], ids=["one query at a time", "all at once"])
def test_statistics_come_with_the_context_of_the_kernel_and_nothing_of_queries_by_keys(monkeypatch, kind, block):
    monkeypatch.setattr(statistics, "BLOCK", block)
    module, query = kind(5, width=3, scope="causal"), torch.randn(2, 9, 5)
    memory = module.remember(Encoded(torch.randn(2, 9, 5), torch.arange(9)[None] < torch.tensor([[9], [6]])))
    gathered = module(query, memory, offset=0, weights=True, statistics=STATISTICS)
    monkeypatch.setattr(local, "scatter_windows", None)
    module.impl = "fused"
    asked = module(query, memory, offset=0, statistics=STATISTICS)
    torch.testing.assert_close(asked.context, gathered.context)
    assert asked.weights is None
    for name, each in gathered.statistics.items():
        if name == "top_2_keys":  # where a query sees one key, the other may be any
            each = each.where(gathered.statistics["top_2"] > 0, asked.statistics[name])
        torch.testing.assert_close(asked.statistics[name], each, msg=lambda said, name=name: f"{name}: {said}")


def test_the_dense_formula_is_what_it_equals():
    query, memory = torch.randn(1, 1, 4, 5), torch.randn(1, 1, 20, 5)
    centre = torch.tensor([[0.0, 3.3, 19.7, 40.0]])  # the last sees nothing
    scope = WindowScope(centre, 2, 3)
    for normalise in (Softmax(), GaussianWindow(Softmax(), centre, 2), GaussianWindow(Softmax(), centre, 2, True)):
        asked = Request(query, memory, memory, Dot(), normalise, scope, 0.0, 3, False, ())
        torch.testing.assert_close(predicted_window.run(asked).context, run_reference(asked).context, rtol=1e-5, atol=1e-5)
        assert (predicted_window.run(asked).context[:, :, 3] == 0).all()


def test_dropout_falls_on_what_the_gaussian_leaves():
    module = LocalP(12, width=4, score="dot", dropout=0.5)
    query, memory = torch.randn(1, 5, 12), module.remember(torch.eye(12)[None])
    weights = module.eval()(query, memory, weights=True).weights[:, 0]
    dropped = module.train()(query, memory).context  # values that are a unit matrix read the weights themselves
    kept = dropped != 0
    torch.testing.assert_close(dropped, torch.where(kept, 2 * weights, 0.0))
    assert 0 < kept.sum() < (weights > 0).sum()


def test_it_says_why_it_does_not_cover_a_request():
    data = torch.randn(1, 1, 4, 6)
    asked = Request(data, data, data, Dot(), Softmax(), WindowScope(torch.zeros(1, 4), 2), 0.0, 0, False, ())
    assert predicted_window.covers(asked) is None
    assert predicted_window.covers(asked._replace(statistics=("max",))) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        reason = "takes statistics a block of queries at a time, which cannot be traced"
        assert predicted_window.covers(asked._replace(statistics=("max",))) == reason
    reasons = {
        "needs the windows of local_p, which no other scope has": asked._replace(scope=Everywhere()),
        "needs a score that looks at no positions, got Rotary": asked._replace(score=Rotary()),
        "needs one head, got 2": asked._replace(query=data.expand(1, 2, 4, 6)),
        "needs Softmax, got Sparsemax": asked._replace(normalise=GaussianWindow(Sparsemax(), torch.zeros(1, 4), 2)),
        "never forms the weights, and they are asked for": asked._replace(weights=True),
    }
    for reason, each in reasons.items():
        assert predicted_window.covers(each) == reason


class Calls(TorchDispatchMode):
    """The names of what PyTorch is asked for."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.unhooked
def test_it_may_be_compiled_with_a_gradient_and_serves_many_lengths():
    module = LocalP(5, width=3)
    counted = CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(
        lambda query, source: module(query, module.remember(source)).context, backend=counted, dynamic=True
    )
    query = torch.randn(1, 3, 5, requires_grad=True)
    for keys in (40, 600, 1200, 5000):
        source = torch.randn(1, keys, 5)
        context, expected = compiled(query, source), module(query, module.remember(source)).context
        torch.testing.assert_close(context, expected)
        leaves = [query, *module.parameters()]
        gradients = [torch.autograd.grad(each.square().sum(), leaves, allow_unused=True) for each in (context, expected)]
        torch.testing.assert_close(*gradients)
    assert counted.frame_count <= 2


def test_a_pass_asks_little_of_the_host(monkeypatch):
    """An H200 was busy for 0.33 ms of 2.9: each call takes the host longer than the device."""
    for programs, name in (
        (order, "count_kernel"),
        (order, "order_kernel"),
        (forward, "forward"),
        (backward, "write_dq"),
        (backward_windows, "write_dkv"),
    ):
        monkeypatch.setattr(programs, name, _Started(getattr(programs, name).arg_names))
    module = LocalP(8, width=4, impl="fused").bfloat16()
    query, source = (torch.randn(1, 20, 8, dtype=torch.bfloat16) for _ in range(2))
    with Calls() as calls:
        context = module(query, module.remember(source)).context
        torch.autograd.grad(context, list(module.parameters()), torch.ones_like(context))
    assert len(calls.names) <= 71
    assert "select_backward" not in calls.names  # zeros, and a copy into them
    assert "clone" not in calls.names


class _Started:
    """A program that does nothing."""

    def __init__(self, arg_names):
        self.arg_names, self.fn = arg_names, type(self)

    def __getitem__(self, grid):
        return lambda *given, **options: None
