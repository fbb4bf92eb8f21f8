import os

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/transformer.py checks on a GPU", allow_module_level=True)

from regard.attention.attend import run_reference
from regard.attention.multihead import MultiHead
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.causal import Causal
from regard.attention.scope.document import Document
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.additive import Additive
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.dot import Dot
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Encoded, Request
from regard.kernels import short


@pytest.fixture(autouse=True)
def _on_a_cpu(monkeypatch):
    monkeypatch.setattr(short, "DEVICES", ("cpu",))


def request(queries=5, keys=7, size=6, value=9, heads=2, dtype=torch.float32, **changed):
    sides = (
        torch.randn(2, heads, count, wide, dtype=dtype) for count, wide in ((queries, size), (keys, size), (keys, value))
    )
    plain = {"score": ScaledDot(), "normalise": Softmax(), "scope": Everywhere(), "dropout": 0.0, "offset": 0}
    return Request(*sides, **(plain | {"weights": False, "statistics": ()} | changed))


KEEP = torch.tensor([[True] * 4 + [False] * 3, [False] * 7])
KEYS, QUERIES = (
    torch.tensor([[1, 1, 2, 2, 2, 3, 0], [1] * 3 + [2] * 4]),
    torch.tensor([[1, 2, 2, 2, 3, 3], [2, 2, 3, 3, 1, 0]]),
)
"""The documents of keys and of queries; the third of the second row has no key."""
SCOPES = {
    "everywhere": (Everywhere(), 0),
    "padding": (Padding(KEEP), 0),
    "causal": (Causal(), 0),
    "causal, padded, later": (Causal() & Padding(KEEP), 2),
    "causal, before the first key": (Causal(), -2),
    "packed, itself, later": (Causal() & Document(KEYS), 2),
    "packed, another, padded": (Document(KEYS, QUERIES) & Padding(KEEP), 0),
    "packed, another, later": (Document(KEYS, QUERIES), 1),
}


def once(run, asked, flow):
    sides = [each.detach().requires_grad_() for each in asked[:3]]
    context = run(asked._replace(query=sides[0], keys=sides[1], values=sides[2])).context
    return [context, *torch.autograd.grad(context, sides, flow)]


@pytest.mark.parametrize(("scope", "offset"), SCOPES.values(), ids=SCOPES)
@pytest.mark.parametrize(
    "score", [Dot(), ScaledDot(), ScaledDot(0.3), Bilinear(6, 6)], ids=["dot", "scaled", "own", "general"]
)
def test_context_and_gradients_are_those_of_the_stages(score, scope, offset):
    asked = request(score=score, scope=scope, offset=offset)
    assert short.covers(asked) is None
    flow = torch.randn(2, 2, 5, 9)
    for found, expected in zip(once(short.run, asked, flow), once(run_reference, asked, flow), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("queries", "keys", "size", "value"), [(1, 1, 1, 1), (17, 3, 8, 33), (3, 64, 24, 8)])
