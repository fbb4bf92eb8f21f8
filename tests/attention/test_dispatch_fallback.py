import re

import pytest
import torch

from regard.attention import attend, dispatch
from regard.attention.attend import run_reference, run_request
from regard.attention.mechanisms.local_m import LocalM
from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Attended, Encoded, Request

OutOfResources = type("OutOfResources", (Exception,), {"__doc__": "As Triton names it."})


class Full:
    """A kernel that covers everything, and has no room."""

    def __init__(self, error=OutOfResources("out of resource: shared memory, Required: 2, Hardware limit: 1.")):
        self.error, self.ran = error, 0

    def covers(self, request):
        return None

    def run(self, request):
        self.ran += 1
        raise self.error


class Steady(Full):
    def run(self, request):
        return Attended(torch.full_like(request.values, 7.0))


REASON = "needs more than this GPU has: out of resource: shared memory, Required: 2, Hardware limit: 1."


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(dispatch, "OVERFLOWS", {})


def data(size=3):
    return torch.randn(1, 1, 2, size)


def request(size=3):
    return Request(data(size), data(size), data(size), ScaledDot(), Softmax(), Everywhere(), 0.0, 0, False, ())


def test_what_had_no_room_is_refused_from_then_on_for_its_like_and_nothing_else():
    full = Full()
    assert dispatch.find_refusal(full, request()) is None
    dispatch.record_overflow(full, request(), full.error)
    assert dispatch.find_refusal(full, request()) == REASON
    assert dispatch.find_refusal(full, request(4)) is None
    assert dispatch.find_refusal(Full(), request()) is None


def test_other_errors_come_out(monkeypatch):
    monkeypatch.setattr(dispatch, "KERNELS", {"full": Full(ValueError("of its own"))})
    with pytest.raises(ValueError, match="of its own"):
        attend(*request()[:3])
    assert dispatch.OVERFLOWS == {}


def test_auto_goes_on_to_the_next_kernel_and_then_to_the_reference(monkeypatch):
    full, given = Full(), request()
    monkeypatch.setattr(dispatch, "KERNELS", {"full": full, "steady": Steady()})
    for _ in range(2):
        assert attend(*given[:3]).context.unique().item() == 7
    assert full.ran == 1
    monkeypatch.setattr(dispatch, "KERNELS", {"full": full})
    torch.testing.assert_close(attend(*given[:3]).context, run_reference(given).context)
    assert full.ran == 1


def test_fused_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(dispatch, "KERNELS", {"full": Full()})
    text = f"no kernel covers this request: full {REASON}. impl='auto' takes the reference instead"
    for _ in range(2):
        with pytest.raises(ValueError, match=re.escape(text)):
            attend(data(), data(), data(), impl="fused")


def test_a_kernel_that_is_given_is_not_replaced():
    with pytest.raises(OutOfResources):
        run_request(request(), Full())


@pytest.mark.parametrize("impl", ["auto", "fused"])
def test_windows_are_gathered_instead_unless_the_kernel_is_insisted_on(monkeypatch, impl):
    module, source = LocalM(4, 4, width=2, impl=impl), Encoded(torch.randn(1, 9, 4))
    monkeypatch.setitem(dispatch.KERNELS, "flash", Full())
    query = torch.randn(1, 3, 4)
    if impl == "fused":
        with pytest.raises(ValueError, match=re.escape(f"flash {REASON}. impl='auto' gathers the windows instead")):
            module(query, module.remember(source))
        return
    found = module(query, module.remember(source)).context
    module.impl = "reference"
    torch.testing.assert_close(found, module(query, module.remember(source)).context)


@pytest.mark.unhooked
def test_what_was_traced_has_no_second_way(monkeypatch):
    monkeypatch.setattr(dispatch, "KERNELS", {"steady": Steady()})
    given = request()
    traced = torch.compile(lambda *sides: attend(*sides).context, backend="eager", fullgraph=True)
    assert traced(*given[:3]).unique().item() == 7
