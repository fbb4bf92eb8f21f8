import pytest
import torch

pytest.importorskip("triton", reason="the kernels are written in it")

from regard.kernels.triton.additive.reduce import PartialSums, reduce_gradients


def test_parts_of_all_gradients_add_up_in_their_places():
    query, key, v = torch.randn(2, 3, 700, 3), torch.randn(3, 3, 5, 2).bfloat16(), torch.randn(4, 3, 7)
    whole = torch.full((3, 900, 3), 9.0, dtype=torch.bfloat16)
    places = whole[:, 100:800], torch.full((3, 5, 2), 1.0), torch.empty(3, 7)
    left = (
        PartialSums.of(places[0], 2, torch.float32, False),
        PartialSums.of(places[1], 3, torch.bfloat16, True),
        PartialSums.of(places[2], 4, torch.float32, False),
    )
    assert [each.first is each.gradient for each in left] == [False, False, True]
    for each, parts in zip(left, (query, key, v), strict=True):
        each.first.copy_(parts[0])
        each.more.copy_(parts[1:])
    reduce_gradients(*left)
    torch.testing.assert_close(places[0], query.sum(0).bfloat16(), rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(places[1], 1 + key.float().sum(0))
    torch.testing.assert_close(places[2], v.sum(0))
    assert whole[:, :100].eq(9).all()
    assert whole[:, 800:].eq(9).all()


def test_what_is_whole_is_left_where_it_is(monkeypatch):
    from regard.kernels.triton.additive import reduce as here

    started = []
    monkeypatch.setattr(here, "launch_cached", lambda *told, **named: started.append(told))
    place = torch.ones(2, 3)
    alone = PartialSums.of(place, 1, torch.bfloat16, False)
    assert alone.first is place
    reduce_gradients(alone, alone, alone)
    assert not started
    reduce_gradients(alone, alone, PartialSums.of(place, 1, torch.float32, True))
    assert started[0][1] == (1, 1, 1)