def test_any_lengths_and_sizes_will_do(queries, keys, size, value):
    asked = request(queries, keys, size, value)
    flow = torch.randn(2, 2, queries, value)
    for found, expected in zip(once(short.run, asked, flow), once(run_reference, asked, flow), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_row_that_sees_nothing_reads_zeros_and_moves_nothing():
    context, d_query, d_keys, d_values = once(short.run, request(scope=Padding(KEEP)), torch.randn(2, 2, 5, 9))
    for each in (context, d_query, d_keys, d_values):
        assert not each[1].any()
        assert each[0].any()


def test_keys_that_are_not_there_may_hold_anything():
    asked, flow = request(scope=Causal() & Padding(KEEP), offset=3), torch.randn(2, 2, 5, 9)
    hidden = ~KEEP[:, None, :, None]
    sides = {name: getattr(asked, name) for name in ("keys", "values")}
    poisoned, clean = (
        asked._replace(**{name: side.masked_fill(hidden, filled) for name, side in sides.items()})
        for filled in (torch.nan, 0.0)
    )
    for found, expected in zip(once(short.run, poisoned, flow), once(run_reference, clean, flow), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_half_precision_is_no_further_from_the_exact_result_than_the_stages_are():
    asked = request(9, 9, 16, 16, dtype=torch.bfloat16, scope=Causal())
    flow = torch.randn(2, 2, 9, 16, dtype=torch.bfloat16)
    wide = asked._replace(**{name: getattr(asked, name).double() for name in ("query", "keys", "values")})
    exact = once(run_reference, wide, flow.double())
    for place, (mine, theirs, right) in enumerate(
        zip(once(short.run, asked, flow), once(run_reference, asked, flow), exact, strict=True)
    ):
        error, usual = ((each.double() - right).abs().max() for each in (mine, theirs))
        assert error <= (3 if place else 2) * usual + 1e-3


def test_joining_its_heads_copies_nothing():
    heads = MultiHead(16, heads=2, impl="fused")
    source = torch.randn(3, 5, 16)
    found = short.run(request(heads=2)).context
    assert found.transpose(1, 2).flatten(2).data_ptr() == found.data_ptr()
    torch.testing.assert_close(
        heads(source, heads.remember(Encoded(source))).context,
        MultiHead.forward(_reference(heads), source, heads.remember(source)).context,
    )


def _reference(heads):
    heads.impl = "reference"
    return heads


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"score": Additive(6, 6)}, "needs one of Dot, ScaledDot, Bilinear, got Additive"),
        ({"normalise": Sparsemax()}, "needs Softmax, got Sparsemax"),
        ({"weights": True}, "never forms the weights"),
        ({"statistics": ("entropy",)}, "never forms the weights"),
        ({"dropout": 0.1}, "never drops weights"),
        ({"scope": Local(2)}, "got Local"),
        ({"offset": torch.tensor([0, 1])}, "needs one offset for all rows"),
        ({"scope": Document(KEYS) & Document(KEYS)}, "needs one kind of documents, got 2"),
        ({"scope": Document(KEYS), "offset": 3}, "needs the documents of all queries, got 7 places and queries up to 8"),
        ({"keys": 65}, "needs at most 64 queries and keys"),
        ({"value": 129}, "heads of at most 128, got 7 and 129"),
        ({"dtype": torch.float64}, "got float64, float64, float64"),
        ({"keys": 0}, "needs a query and a key"),
    ],
)
def test_what_it_does_not_cover_it_names(changed, reason):
    assert reason in short.covers(request(**changed))


def test_keys_of_another_shape_are_left_to_others():
    asked = request()
    assert short.covers(asked._replace(keys=asked.keys[:, :1], values=asked.values[:, :1])) == (
        "needs as many key heads as heads, got 1 for 2"
    )
    assert "queries and keys of one size, got 6 and 5" in short.covers(asked._replace(keys=asked.keys[..., :5]))


def test_it_is_for_a_gpu_with_triton(monkeypatch):
    assert not short.suits_graph(request(queries=1))
    assert short.suits_graph(request())
    monkeypatch.setattr(short, "INSTALLED", False)
    assert "needs Triton" in short.covers(request())
    monkeypatch.setattr(short, "DEVICES", ("cuda",))
    assert short.covers(request()) == "needs a GPU, got cpu"
    assert short.covers(request()._replace(scope=Local(2))).endswith("joined by &, got Local")  # which no GPU would help


@pytest.mark.parametrize(
    ("length", "size", "dtype", "there", "back"),
    [
        (16, 16, torch.float32, 3, 5),
        (64, 64, torch.float32, 48, 80),
        (64, 128, torch.float32, 96, 144),
        (64, 64, torch.float16, 24, 40),
        (64, 128, torch.float16, 48, 72),
    ],
)
def test_what_it_needs_is_what_triton_compiled_it_to(length, size, dtype, there, back):
    """In KiB, by Triton 3.6 for sm_90."""
    asked = request(length, length, size, size, dtype=dtype)
    assert short.estimate_shared_memory(asked) == back << 10
    with torch.no_grad():
        assert short.estimate_shared_memory(asked) == there << 10


def test_a_gpu_without_room_for_a_head_is_named(monkeypatch):
    monkeypatch.setattr(short.capability, "find_shared_memory", lambda device: 64 << 10)
    reason = "needs 80 KiB of shared memory for all queries and keys of a head, got a GPU with 64"
    assert short.covers(request(64, 33, 33, 64)) == reason
    with torch.no_grad():
        assert short.covers(request(64, 33, 33, 64)) is None
    assert short.covers(request(32, 32, 64, 64)) is None


def test_a_gpu_that_lacks_something_is_named(monkeypatch):
    monkeypatch.setattr(short.capability, "find_obstacle", lambda device, dtype: f"lacks {dtype}")
    assert short.covers(request(dtype=torch.bfloat16)) == "lacks torch.bfloat16"
