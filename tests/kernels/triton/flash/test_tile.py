import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/flash.py checks on a GPU", allow_module_level=True)

from regard.kernels.triton.flash import launch
from regard.kernels.triton.flash.launch import Plan, StatisticsRequest
from regard.kernels.triton.flash.launch_window_sort import compute_bin_width, sort_queries

PLAN = Plan(None, None, None, None, None, None, 0, -1, False, 0, 1.0, 1.0, 0.0, [16, 16, 4, 1])
"""Everything may be seen, and the score is the plain product."""

SIZE = 20


def seen(**options) -> torch.Tensor:
    """Which of 20 keys each of 20 queries reads: equal scores, and values that are a unit matrix."""
    nothing, values = torch.zeros(1, 1, SIZE, 1), torch.eye(SIZE)[None, None]
    return launch.forward(nothing, nothing, values, PLAN._replace(**options), StatisticsRequest()).context[0, 0] > 0


FAR = torch.arange(SIZE) - torch.arange(SIZE)[:, None]
MASK = (torch.arange(SIZE) % 3 == 0).expand(1, 1, SIZE, SIZE).contiguous()
CENTRE = torch.linspace(-5, 30, SIZE)[None]
SCOPES = {
    "everything": ({}, FAR == FAR),
    "causal": ({"causal": True}, FAR <= 0),
    "causal, later": ({"causal": True, "offset": 7}, FAR <= 7),
    "a window": ({"window": 2}, FAR.abs() <= 2),
    "a window, one for each row": ({"window": 2, "offsets": torch.tensor([5])}, (FAR - 5).abs() <= 2),
    "some keys": ({"keep": torch.arange(SIZE)[None] < 17}, (torch.arange(SIZE) < 17).expand(SIZE, SIZE)),
    "a mask": ({"mask": MASK, "causal": True}, MASK[0, 0] & (FAR <= 0)),
    "around centres": (
        {"centres": CENTRE, "bin_width": compute_bin_width(SIZE), **sort_queries(CENTRE, SIZE)._asdict(), "width": 3.0},
        (torch.arange(SIZE) - CENTRE[0][:, None]).abs() <= 3,
    ),
}


@pytest.mark.parametrize(("options", "expected"), SCOPES.values(), ids=SCOPES)
def test_what_may_be_seen_is_what_is_read(options, expected):
    assert torch.equal(seen(**options), expected)


def test_dropping_is_as_often_as_asked_for_and_by_the_seed():
    first, again, other = (seen(dropout=0.25, seed=torch.tensor([each])) for each in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert 0.65 < first.float().mean() < 0.85


def test_keys_and_values_may_stand_apart():
    """Heads beside each other, as one product leaves them: tiles that all queries see, and a last one that is not full."""
    query, keys, values = torch.randn(3, 2, 40, 3, 6, generator=torch.Generator().manual_seed(0)).transpose(2, 3)
    asked = StatisticsRequest(peak=True, entropy=True, moments=2)
    found, dense = (
        launch.forward(query[..., :5], *sides, PLAN, asked)
        for sides in ((keys[..., :5], values), (keys[..., :5].contiguous(), values.contiguous()))
    )
    assert all(torch.equal(one, other) for one, other in zip(found, dense, strict=True))
