import re

import pytest
import torch

from regard.attention import attend, dispatch
from regard.attention.attend import run_reference
from regard.attention.normalise.softmax import Softmax
from regard.attention.normalise.sparsemax import Sparsemax
from regard.attention.scope import Scope
from regard.attention.scope.blocks import Blocks
from regard.attention.scope.causal import Causal
from regard.attention.scope.dilated import Dilated
from regard.attention.scope.document import Document
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding
from regard.attention.scope.prefix import Prefix
from regard.attention.score.additive import Additive
from regard.attention.score.cosine import Cosine
from regard.attention.score.rotary import Rotary
from regard.attention.score.scaled_dot import ScaledDot
from regard.attention.types import Attended, Request
from regard.kernels import flash, flex
from regard.kernels.flex_block_mask import blocks, compiled

from ..costs import set_costs


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch):
    """FlexAttention on the CPU, traced by the compiler and run step by step."""
    monkeypatch.setattr(flash, "DEVICES", ("cpu",))
    monkeypatch.setattr(flash, "INSTALLED", True)
    monkeypatch.setattr(compiled, "BACKEND", "aot_eager")
    for module, name, empty in ((compiled, "PROGRAMS", {}), (compiled, "REFUSED", {}), (blocks, "CACHE", {})):
        monkeypatch.setattr(module, name, empty)
    monkeypatch.setattr(blocks, "LATEST", [])


def request(scope, shape=(2, 2, 150, 150), groups=(2, 2), score=ScaledDot(), sizes=(16, 16), **options) -> Request:
    batch, heads, queries, keys = shape
    query = torch.randn(batch, heads, queries, sizes[0])
    memory, values = (torch.randn(batch, *each) for each in ((groups[0], keys, sizes[0]), (groups[1], keys, sizes[1])))
    usual = {"dropout": 0.0, "offset": 0, "weights": False, "statistics": ()}
    return Request(query, score.prepare(memory), values, score, Softmax(), scope, **{**usual, **options})


def documents(length=150) -> Document:
    return Document(torch.randint(3, (2, length)).sort(-1).values)


CASES = {
    "blocks, a score with its own scale": lambda: request(Blocks(40), score=ScaledDot(scale=0.3)),
    "documents, causal, rotary": lambda: request(documents() & Causal(), score=Rotary()),
    "prefix, cosine, an offset": lambda: request(Causal() | Prefix(5), (2, 2, 140, 150), score=Cosine(4.0), offset=10),
    "padding, groups of heads": lambda: request(Padding.sample(2, 150) & Dilated(3), (2, 4, 150, 150), (2, 2)),
    "different groups, sizes and places": lambda: request(
        Blocks(7), (2, 4, 140, 150), (2, 1), sizes=(16, 24), offset=torch.tensor([0, 10])
    ),
}


@pytest.mark.unhooked
@pytest.mark.parametrize("make", CASES.values(), ids=CASES)
def test_it_equals_the_three_stages(make):
    asked = make()
    assert flex.covers(asked) is None
    torch.testing.assert_close(flex.run(asked).context, run_reference(asked).context)
    assert len(compiled.PROGRAMS) == 1
    assert compiled.REFUSED == {}


@pytest.mark.unhooked
def test_a_query_that_sees_nothing_gets_zeros():
    asked = request(Padding(torch.tensor([[True], [False]]).expand(2, 150)))
    context = flex.run(asked).context
    assert context[1].abs().max() == 0
    torch.testing.assert_close(context, run_reference(asked).context)


@pytest.mark.unhooked
def test_other_documents_run_the_same_program_and_other_lengths_few_more():
    torch._dynamo.reset()
    counted = torch._dynamo.utils.counters["stats"]
    before = counted["unique_graphs"]
    for length in (150, 150, 290, 410, 500):
        asked = request(documents(length), (2, 2, length, length))
        torch.testing.assert_close(flex.run(asked).context, run_reference(asked).context)
    assert len(compiled.PROGRAMS) == 1
    assert 1 <= counted["unique_graphs"] - before <= 3


class Next:
    """A kernel that would take it instead."""

    def covers(self, request):
        return None

    def run(self, request):
        return Attended(torch.full((1,), 7.0))


