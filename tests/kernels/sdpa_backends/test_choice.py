import pytest
import torch
from torch.nn.attention import SDPBackend

from regard.attention.normalise.softmax import Softmax
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.transformer_xl import TransformerXl
from regard.attention.types import Request
from regard.kernels.sdpa_backends import choice
from regard.kernels.sdpa_backends.choice import FAST, SAFE, BackendRequest, Machine

H200, A100, V100 = Machine((9, 0), 91900), Machine((8, 0), 91900), Machine((7, 0), 91900)
PLAIN = BackendRequest(torch.bfloat16, 64, 64, False, False, False, False, True, True, H200)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(choice, "CHOICES", {})
    monkeypatch.setattr(choice, "MACHINES", {0: H200})


def request(shape=(2, 4, 5, 7), groups=4, scope=Everywhere(), offset=0, sizes=(16, 16), dtype=torch.float32) -> Request:
    batch, heads, queries, keys = shape
    query = torch.zeros(batch, heads, queries, sizes[0], dtype=dtype)
    memory, values = (torch.zeros(batch, groups, keys, size, dtype=dtype) for size in sizes)
    return Request(query, memory, values, ScaledDot(), Softmax(), scope, 0.0, offset, False, ())


def test_cudnn_is_asked_first_where_it_is_right_and_quick():
    assert choice.select_order(PLAIN) == FAST
    assert choice.select_order(PLAIN._replace(causal=True)) == FAST
    assert choice.select_order(PLAIN._replace(machine=Machine((10, 0), 91900))) == FAST
    assert FAST[0] is SDPBackend.CUDNN_ATTENTION
    assert FAST[-1] is SAFE[-1] is SDPBackend.MATH


@pytest.mark.parametrize(
    "changed",
    [
        {"masked": True},
        {"grouped": True},
        {"single": True},
        {"causal": True, "square": False},
        {"whole": False, "machine": Machine((9, 0), 91500)},
        {"machine": A100},
        {"machine": Machine((12, 0), 91900)},
    ],
    ids=str,
)
def test_cudnn_is_never_asked_for_what_it_gets_wrong_or_does_slowly(changed):
    assert choice.select_order(PLAIN._replace(**changed)) == SAFE
    assert SDPBackend.CUDNN_ATTENTION not in SAFE


def test_lengths_that_are_no_multiple_of_a_tile_wait_for_a_version_of_cudnn():
    odd = PLAIN._replace(whole=False)
    assert choice.select_order(odd) == FAST
    assert choice.select_order(odd._replace(machine=Machine((9, 0), 91501))) == FAST
    assert choice.select_order(PLAIN._replace(machine=Machine((9, 0), 91500))) == FAST


def test_a_kind_is_decided_once(monkeypatch):
    asked = []
    monkeypatch.setattr(choice, "select_order", lambda kind: asked.append(kind) or SAFE)
    assert choice.choose_backends(PLAIN) is choice.choose_backends(PLAIN._replace())
    assert choice.choose_backends(PLAIN) == (SAFE, None)
    assert asked == [PLAIN]
    choice.choose_backends(PLAIN._replace(causal=True))
    assert len(asked) == 2


def test_a_graph_that_is_compiled_holds_its_own_decision(monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert choice.choose_backends(PLAIN) == (FAST, None)
    assert choice.CHOICES == {}


def test_a_machine_is_asked_once(monkeypatch):
    asked = []
    monkeypatch.setattr(choice, "MACHINES", {})
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: asked.append(index) or (9, 0))
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: None)
    assert choice.find_machine(1) == choice.find_machine(1) == Machine((9, 0), 0)
    assert asked == [1]


def test_a_request_is_what_it_is_to_the_backends():
    found = choice.describe_request(request())
    assert found == BackendRequest(torch.float32, 16, 16, False, False, False, False, False, False, H200)
    assert choice.describe_request(request((1, 4, 256, 128)))[7:9] == (False, True)
    assert choice.describe_request(request((1, 4, 256, 256), scope=Causal()))[3:5] == (False, True)
    assert choice.describe_request(request(scope=Causal(), offset=2))[3:5] == (True, False)
    assert choice.describe_request(request(scope=Causal(), offset=torch.tensor([0, 0])))[3:5] == (True, False)
    assert choice.describe_request(request(scope=Local(2)))[3:5] == (True, False)
    assert choice.describe_request(request(groups=2)).grouped
    assert choice.describe_request(request((1, 4, 1, 7))).single
    assert choice.describe_request(request((1, 4, 3, 1))).single


def test_the_size_is_that_of_the_product():
    score = TransformerXl(16, heads=4, waves=6)
    asked = request(sizes=(16, 16))._replace(score=score)
    assert choice.describe_request(asked._replace(keys=torch.zeros(2, 4, 7, 22))).size == 22


def test_autocast_lowers_what_the_backend_sees():
    with torch.autocast("cpu", torch.bfloat16):
        assert choice.describe_request(request()).dtype == torch.bfloat16
        assert choice.describe_request(request(dtype=torch.float64)).dtype == torch.float64
    assert choice.describe_request(request()).dtype == torch.float32


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"size": 33, "value": 33}, None),
        ({"dtype": torch.float32}, None),
        ({"masked": True}, None),
        ({"size": 320, "value": 320}, None),
        ({"machine": V100, "dtype": torch.float16}, None),
        ({"machine": Machine((6, 0), 0), "dtype": torch.float16, "size": 33}, None),
        ({"machine": V100, "dtype": torch.float32, "size": 33}, None),
        ({"machine": Machine((9, 4), 0, hip=True), "dtype": torch.float64}, None),
        ({"dtype": torch.float64}, "needs float32, float16 or bfloat16 that this GPU computes in, got float64"),
        ({"machine": V100}, "needs float32, float16 or bfloat16 that this GPU computes in, got bfloat16"),
        ({"size": 33, "masked": True}, "needs heads of a multiple of 8 under a mask to be fused on a GPU, got 33 and 64"),
        ({"size": 33}, "needs heads of a multiple of 8 to be fused on a GPU, got 33 and 64"),
        (
            {"dtype": torch.float32, "size": 34, "value": 34},
            "needs heads of a multiple of 4 to be fused on a GPU, got 34 and 34",
        ),
        (
            {"size": 36, "value": 36, "causal": True, "square": False},
            "needs heads of a multiple of 8 to be fused on a GPU, got 36 and 36",
        ),
    ],
    ids=str,
)
def test_what_no_fused_backend_takes_has_a_reason(changed, reason):
    assert choice.find_unfused_reason(PLAIN._replace(**changed)) == reason
