"""Shapes that are drawn, as benchmarks/parity.py --shapes does it: a few in Triton's interpreter, more in `make soak`, and there
2,000 where there is a GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") == "1":
    from .test_parity import cases  # puts back what it changes for the interpreter
else:

    @pytest.fixture
    def cases():
        pytest.skip("runs in the interpreter; the soak draws shapes on a GPU")


PARITY = Path(__file__).parents[2] / "benchmarks" / "parity.py"
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
SOME = ("flash rows causal padded 2:2 x 9 bfloat16", "brief padded 2:2 x 24 float32", "local padded 1:1 x 8 float32",
        "simplex sparsemax padded 4:2 x 17 bfloat16", "additive one padded 2:2 x 40 float32",
        "decode padded 4:2 x 24 float32", "norm batch 2:2 x 24 float32")  # fmt: skip


@pytest.fixture
def drawn(cases):
    import _drawn

    return _drawn


def named(drawn):
    return {str(family): family for family in drawn.FAMILIES}


@pytest.mark.parametrize("name", SOME)
def test_a_drawn_shape_is_within_bounds(drawn, name):
    family = named(drawn)[name]
    shape = drawn.shape(family, 1, 0)
    found = drawn.check(family, shape)
    assert found.fine, (shape, found)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("place", range(40))
def test_many_drawn_shapes_are_within_bounds_and_repeats_equal(drawn, place):
    looked = drawn.look((place, 6, 0, 4))
    assert not looked.bad, "\n".join(looked.bad)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU; the interpreter has 6 shapes of each family")
def test_two_thousand_drawn_shapes_are_within_bounds_and_250_repeats_equal_on_a_gpu():
    told = ["--shapes", "2000", "--repeats", "250", "--seconds", "800"]  # side by side with other tests
    done = subprocess.run([sys.executable, PARITY, *told], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shapes: 2000 of 2000 within bounds, 250 repeats of each family" in done.stdout


def test_there_are_as_many_families_as_are_soaked_and_every_name_is_one(drawn):
    assert len(drawn.FAMILIES) == 40
    assert len(named(drawn)) == 40
    kernels = {family.kernel for family in drawn.FAMILIES}
    assert kernels == {"flash", "brief", "simplex", "local", "additive", "decode", "norm"}
    assert {min(family.size for family in drawn.FAMILIES), max(family.size for family in drawn.FAMILIES)} == {8, 256}


def test_a_shape_follows_from_seed_family_and_number(drawn):
    family = drawn.FAMILIES[0]
    assert drawn.shape(family, 3, 0) == drawn.shape(family, 3, 0)
    others = {drawn.shape(family, 4, 0), drawn.shape(family, 3, 1), drawn.shape(drawn.FAMILIES[1], 3, 0)}
    assert drawn.shape(family, 3, 0) not in others
    assert len(others) == 3


def test_lengths_of_a_family_are_all_odd_or_all_multiples_of_16_and_some_are_one(drawn):
    lengths = {family: [drawn.shape(family, number, 0)[1:3] for number in range(60)] for family in drawn.FAMILIES}
    for family, found in lengths.items():
        assert all(keys % 16 == 0 if family.even else keys % 2 for _, keys in found), family
        assert all(queries % 16 == 0 if family.even else queries % 2 for queries, _ in found), family
    odd = lengths[drawn.FAMILIES[0]]
    assert any(queries == 1 for queries, _ in odd)
    assert any(keys == 1 for _, keys in odd)


def test_what_must_not_be_read_is_no_number_and_some_rows_see_nothing(drawn):
    from _shapes import request

    family = named(drawn)["flash local padded 2:2 x 33 float16"]
    blind = 0
    for number in range(20):
        shape = drawn.shape(family, number, 0)
        torch.manual_seed(shape.seed)
        asked = request(family, shape)
        room = asked.keys.as_strided((asked.keys.shape[2] + 16, 33), (33, 1))
        assert room[asked.keys.shape[2] :].isnan().all()
        allowed = asked.allowed
        assert not asked.keys.isnan()[allowed.any(2)[..., None].expand_as(asked.keys)].any()
        blind += int((~allowed.any(-1)).sum())
    assert blind > 0


def test_a_shape_that_fails_is_told_with_what_repeats_it(drawn, monkeypatch):
    bad = drawn.Verdict(2.0, 1.0, "gradients 1", True)
    monkeypatch.setattr(drawn, "check", lambda family, shape: bad)
    looked = drawn.look((12, 2, 5, 1))
    assert [each.split(":")[0] for each in looked.bad] == ["--alone 12 0 --seed 5", "--alone 12 1 --seed 5"]
    assert "max error 2.00e+00 of 1.00e+00 (gradients 1) TOO FAR" in looked.bad[0]


def test_a_repeat_with_other_bits_is_told(drawn, monkeypatch):
    monkeypatch.setattr(drawn, "ready", lambda *_: drawn.Ready(lambda: drawn.Found([torch.rand(3)], []), None))
    assert not drawn.repeated(drawn.FAMILIES[0], None, 3)


def test_numbers_that_are_too_far_away_are_judged_among_more_of_both_sides(drawn, monkeypatch):
    exact, family = torch.zeros(2, dtype=torch.float64), drawn.FAMILIES[0]
    turns = []

    def ready(family, shape, turn=0):
        turns.append(turn)
        plain = torch.tensor([2e-3 if turn == lucky else 1e-4, 0.0])
        sides = {torch.float32: plain, torch.float64: exact}
        ours = torch.tensor([2e-3, 0.0])
        return drawn.Ready(lambda: drawn.Found([ours], []), lambda kind: drawn.Found([sides[kind]], []))

    monkeypatch.setattr(drawn, "ready", ready)
    lucky = 7
    assert drawn.check(family, None).fine
    assert turns == list(range(drawn.DRAWS))
    lucky = None
    assert not drawn.check(family, None).fine


def test_where_every_query_sees_one_key_a_gradient_may_be_off_by_what_its_terms_are_rounded_to(drawn):
    from _shapes import Shape

    family = named(drawn)["flash t5 causal 2:2 x 72 bfloat16"]
    made = drawn.ready(family, Shape(1, 9, 1, 0, 3, 5))
    exact = made.stages(torch.float64)
    assert not exact.gradients[0].any()
    assert drawn.terms(exact, made) == made.terms > 100
    usual = drawn.Found([], [torch.ones(2), torch.ones(2), 3 * torch.ones(2)])
    assert drawn.terms(usual, made) == 3.0


def test_a_count_is_spread_over_the_families_of_the_kernels_asked_for(drawn):
    pieces = drawn.pieces(["brief", "decode"], 19, 0, 250)
    assert sum(count for _, count, _, _ in pieces) == 19
    assert {drawn.FAMILIES[place].kernel for place, *_ in pieces} == {"brief", "decode"}
    assert max(count for _, count, _, _ in pieces) - min(count for _, count, _, _ in pieces) <= 1


def test_the_summary_counts_what_fails(drawn, monkeypatch, capsys):
    from _apart import Answer

    good = drawn.Looked([], drawn.Verdict(1.0, 2.0, "outputs 0", True), 3)
    bad = drawn.Looked(["--alone 13 0 --seed 0: a shape"], good.nearest, 4)

    def apart(work, pieces, seconds):
        answers = [(good, ""), (bad, ""), (None, "it broke")]
        return [Answer(piece, *answer, 1.0) for piece, answer in zip(pieces, answers, strict=False)]

    monkeypatch.setattr(drawn, "apart", apart)
    assert not drawn.passed(["brief"], 12, 0, 250, 60.0)
    said = capsys.readouterr().out.splitlines()
    assert said[-1].startswith("shapes: 8 of 12 within bounds, 250 repeats of each family, seed 0, 4 families, 7 programs")
    assert "    --alone 13 0 --seed 0: a shape" in said
    assert "    it broke" in said


def test_one_shape_alone_and_kernels_of_which_none_are_drawn(drawn, monkeypatch, capsys):
    import parity

    monkeypatch.setattr(sys, "argv", ["parity", "--alone", "12", "2"])
    assert parity.main() == 0
    assert "brief padded 2:2 x 24 float32: Shape(" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["parity", "rows", "--shapes", "4"])
    with pytest.raises(SystemExit, match="2"):
        parity.main()
    assert "no shapes are drawn for rows" in capsys.readouterr().err
