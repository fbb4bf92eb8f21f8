import re

import pytest
import torch

from regard import registry
from regard.attention import attend, dispatch
from regard.attention.dispatch import Path
from regard.attention.normalise.entmax import Entmax
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.additive import Additive
from regard.attention.score.distance import Distance
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Attended, Request
from regard.kernels import sdpa

from ..costs import set_costs

DATA = torch.zeros(1, 1, 2, 3)


def request(score=ScaledDot(), normalise=Softmax(), weights=False) -> Request:
    return Request(DATA, DATA, DATA, score, normalise, Everywhere(), 0.0, 0, weights, ())


def test_every_kernel_file_is_loaded_when_attention_is():
    assert list(dispatch.KERNELS) == list(dispatch.ORDER)
    assert sorted(dispatch.ORDER) == registry.names("kernels")
    assert all(isinstance(kernel, dispatch.CostedKernel) for kernel in dispatch.KERNELS.values())


def test_the_order_of_the_kernels_is_pinned():
    order = "additive additive_gpu short decode flash flex linear predicted_window weights sdpa entmax"
    assert list(dispatch.ORDER) == order.split()


def test_the_cheapest_path_takes_a_request(monkeypatch):
    set_costs(monkeypatch, sdpa=1, additive=1, reference=5)
    assert dispatch.select_kernel(request(), "auto") is dispatch.KERNELS["sdpa"]
    assert dispatch.select_kernel(request(), "fused") is dispatch.KERNELS["sdpa"]
    assert dispatch.select_kernel(request(Additive(3, 3)), "auto") is dispatch.KERNELS["additive"]


def test_the_reference_is_taken_where_it_is_asked_for_and_where_nothing_else_fits():
    assert dispatch.select_kernel(request(), "reference") is None
    assert dispatch.select_kernel(request(normalise=Sparsemax()), "auto") is None


def test_an_explicit_request_never_falls_back_in_silence_and_lists_each_reason():
    text = (
        "no kernel covers this request: additive needs Additive or Concat, got Distance; "
        "additive_gpu needs Additive or Concat, got Distance; "
        "short needs one of Dot, ScaledDot, Bilinear, got Distance; "
        "decode needs one of Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl, T5, Alibi, got Distance; "
        "flash needs one of Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl, T5, Alibi, got Distance; "
        "flex needs one of Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl, got Distance; "
        "linear needs FeatureMap, got Distance; "
        "predicted_window needs the windows of local_p, which no other scope has; "
        "weights gives weights, and none are asked for; "
        "sdpa needs one of Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl, got Distance; "
        "entmax needs one of Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl, got Distance. "
        "impl='auto' takes the reference instead"
    )
    with pytest.raises(ValueError, match=re.escape(text)):
        dispatch.select_kernel(request(Distance()), "fused")
    with pytest.raises(ValueError, match=re.escape("entmax needs a GPU, got cpu. impl='auto' takes the")):
        attend(DATA, DATA, DATA, normalise=Sparsemax(), impl="fused")


def test_the_reference_is_taken_where_it_is_cheapest(monkeypatch):
    set_costs(monkeypatch, sdpa=9, additive=9, reference=5)
    assert dispatch.select_kernel(request(), "auto") is None
    assert dispatch.select_kernel(request(Additive(3, 3)), "auto") is None
    assert dispatch.select_kernel(request(), "fused") is dispatch.KERNELS["sdpa"]


def test_of_paths_that_take_about_as_long_the_leanest_runs():
    paths = [Path("a", 100.0, 9), Path("b", 109.0, 5), Path("c", 111.0, 1), Path("d", 1.0, 1, "needs a GPU")]
    assert dispatch.select_path(paths) == "b"
    assert dispatch.select_path(paths[2:]) == "c"
    assert dispatch.select_path(paths[3:]) is None
    assert dispatch.select_path([Path("f", 1.0, 1), Path("e", 1.0, 1)]) == "e"  # of equal ones the first by name


@pytest.mark.parametrize("score", [ScaledDot(), Additive(3, 3)], ids=["product", "additive"])
def test_the_order_of_the_kernels_does_not_matter(score, monkeypatch):
    before = dispatch.select_kernel(request(score), "auto"), dispatch.select_kernel(request(score), "fused")
    monkeypatch.setattr(dispatch, "KERNELS", dict(reversed(dispatch.KERNELS.items())))
    assert (dispatch.select_kernel(request(score), "auto"), dispatch.select_kernel(request(score), "fused")) == before


def test_a_kind_of_request_is_decided_once(monkeypatch):
    asked = []
    monkeypatch.setattr(sdpa, "cost", lambda request: asked.append(request) or 1.0)
    for _ in range(3):
        dispatch.select_kernel(request()._replace(query=torch.randn(1, 1, 2, 3)), "auto")
    assert len(asked) == 1
    dispatch.select_kernel(request()._replace(query=torch.randn(1, 1, 4, 3)), "auto")
    dispatch.select_kernel(request()._replace(scope=Padding(torch.ones(1, 2, dtype=torch.bool))), "auto")
    dispatch.select_kernel(request()._replace(query=torch.randn(1, 1, 2, 3, requires_grad=True)), "auto")
    assert len(asked) == 4


def test_kinds_differ_where_a_decision_may():
    plain, keep = request(), torch.ones(1, 2, dtype=torch.bool)
    others = [
        plain._replace(query=torch.zeros(1, 1, 3, 3)),
        plain._replace(values=DATA.double()),
        plain._replace(score=ScaledDot(2.0)),
        plain._replace(normalise=Sparsemax()),
        plain._replace(normalise=Entmax(1.5)),
        plain._replace(normalise=Entmax(1.3)),
        plain._replace(normalise=Entmax(1.5, learn=True)),
        plain._replace(scope=Causal()),
        plain._replace(scope=Local(1)),
        plain._replace(scope=Local(2)),
        plain._replace(scope=Padding(keep)),
        plain._replace(scope=Padding(keep) & Causal()),
        plain._replace(dropout=0.1),
        plain._replace(offset=1),
        plain._replace(weights=True),
        plain._replace(statistics=("entropy",)),
        plain._replace(query=torch.zeros(1, 1, 2, 3, requires_grad=True)),
    ]
    kinds = [dispatch.describe_kind(each, "auto") for each in (plain, *others)]
    assert len(set(kinds)) == len(kinds)
    with torch.no_grad():
        assert dispatch.describe_kind(others[-1], "auto") == dispatch.describe_kind(plain, "auto")
    with torch.autocast("cpu", torch.bfloat16):
        assert dispatch.describe_kind(plain, "auto") != kinds[0]
    assert dispatch.describe_kind(plain._replace(dropout=0.2), "auto") == dispatch.describe_kind(others[12], "auto")


def test_an_unknown_implementation_is_refused():
    with pytest.raises(ValueError, match=re.escape("impl needs to be 'auto', 'reference' or 'fused', got 'fast'")):
        attend(DATA, DATA, DATA, impl="fast")


def test_a_kernel_that_is_given_takes_every_request():
    class Own:
        def covers(self, request):
            return "nothing at all"

        def run(self, request):
            return Attended(torch.zeros(1))

    own = Own()
    assert dispatch.select_kernel(None, own) is own
