import re

import pytest
import torch

from regard import registry
from regard.attention import attend, dispatch
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.everywhere import Everywhere
from regard.attention.score.additive import Additive
from regard.attention.score.distance import Distance
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Attended, Request
from regard.kernels import sdpa

DATA = torch.zeros(1, 1, 2, 3)


def request(score=ScaledDot(), normalise=Softmax(), weights=False) -> Request:
    return Request(DATA, DATA, DATA, score, normalise, Everywhere(), 0.0, 0, weights, ())


def test_every_kernel_file_is_loaded_when_attention_is():
    assert list(dispatch.KERNELS) == list(dispatch.ORDER)
    assert sorted(dispatch.ORDER) == registry.names("kernels")


def test_the_order_of_the_kernels_is_pinned():
    order = "additive additive_gpu short decode flash flex linear predicted_window weights sdpa entmax"
    assert list(dispatch.ORDER) == order.split()


def test_the_first_kernel_that_covers_a_request_takes_it():
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


def test_an_unknown_implementation_is_refused():
    with pytest.raises(ValueError, match=re.escape("impl needs to be 'auto', 'reference' or 'fused', got 'fast'")):
        attend(DATA, DATA, DATA, impl="fast")


def test_a_kernel_that_does_not_pay_is_left_unless_it_is_asked_for():
    query, memory = torch.randn(2, 1, 1, 4, requires_grad=True), torch.randn(2, 1, 3, 4)
    made = Request(query, memory, memory, ScaledDot(), Softmax(), Everywhere(), 0.0, 0, False, ())
    assert dispatch.select_kernel(made, "auto") is None
    assert dispatch.select_kernel(made, "fused") is sdpa
    with torch.no_grad():
        assert dispatch.select_kernel(made, "auto") is sdpa
    assert dispatch.select_kernel(made._replace(keys=memory.clone().requires_grad_()), "auto") is sdpa


def test_a_kernel_that_does_not_pay_leaves_the_request_to_the_next(monkeypatch):
    monkeypatch.setattr(dispatch.KERNELS["flash"], "DEVICES", ("cpu",))
    monkeypatch.setattr(dispatch.KERNELS["flash"], "INSTALLED", True)
    assert dispatch.KERNELS["flash"].covers(request()) is None
    assert dispatch.select_kernel(request(), "auto") is sdpa
    assert dispatch.select_kernel(request(), "fused") is sdpa


def test_a_kernel_that_nobody_has_timed_is_taken_first_where_a_kernel_is_asked_for(monkeypatch):
    flash = dispatch.KERNELS["flash"]
    monkeypatch.setattr(flash, "DEVICES", ("cpu",))
    monkeypatch.setattr(flash, "INSTALLED", True)
    monkeypatch.setattr(flash, "untimed", lambda request: not request.dropout, raising=False)
    assert dispatch.select_kernel(request(), "auto") is sdpa
    assert dispatch.select_kernel(request(), "fused") is flash
    assert dispatch.select_kernel(request()._replace(dropout=0.5), "fused") is sdpa


def test_a_kernel_that_is_given_takes_every_request():
    class Own:
        def covers(self, request):
            return "nothing at all"

        def run(self, request):
            return Attended(torch.zeros(1))

    own = Own()
    assert dispatch.select_kernel(None, own) is own
