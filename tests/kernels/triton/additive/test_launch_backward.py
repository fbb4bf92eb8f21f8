from dataclasses import replace

import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive import chunks, gradients, launch, launch_backward, operator, plan
from regard.kernels.triton.additive import launch_scores as compared
from regard.kernels.triton.additive.arguments import Dropout, MaskArguments


def test_half_precision_is_multiplied_in_single():
    left, right = torch.full((1, 1, 300), 1.0078125, dtype=torch.bfloat16), torch.ones(1, 300, 1, dtype=torch.bfloat16)
    assert launch_backward.multiply_batches(left, right).item() == 300 * 1.0078125
    assert launch_backward.multiply_batches(left, right, torch.bfloat16).item() == 302.0


def test_the_gradient_of_values_is_what_flows_by_shares_alone_or_with_that_of_chunks_before():
    place, shares, flow = torch.ones(1, 2, 1), torch.tensor([[[0.5, 0.0], [0.25, 1.0]]]), torch.tensor([[[2.0], [4.0]]])
    launch_backward.write_dvalues(place, shares, flow, range(2), 2, None)
    assert place.flatten().tolist() == [1.0, 4.5]
    single = torch.full((1, 2, 1), 9.0)
    launch_backward.write_dvalues(place, shares, flow, range(2), 4, single)
    assert (place.flatten().tolist(), single.flatten().tolist()) == ([1.0, 4.5], [1.0, 4.5])
    launch_backward.write_dvalues(place, shares, flow, range(2, 4), 4, single)
    assert place.flatten().tolist() == [2.0, 9.0]


def test_kept_scores_of_several_parts_that_leave_no_room_are_found_anew(monkeypatch):
    """Each part takes as much as all were thought to: chunks of queries came of it, which read others' scores."""
    for module in (chunks, compared, plan, launch):
        monkeypatch.setattr(module, "count_multiprocessors", lambda device: 64)
    torch.manual_seed(0)
    shapes = (1, 1, 32, 32), (1, 1, 30, 32), (1, 1, 30, 320), (1, 32)
    given, flow, found = [torch.randn(shape).bfloat16() for shape in shapes], torch.randn(1, 1, 32, 320).bfloat16(), []
    held, divided = [], launch_backward.split_chunks
    monkeypatch.setattr(
        launch_backward,
        "split_chunks",
        lambda *told, saved_bytes=0, **more: held.append(saved_bytes) or divided(*told, saved_bytes=saved_bytes, **more),
    )
    for kept in (0.4, 0.0):
        monkeypatch.setattr(operator, "TILES", replace(operator.TILES, least=0, both_parts=1, saved_scores=kept))
        leaves = [each.clone().requires_grad_() for each in given]
        found.append(torch.autograd.grad(operator.attention(*leaves)[0], leaves, flow))
    assert held[0] > 0, "there are none to be found anew"
    for mine, right in zip(*found, strict=True):
        torch.testing.assert_close(mine, right, rtol=2e-2, atol=1e-2)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize(
    ("room", "chunks", "far"), [(12 << 10, 4, 1.0), (24 << 10, 2, 30.0), (6 << 10, 8, 1.0)], ids=["heads", "wild", "queries"]
)
def test_in_several_chunks_slopes_take_the_place_of_weights(monkeypatch, room, chunks, far):
    """Heads that share values, queries that see nothing, hidden values that are NaN, and numbers that are taken one by one."""
    given = [torch.randn(shape).bfloat16() for shape in ((2, 2, 36, 4), (2, 2, 50, 4), (2, 1, 50, 5), (1, 4))]
    given[0][0, 0, 3] *= far
    keep = torch.arange(50) < torch.tensor([[50], [5]])  # behind which the last queries see none of them
    scoped, flow = MaskArguments(keep, ahead=3, behind=20), torch.randn(2, 2, 36, 5).bfloat16()
    given[2][1, :, 5:] = float("nan")
    ran, tilt = [], launch_backward.replace_weights
    monkeypatch.setattr(launch_backward, "replace_weights", lambda *told: ran.append("tilt") or tilt(*told))
    monkeypatch.setattr(launch_backward, "write_dscores", lambda *told: pytest.fail("there is room for weights alone"))
    monkeypatch.setattr(operator, "TILES", replace(operator.TILES, saved_scores=0.0, room=room))
    leaves = [each.clone().requires_grad_() for each in given]
    found = torch.autograd.grad(operator.attention(*leaves, scoped)[0], leaves, flow)
    assert ran == ["tilt"] * chunks
    query, key, value, v = (each.double().nan_to_num().requires_grad_() for each in given)
    at = torch.arange(36)[:, None]
    seen = keep[:, None, None] & (torch.arange(50) <= at + 3) & (torch.arange(50) >= at - 20)
    scores = (v[:, None, None] * torch.tanh(query[:, :, :, None] + key[:, :, None])).sum(-1)
    context = scores.masked_fill(~seen, -torch.inf).softmax(-1).nan_to_num() @ value
    for mine, right in zip(found, torch.autograd.grad(context, (query, key, value, v), flow.double()), strict=True):
        torch.testing.assert_close(mine.double(), right, rtol=2e-2, atol=1e-2 * right.abs().max().item())