@pytest.mark.unhooked
@pytest.mark.parametrize("how", ["the limit is reached", "the compiler is switched off"])
def test_where_the_compiler_gives_up_the_next_kernel_takes_it_and_a_warning_says_so(how, monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setattr(dispatch, "KERNELS", {"flex": flex, "next": Next()})
    asked = request(Blocks(40))
    if how == "the limit is reached":
        flex.run(asked)
        asked = request(Blocks(40), (2, 2, 290, 290))
    else:
        monkeypatch.setattr(compiled, "compile_program", lambda key: compiled.run_flex_attention)
    assert flex.covers(asked) is None
    said = {"the limit is reached": "Dynamo recompile limit exceeded"}.get(how, how)
    text = f"flex could not be compiled for this scope: {said}; next takes it from now on"
    with torch._dynamo.config.patch(recompile_limit=1), pytest.warns(RuntimeWarning, match=text):
        assert flex.run(asked).context.tolist() == [7.0]
    assert flex.covers(asked).startswith("could not be compiled for this scope: ")


def test_its_cost_is_that_of_the_tiles_that_a_scope_leaves(monkeypatch):
    set_costs(monkeypatch, flex=1, flash=2)
    long = (1, 1, 1024, 1024)
    blocked, strided = request(Blocks(128), long), request(Dilated(2), long)
    few, all_tiles = flex.count_work(blocked).counts["elements"], flex.count_work(strided).counts["elements"]
    assert few == pytest.approx(all_tiles / 8)
    assert flex.cost(blocked) <= flex.cost(strided)


@pytest.mark.parametrize("scope", [Causal(), Local(9), Causal() & Local(9)], ids=str)
def test_what_flash_skips_as_well_is_not_compiled_however_long(scope):
    assert flex.cost(request(scope, (1, 1, 9000, 9000), (1, 1))) == float("inf")


def test_a_window_within_blocks_goes_to_flash_where_it_cannot_be_compiled(monkeypatch):
    set_costs(monkeypatch, flex=1, flash=2, sdpa=3, reference=4)
    asked = request(Blocks(128) & Local(9), (1, 1, 1024, 1024), (1, 1))
    assert dispatch.select_kernel(asked, "auto") is flex
    assert dispatch.select_kernel(asked._replace(dropout=0.1), "auto") is flash
    assert dispatch.select_kernel(asked._replace(statistics=("max",)), "auto") is flash
    compiled.REFUSED[flex.build_cache_key(asked)] = "could not be compiled"
    dispatch.forget_decisions()
    assert dispatch.select_kernel(asked, "auto") is flash


def test_nothing_is_waited_for_while_a_graph_is_captured(monkeypatch):
    asked = request(Blocks(128), (1, 1, 1024, 1024), (1, 1))
    monkeypatch.setattr(blocks, "is_capturing", lambda: True)
    monkeypatch.setattr(blocks, "find_block_mask", None)
    assert flex.cost(asked) > 0
    assert flex.covers(asked) == "is compiled first, which cannot be part of a CUDA graph"
    compiled.PROGRAMS[flex.build_cache_key(asked)] = flex.run
    assert flex.covers(asked) is None


def test_no_mask_is_formed_where_flash_is_faster_than_a_single_tile(monkeypatch):
    set_costs(monkeypatch, flex=3, flash=2, sdpa=3, reference=4)
    monkeypatch.setattr(blocks, "find_block_mask", None)
    assert dispatch.select_kernel(request(Blocks(128), (1, 1, 1024, 1024), (1, 1)), "auto") is flash


def test_it_says_why_it_does_not_cover_a_request(monkeypatch):
    asked = request(Blocks(4), (2, 2, 5, 5))
    products = "Dot, ScaledDot, Bilinear, Cosine, Rotary, TransformerXl"
    assert flex.covers(asked) is None
    assert flex.covers(asked._replace(score=Additive(16, 16))) == f"needs one of {products}, got Additive"
    assert flex.covers(asked._replace(normalise=Sparsemax())) == "needs Softmax, got Sparsemax"
    assert flex.covers(asked._replace(statistics=("max",))) == "gives no statistics, and some are asked for"
    assert flex.covers(asked._replace(dropout=0.1)) == "never drops weights, and some are to be dropped"
    assert flex.covers(asked._replace(weights=True)) == "never forms the weights, and they are asked for"
    assert flex.covers(request(Blocks(4), sizes=(8, 16))) == "needs heads of at least 16, got 8"

    class Own(Scope):
        def __call__(self, b, h, q, k):
            return k == q

    assert flex.covers(asked._replace(scope=Own())) == "needs scopes that are dataclasses, got Own"
    monkeypatch.setattr(compiled, "MAX_PROGRAMS", 0)
    assert flex.covers(asked) == "is compiled for at most 0 scopes and sizes, and this is another one"
    monkeypatch.setattr(flash, "DEVICES", ("cuda",))
    assert flex.covers(asked) == "needs a GPU, got cpu"
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert flex.covers(asked) == "is compiled by itself, and never as part of something else"


def test_fused_names_its_reason_beside_those_of_the_others(monkeypatch):
    monkeypatch.setattr(flash, "DEVICES", ("cuda",))
    data = torch.zeros(1, 1, 4, 16)
    text = "flash needs Softmax, got Sparsemax; flex needs Softmax, got Sparsemax; "
    with pytest.raises(ValueError, match=re.escape(text)):
        attend(data, data, data, normalise=Sparsemax(), scope=Blocks(2), impl="fused")
