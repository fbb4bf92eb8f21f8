import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask

from regard.kernels.flex_block_mask import compiled

pytestmark = pytest.mark.unhooked


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    torch._dynamo.reset()
    monkeypatch.setattr(compiled, "BACKEND", "aot_eager")
    monkeypatch.setattr(compiled, "PROGRAMS", {})
    monkeypatch.setattr(compiled, "REFUSED", {})


def given(length=40):
    data = torch.randn(1, 1, length, 16)
    return data, data, data, create_block_mask(lambda b, h, q, k: k <= q, None, None, length, length, "cpu"), None, False


def test_a_structure_has_a_program_of_its_own_which_runs_again():
    assert compiled.compile_program("one") is compiled.compile_program("one")
    assert compiled.compile_program("one") is not compiled.compile_program("other")
    sides = given()
    expected = torch.nn.functional.scaled_dot_product_attention(*sides[:3], is_causal=True)
    torch.testing.assert_close(compiled.compile_program("one")(*sides), expected)


def test_versions_of_one_structure_do_not_count_against_another():
    with torch._dynamo.config.patch(recompile_limit=1):
        compiled.compile_program("one")(*given())
        compiled.compile_program("other")(*given())
        with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit, match="fullgraph=True"):
            compiled.compile_program("one")(*given(41))


def test_it_refuses_to_run_as_it_stands():
    with pytest.raises(compiled.UnfusedError, match="the compiler is switched off"):
        compiled.run_flex_attention(*given())


def test_only_so_many_programs_are_compiled(monkeypatch):
    monkeypatch.setattr(compiled, "MAX_PROGRAMS", 1)
    assert compiled.find_refusal("one") is None
    compiled.compile_program("one")
    assert compiled.find_refusal("one") is None
    assert compiled.find_refusal("other") == "is compiled for at most 1 scopes and sizes, and this is another one"
    compiled.REFUSED["one"] = "did not compile"
    assert compiled.find_refusal("one") == "did not compile"