@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_what_nobody_sees_has_no_slope_even_where_what_flows_is_no_number(monkeypatch):
    """Tiles of zeros are passed over, by their bits; what is left of a number that is none stays with the keys that see it."""
    monkeypatch.setattr(operator, "TILES", replace(operator.TILES, saved_scores=0.0, room=7 << 10))
    leaves = [
        torch.randn(shape).bfloat16().requires_grad_() for shape in ((1, 2, 36, 4), (1, 2, 50, 4), (1, 2, 50, 4), (1, 4))
    ]
    held, both = [], gradients.write_gradients

    def noted(sides, dscores, *rest):
        held.append(dscores.view(torch.int64).clone())
        both(sides, dscores, *rest)

    monkeypatch.setattr(gradients, "write_gradients", noted)
    keep = torch.arange(50)[None] < 30
    flow = torch.ones(1, 2, 36, 4).bfloat16()
    flow[0, 0, 5, 2] = float("inf")
    found = torch.autograd.grad(operator.attention(*leaves, MaskArguments(keep, ahead=0))[0], leaves, flow)
    assert held[0].dtype == torch.int64
    assert all((each[:, :, 8:] == 0).all() for each in held)  # four keys a word, of which 32 are the last that one sees
    assert found[1].isnan().any(-1).nonzero().tolist() == [[0, 0, key] for key in range(6)]


@pytest.mark.parametrize("case", ["dropped", "into weights", "float16"])
def test_what_is_dropped_or_flows_into_weights_needs_them_beside_slopes(monkeypatch, case):
    ran, slope = [], launch_backward.write_dscores
    monkeypatch.setattr(launch_backward, "replace_weights", lambda *told: pytest.fail("it would forget that"))
    monkeypatch.setattr(launch_backward, "write_dscores", lambda *told: ran.append("slope") or slope(*told))
    monkeypatch.setattr(operator, "TILES", replace(operator.TILES, saved_scores=0.0, room=10 << 10))
    dtype = torch.float16 if case == "float16" else torch.bfloat16
    shapes = (2, 1, 34, 4), (2, 1, 20, 4), (2, 1, 20, 4), (1, 4)
    leaves = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    dropped = Dropout(0.3, torch.tensor([5])) if case == "dropped" else Dropout()
    wanted = torch.float32 if case == "into weights" else None
    context, weights = operator.attention(*leaves, MaskArguments(), dropped, weights=wanted)
    flowing = context.float().sum() if weights is None else context.float().sum() + weights.square().sum()
    assert all(each.isfinite().all() for each in torch.autograd.grad(flowing, leaves))
    assert ran == ["slope"] * 2


