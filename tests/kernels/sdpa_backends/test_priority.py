import threading

import pytest
import torch
from torch.nn.attention import SDPBackend

from regard.kernels.sdpa_backends import choice
from regard.kernels.sdpa_backends.choice import FAST, SAFE, set_priority


def now() -> list[int]:
    return torch._C._get_sdp_priority_order()


@pytest.mark.parametrize("order", [FAST, SAFE], ids=str)
@pytest.mark.parametrize("quick", [True, False])
def test_backends_stand_in_another_order_and_return_to_their_own(order, quick, monkeypatch):
    monkeypatch.setattr(choice, "CAN_SET_ORDER", quick)
    before = now()
    with set_priority(order):
        assert now()[: len(order)] == [each.value for each in order]
        assert sorted(now()) == sorted(before)
    assert now() == before


def test_the_order_returns_after_an_error():
    before = now()
    with pytest.raises(RuntimeError, match="inside"), set_priority(FAST):
        raise RuntimeError("inside")
    assert now() == before
    assert choice.LOCK.acquire(blocking=False)
    choice.LOCK.release()


def test_nothing_is_set_where_the_order_holds_already(monkeypatch):
    sets = []
    held = [each.value for each in SAFE]
    monkeypatch.setattr(torch._C, "_get_sdp_priority_order", lambda: [*held, 3, 4])
    monkeypatch.setattr(torch._C, "_set_sdp_priority_order", sets.append)
    with set_priority(SAFE):
        assert sets == []
    with set_priority(FAST):
        assert sets == [[3, 1, 2, 0, 4]]
    assert sets[1:] == [[*held, 3, 4]]


def test_what_the_user_switched_off_stays_off():
    before = torch.backends.cuda.flash_sdp_enabled()
    torch.backends.cuda.enable_flash_sdp(False)
    try:
        with set_priority(FAST):
            assert not torch.backends.cuda.flash_sdp_enabled()
    finally:
        torch.backends.cuda.enable_flash_sdp(before)


def test_threads_take_turns_and_leave_the_order_as_it_was():
    before, seen = now(), []

    def often(order):
        for _ in range(300):
            with set_priority(order):
                seen.append(now()[0] == order[0].value)

    threads = [threading.Thread(target=often, args=(order,)) for order in (FAST, SAFE)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(seen) == 600
    assert all(seen)
    assert now() == before


@pytest.mark.unhooked
def test_a_compiled_graph_asks_in_that_order_too():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    @torch.compile(backend=backend, fullgraph=True)
    def attended(data):
        with set_priority(FAST):
            return torch.nn.functional.scaled_dot_product_attention(data, data, data)

    before = now()
    data = torch.randn(1, 1, 4, 8)
    torch.testing.assert_close(attended(data), torch.nn.functional.scaled_dot_product_attention(data, data, data))
    names = [node.args[0] for node in graphs[0].graph.nodes if node.target is torch.nn.attention._backend_from_string]
    assert names[:4] == [SDPBackend(each).name for each in FAST]
    assert now() == before
