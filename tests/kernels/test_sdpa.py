import pytest
import torch
from torch.nn import functional as F

from regard.attention import attend
from regard.attention.attend import run_reference
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.exclude_self import ExcludeSelf
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.score.additive import Additive
from regard.attention.score.bilinear import Bilinear
from regard.attention.score.cosine import Cosine
from regard.attention.score.dot import Dot
from regard.attention.score.rotary import Rotary
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.score.transformer_xl import TransformerXl
from regard.attention.types import Request
from regard.kernels import sdpa
from regard.kernels.sdpa_backends import choice

SCORES = {
    "dot": Dot(),
    "scaled_dot": ScaledDot(),
    "scaled_dot by 0.3": ScaledDot(scale=0.3),
    "cosine": Cosine(scale=4.0),
    "bilinear": Bilinear(4, 4, heads=2),
    "rotary": Rotary(),
    "rotary by 0.3, interleaved": Rotary(interleaved=True, scale=0.3),
    "transformer_xl": TransformerXl(4, heads=2, waves=6),
}
NAMES = "Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl"


def request(
    score=ScaledDot(),
    normalise=Softmax(),
    scope=Everywhere(),
    shape=(2, 2, 5, 7),
    groups=2,
    dropout=0.0,
    offset=2,
    weights=False,
    statistics=(),
) -> Request:
    batch, heads, queries, keys = shape
    query, key, value = (
        torch.randn(batch, heads, queries, 4),
        torch.randn(batch, groups, keys, 4),
        torch.randn(batch, groups, keys, 3),
    )
    return Request(query, score.prepare(key), value, score, normalise, scope, dropout, offset, weights, statistics)


