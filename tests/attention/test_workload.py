"""Sizes of requests, counted by hand."""

import pytest
import torch

from regard.attention.normalise.softmax import Softmax
from regard.attention.scope import iterate_parts
from regard.attention.scope.causal import Causal
from regard.attention.scope.document import Document
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Request
from regard.attention.workload import SHARED, find_gradient, measure_workload, share_workload

KEEP = torch.tensor([[True] * 5, [True, True, False, False, False]])


def build(scope=None, *, queries=3, keys=5, offset=0, dtype=torch.float32, dropout=0.0, statistics=(), grad=()):
    """Request of 2 rows with 4 heads of size 8, whose keys have 2 heads and whose values size 6."""
    data = [
        torch.zeros(2, heads, time, size, dtype=dtype, requires_grad=name in grad)
        for name, heads, time, size in (("q", 4, queries, 8), ("k", 2, keys, 8), ("v", 2, keys, 6))
    ]
    return Request(*data, ScaledDot(), Softmax(), scope or Everywhere(), dropout, offset, False, statistics)


def test_sizes_pairs_and_bytes():
    workload = measure_workload(build(dropout=0.1, statistics=("entropy",)))
    assert workload[:7] == (2, 4, 2, 3, 5, 8, 6)
    assert workload[:7] == (
        workload.batch, workload.heads, workload.key_heads, workload.queries, workload.keys, workload.size, workload.value
    )  # fmt: skip
    assert workload.pairs == 2 * 4 * 3 * 5
    assert workload.inputs == 4 * (2 * 4 * 3 * 8 + 2 * 2 * 5 * (8 + 6))
    assert workload.output == 4 * 2 * 4 * 3 * 6
    assert (workload.dropout, workload.weights, workload.statistics) == (True, False, ("entropy",))


@pytest.mark.parametrize(
    ("dtype", "element", "precision"),
    [(torch.float32, 4, "float32"), (torch.float64, 8, "float64"), (torch.float16, 2, "half"), (torch.bfloat16, 2, "half")],
)
def test_precision_is_that_of_the_numbers(dtype, element, precision):
    workload = measure_workload(build(dtype=dtype))
    assert (workload.element, workload.precision) == (element, precision)


def test_autocast_halves_all_but_float64():
    with torch.autocast("cpu", torch.bfloat16):
        assert measure_workload(build()).precision == "half"
        assert measure_workload(build(dtype=torch.float64)).precision == "float64"


def test_gradients_of_keys_or_values_are_a_training_and_write_as_much_as_was_read():
    assert [find_gradient(build(grad=grad)) for grad in ("", "q", "k", "v", "qv")] == [
        "forward", "query", "training", "training", "training",
    ]  # fmt: skip
    trained = measure_workload(build(grad="qkv"))
    assert trained.output == measure_workload(build()).output + trained.inputs
    with torch.no_grad():
        assert find_gradient(build(grad="qkv")) == "forward"


@pytest.mark.parametrize(
    ("scope", "sizes", "visible"),
    [
        (Everywhere(), (4, 4, 0), 1.0),
        (Causal(), (4, 4, 0), 10 / 16),
        (Causal(), (1, 4, 3), 1.0),
        (Causal(), (2, 4, 2), 7 / 8),
        (Local(1), (4, 4, 0), 10 / 16),
        (Local(9), (4, 4, 0), 1.0),
        (Causal() & Local(1), (4, 4, 0), 7 / 16),
        (Local(1), (1, 8, 4), 3 / 8),
        (Padding(KEEP[:, :4]), (4, 4, 0), 1.0),
    ],
)
def test_the_visible_share_is_that_of_causal_and_local_masks(scope, sizes, visible):
    queries, keys, offset = sizes
    assert measure_workload(build(scope, queries=queries, keys=keys, offset=offset)).visible == pytest.approx(visible)


def test_the_visible_share_of_many_queries_is_that_of_a_sample():
    workload = measure_workload(build(Causal(), queries=1000, keys=1000))
    assert workload.visible == pytest.approx(0.5, abs=0.01)
    assert (
        measure_workload(build(Causal(), queries=1000, keys=1000, offset=torch.tensor([0, 0]))).visible == workload.visible
    )


@pytest.mark.parametrize(
    ("scope", "mask", "parts"),
    [
        (Everywhere(), 0, (False, False, False)),
        (Padding(KEEP), 2 * 5, (True, False, False)),
        (Causal(), 3 * 5, (False, False, False)),
        (Causal() & Padding(KEEP), 2 * 3 * 5, (True, False, False)),
        (Local(1) & Causal(), 3 * 5, (False, True, False)),
        (~Padding(KEEP), 2 * 5, (False, False, True)),
        (Document(torch.ones(2, 5, dtype=torch.long), torch.ones(2, 3, dtype=torch.long)), 2 * 3 * 5, (False, False, True)),
    ],
)
def test_a_mask_has_rows_and_queries_only_where_it_differs_between_them(scope, mask, parts):
    workload = measure_workload(build(scope))
    assert workload.mask == mask
    assert (workload.padded, workload.windowed, workload.rest) == parts
    assert list(iterate_parts(scope))


def test_an_offset_of_each_row_gives_a_mask_of_each_row():
    assert measure_workload(build(Causal(), offset=torch.tensor([0, 2]))).mask == 2 * 3 * 5
    assert measure_workload(build(offset=torch.tensor([0, 2]))).mask == 0


def test_a_request_is_measured_once_for_all_paths_and_forgotten():
    request = build()
    with share_workload(request):
        first = measure_workload(request)
        assert measure_workload(request) is first
        assert measure_workload(build()) is not first
    assert measure_workload(request) is not first
    assert SHARED.latest is None