@pytest.mark.parametrize("room", [None, 1 << 12], ids=["in one go", "in chunks of queries"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_what_flows_is_held_in_the_precision_of_the_values(monkeypatch, dtype, room):
    query, key, value = (torch.randn(2, 1, time, 8, dtype=dtype) for time in (19, 23, 23))
    v, flow = torch.randn(1, 8, dtype=dtype), torch.randn(2, 1, 19, 8, dtype=dtype)
    keep = torch.arange(23) < torch.tensor([[23], [9]])
    held, slope = [], launch_backward.write_dscores

    def noted(compared, dscores, shares, *rest):
        held.append(shares.dtype)
        slope(compared, dscores, shares, *rest)

    monkeypatch.setattr(launch_backward, "write_dscores", noted)
    monkeypatch.setattr(operator, "TILES", replace(operator.TILES, room=room))
    found = []
    for each in (dtype, torch.float32):
        leaves = [tensor.to(each).requires_grad_() for tensor in (query, key, value, v)]
        context, _ = operator.attention(*leaves, MaskArguments(keep, ahead=0), Dropout(0.2, torch.tensor([5])))
        found.append(torch.autograd.grad(context, leaves, flow.to(each)))
        assert set(held) == {each}
        held.clear()
    for mine, single in zip(*found, strict=True):
        torch.testing.assert_close(mine.float(), single, rtol=5e-3, atol=1e-2)


@pytest.mark.parametrize("room", [None, 13 << 10], ids=["in one go", "in chunks of heads"])
def test_scores_that_were_kept_lead_to_the_same_gradients_without_being_found_anew(monkeypatch, room):
    leaves = [torch.randn(3, 1, time, 8, requires_grad=True) for time in (19, 23, 23)]
    leaves.append(torch.randn(1, 8, requires_grad=True))
    told = MaskArguments(torch.arange(23) < torch.tensor([[23], [9], [0]]), ahead=2), Dropout(0.2, torch.tensor([5]))
    anew, compare = [], launch_backward.compare_chunk
    monkeypatch.setattr(launch_backward, "compare_chunk", lambda *given: anew.append(1) or compare(*given))
    found = []
    for kept in (0.0, 4.0):
        monkeypatch.setattr(operator, "TILES", replace(operator.TILES, saved_scores=kept, fill=99))
        context, _ = operator.attention(*leaves, *told)
        monkeypatch.setattr(operator, "TILES", replace(operator.TILES, room=room))
        found += [torch.autograd.grad(context.square().sum(), leaves, retain_graph=True) for _ in range(2)]
        monkeypatch.setattr(operator, "TILES", replace(operator.TILES, room=None))
    assert len(anew) == 2 * (1 if room is None else 3)
    for each in zip(*found, strict=True):
        for other in each[1:]:  # of fewer heads the hidden units are spread among more programs, and add up in another order
            torch.testing.assert_close(other, each[0], rtol=0 if room is None else 1e-4, atol=0 if room is None else 1e-6)


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
@pytest.mark.parametrize(
    ("kept", "room", "outlier"), [(0.0, None, None), (4.0, None, None), (0.0, None, 0), (4.0, None, 1), (0.0, 1 << 12, 1)]
)
def test_the_gradient_of_the_vector_loses_nothing_where_both_sides_are_small(monkeypatch, kept, room, outlier):
    """tanh of 0.01 is most of what flows into v, and next to nothing beside 1.

    Nor where one number is so large that its tile takes no exponentials.
    """
    torch.manual_seed(0)
    sides = [0.01 * torch.randn(1, 1, time, 16) for time in (32, 40)]
    if outlier is not None:
        sides[outlier][:, :, 0, 3] = 22.0
    given = [each.bfloat16() for each in (*sides, torch.randn(1, 1, 40, 16), torch.randn(1, 16))]
    flow = torch.randn(1, 1, 32, 16).bfloat16()
    monkeypatch.setattr(operator, "TILES", replace(operator.TILES, saved_scores=kept, room=room))

    def gradient(run, dtype):
        leaves = [each.to(dtype).requires_grad_() for each in given]
        return torch.autograd.grad(run(*leaves), leaves[-1], flow.to(dtype))[0]

    def formula(query, key, value, v):
        scores = (torch.tanh(query[:, :, :, None] + key[:, :, None]) @ v[:, None, :, None])[..., 0]
        return torch.softmax(scores, dim=-1) @ value

    right, plain = gradient(formula, torch.float64), gradient(formula, torch.bfloat16)
    found = gradient(lambda *leaves: operator.attention(*leaves)[0], torch.bfloat16)
    small = torch.arange(16) != 3
    assert (found - right)[:, small].norm() <= 2 * (plain - right)[:, small].norm()


@pytest.mark.parametrize(("hidden", "size"), [(3, 9), (9, 3)])
def test_one_query_passes_on_to_values_of_any_size(monkeypatch, hidden, size):
    monkeypatch.setattr(operator, "TILES", replace(operator.TILES, step_columns=4, step_units=4))
    shapes = (2, 2, 1, hidden), (2, 1, 7, hidden), (2, 1, 7, size), (1, hidden)
    leaves = [torch.randn(shape, requires_grad=True) for shape in shapes]
    query, key, value, v = (each.detach().double().requires_grad_() for each in leaves)
    keep = torch.arange(7) < torch.tensor([[7], [4]])
    scores = (v[:, None, None] * torch.tanh(query[:, :, :, None] + key[:, :, None])).sum(-1)
    plain = scores.masked_fill(~keep[:, None, None], -torch.inf).softmax(-1) @ value
    context, _ = operator.attention(*leaves, MaskArguments(keep))
    right = torch.autograd.grad(plain.square().sum(), (query, key, value, v))
    for mine, exact in zip(torch.autograd.grad(context.square().sum(), leaves), right, strict=True):
        torch.testing.assert_close(mine.double(), exact, rtol=1e-4, atol=1e-6)