@pytest.fixture
def calls(monkeypatch):
    """What PyTorch's function is called with."""
    seen = []
    real = F.scaled_dot_product_attention

    def watched(*args, **options):
        seen.append(options)
        return real(*args, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    return seen


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize("scope", [Everywhere(), Causal(), Local(1) & ExcludeSelf()], ids=str)
def test_it_equals_the_three_stages(score, scope):
    asked = request(score, scope=scope)
    torch.testing.assert_close(sdpa.run(asked).context, run_reference(asked).context)


@pytest.mark.parametrize("name", ["rotary", "rotary by 0.3, interleaved", "transformer_xl"])
@pytest.mark.parametrize("offset", [0, 4, torch.tensor([0, 3])], ids=str)
def test_a_product_that_looks_at_positions_is_told_them(name, offset):
    asked = request(SCORES[name], scope=Causal(), offset=offset, groups=1, statistics=("entropy", "max"))
    found, expected = sdpa.run(asked), run_reference(asked)
    torch.testing.assert_close(found.context, expected.context)
    torch.testing.assert_close(found.statistics, expected.statistics)
    assert isinstance(offset, torch.Tensor) or not torch.allclose(
        sdpa.run(asked._replace(offset=offset + 1)).context, expected.context
    )


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_key_heads_may_be_shared(groups):
    asked = request(shape=(2, 4, 5, 7), groups=groups, scope=Causal())
    torch.testing.assert_close(sdpa.run(asked).context, run_reference(asked).context)


def test_a_query_that_sees_nothing_gets_zeros_and_passes_no_gradient():
    asked = request(scope=Padding.from_lengths(torch.tensor([7, 0]), keys=7))
    asked.query.requires_grad_()
    context = sdpa.run(asked).context
    assert context[1].abs().max() == 0
    context.square().sum().backward()
    assert asked.query.grad.isfinite().all()
    assert asked.query.grad[1].abs().max() == 0
    assert asked.query.grad[0].abs().max() > 0


@pytest.mark.parametrize("shape", [(1, 1, 6, 6), (2, 2, 5, 7), (2, 2, 7, 5), (1, 1, 1, 4)], ids=str)
def test_from_the_first_key_on_the_kernels_own_causal_mask_is_used(calls, shape):
    asked = request(scope=Causal(), shape=shape, groups=shape[1], offset=0)
    torch.testing.assert_close(sdpa.run(asked).context, run_reference(asked).context)
    assert [call.get("is_causal") for call in calls] == [True]
    assert calls[0].get("attn_mask") is None


@pytest.mark.parametrize("offset", [1, 2, torch.tensor([0, 0]), torch.tensor([0, 3])], ids=str)
def test_from_elsewhere_on_a_mask_is_used(calls, offset):
    asked = request(scope=Causal(), offset=offset)
    torch.testing.assert_close(sdpa.run(asked).context, run_reference(asked).context)
    assert [call.get("is_causal", False) for call in calls] == [False]
    assert calls[0]["attn_mask"].dtype == torch.bool


def test_a_causal_scope_that_is_composed_is_masked(calls):
    asked = request(scope=Causal() & Local(1), offset=0)
    torch.testing.assert_close(sdpa.run(asked).context, run_reference(asked).context)
    assert calls[0]["attn_mask"] is not None


def test_an_exported_graph_keeps_a_mask(calls, monkeypatch):
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    asked = request(scope=Causal(), offset=0)
    torch.testing.assert_close(sdpa.run(asked).context, run_reference(asked).context)
    assert calls[0]["attn_mask"] is not None


def test_no_mask_is_formed_where_everything_is_allowed(calls):
    sdpa.run(request())
    assert calls[0]["attn_mask"] is None


@pytest.mark.parametrize(("scope", "offset"), [(Everywhere(), 0), (Causal(), 0), (Causal(), 2)], ids=str)
def test_dropout_falls_on_what_is_read(scope, offset):
    asked = request(scope=scope, offset=offset, dropout=0.5, shape=(1, 1, 30, 40), groups=1)
    calm = asked._replace(dropout=0.0)
    assert not torch.equal(sdpa.run(asked).context, sdpa.run(calm).context)
    assert torch.equal(sdpa.run(calm).context, sdpa.run(calm).context)


@pytest.mark.parametrize(
    "scope",
    [Everywhere(), Causal(), Padding.from_lengths(torch.tensor([7, 0]), keys=7)],
    ids=["everywhere", "causal", "padding"],
)
def test_statistics_come_by_a_sweep_and_equal_those_of_the_weights(scope):
    names = ("entropy", "max", "argmax", "mean_position", "spread", "received", "uniform", "top_2")
    asked = request(scope=scope, statistics=names, groups=1, offset=0)
    expected = run_reference(asked).statistics
    found = sdpa.run(asked).statistics
    assert found.keys() == expected.keys()
    for name in expected:
        if name.endswith(("argmax", "_keys")) and isinstance(scope, Padding):
            continue  # a query that sees nothing has no best key
        torch.testing.assert_close(found[name], expected[name], msg=name)


def test_it_covers_products_under_a_softmax():
    for score in SCORES.values():
        assert sdpa.covers(request(score)) is None
    assert sdpa.covers(request(statistics=("entropy",))) is None


def test_it_says_why_it_does_not_cover_a_request(monkeypatch):
    assert sdpa.covers(request(Additive(4, 4))) == f"needs one of {NAMES}, got Additive"
    assert sdpa.covers(request(normalise=Sparsemax())) == "needs Softmax, got Sparsemax"
    different = request()._replace(query=torch.zeros(2, 2, 5, 6))
    assert sdpa.covers(different) == "needs queries and keys of one size, got 6 and 4"
    different = request(SCORES["transformer_xl"])._replace(query=torch.zeros(2, 2, 5, 6))
    assert sdpa.covers(different) == "needs queries and keys of one size, got 6 and 4"
    assert sdpa.covers(request(weights=True)) == "never forms the weights, and they are asked for"
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert sdpa.covers(request()) is None
    text = "takes statistics a block of queries at a time, which cannot be traced"
    assert sdpa.covers(request(statistics=("entropy",))) == text


def test_a_score_that_extends_a_product_is_not_taken_for_one():
    class Doubled(ScaledDot):
        def __call__(self, query, prepared):
            return 2 * super().__call__(query, prepared)

    assert sdpa.covers(request(Doubled())) == f"needs one of {NAMES}, got Doubled"


def test_a_normaliser_that_extends_softmax_is_not_taken_for_it():
    class Squared(Softmax):
        def __call__(self, scores, allowed=None):
            return super().__call__(scores, allowed).square()

    assert sdpa.covers(request(normalise=Squared())) == "needs Softmax, got Squared"


def test_attend_takes_it_unless_told_otherwise(calls):
    data = torch.randn(1, 1, 2, 4)
    attend(data, data, data)
    assert len(calls) == 1
    attend(data, data, data, impl="reference")
    attend(data, data, data, weights=True)
    assert len(calls) == 1


@pytest.fixture
def gpu(monkeypatch):
    """The CPU, taken for an H200."""
    monkeypatch.setattr(choice, "DEVICES", ("cpu",))
    monkeypatch.setattr(choice, "MACHINES", {0: choice.Machine((9, 0), 91900)})
    monkeypatch.setattr(choice, "CHOICES", {})


@pytest.fixture
def orders(monkeypatch, gpu):
    """The backends, first to last, that each call would ask on a GPU, and its options."""
    seen = []
    real = F.scaled_dot_product_attention

    def watched(query, keys, values, **options):
        seen.append((torch._C._get_sdp_priority_order()[0], keys.shape[1], options))
        return real(query, keys, values, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    return seen


CUDNN, FLASH = choice.CUDNN.value, choice.FLASH.value


def test_on_a_gpu_cudnn_is_asked_first_unless_there_is_a_mask(orders):
    for scope, first in ((Everywhere(), CUDNN), (Local(1), FLASH), (Everywhere() & ExcludeSelf(), FLASH)):
        asked = request(scope=scope)
        torch.testing.assert_close(sdpa.run(asked).context, run_reference(asked).context)
        assert orders[-1][0] == first
    asked = request(scope=Causal(), shape=(2, 2, 7, 7), offset=0)
    torch.testing.assert_close(sdpa.run(asked).context, run_reference(asked).context)
    assert orders[-1][0] == CUDNN
    assert orders[-1][2]["is_causal"]


@pytest.mark.parametrize("groups", [1, 2])
def test_on_a_gpu_groups_of_heads_stay_groups_for_flash_alone(orders, groups):
    asked = request(shape=(2, 4, 5, 7), groups=groups)
    asked = asked._replace(values=asked.keys.clone())
    torch.testing.assert_close(sdpa.run(asked).context, run_reference(asked).context)
    assert orders[-1][:2] == (FLASH, 4)  # float32 is not flash's
    assert not orders[-1][2]["enable_gqa"]
    half = asked._replace(**{each: getattr(asked, each).bfloat16() for each in ("query", "keys", "values")})
    torch.testing.assert_close(sdpa.run(half).context, run_reference(half).context, rtol=2e-2, atol=2e-2)
    assert orders[-1][:2] == (FLASH, groups)
    assert orders[-1][2]["enable_gqa"]
    torch.testing.assert_close(
        sdpa.run(half._replace(scope=Local(2))).context,
        run_reference(half._replace(scope=Local(2))).context,
        rtol=2e-2,
        atol=2e-2,
    )
    assert orders[-1][1] == 4


def test_on_a_gpu_keys_and_values_may_have_different_groups(orders):
    asked = request(shape=(2, 4, 5, 7), groups=2)
    asked = asked._replace(values=asked.values[:, :1])
    torch.testing.assert_close(sdpa.run(asked).context, run_reference(asked).context)
    assert orders[-1][1] == 4


def test_on_a_gpu_rows_that_are_broken_in_memory_are_put_together(orders):
    asked = request()
    asked = asked._replace(keys=asked.keys.mT.contiguous().mT)
    assert asked.keys.stride(-1) != 1
    torch.testing.assert_close(sdpa.run(asked).context, run_reference(asked).context)


def test_on_a_gpu_what_would_be_unfused_is_left_with_a_reason(gpu):
    text = "needs heads of a multiple of 4 to be fused on a GPU, got 4 and 3"
    assert sdpa.covers(request()) == text
    whole = request()._replace(values=torch.zeros(2, 2, 7, 4))
    assert sdpa.covers(whole) is None
    with pytest.raises(ValueError, match=f"flash needs a GPU, got cpu; flex needs a GPU, got cpu; .*sdpa {text}"):
        attend(*request()[:3], impl="fused")
    asked = request(offset=2)
    torch.testing.assert_close(attend(*asked[:3]).context, run_reference(asked).context)


def test_an_exported_graph_leaves_the_backend_to_where_it_runs(gpu, monkeypatch, calls):
    monkeypatch.setattr(torch.compiler, "is_exporting", lambda: True)
    assert sdpa.covers(request()) is None
    sdpa.run(request())
    assert "enable_gqa" not in calls[0]


@pytest.mark.unhooked
@pytest.mark.parametrize("scope", [Causal(), Local(2)], ids=str)
def test_on_a_gpu_it_compiles_whole_with_lengths_left_open(gpu, scope):
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda query, keys, values: attend(query, keys, values, scope=scope).context, backend="eager", fullgraph=True
    )
    before = torch._C._get_sdp_priority_order()
    for length in (5, 6):
        sides = [torch.randn(2, 4, length, 8, requires_grad=True) for _ in range(3)]
        expected = attend(*sides, scope=scope, impl="reference").context
        torch.testing.assert_close(compiled(*sides), expected)
    assert torch._C._get_sdp_priority_order() == before
