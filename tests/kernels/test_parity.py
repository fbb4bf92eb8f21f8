"""The cases of benchmarks/parity.py, which checks every kernel on a GPU, on a few numbers in Triton's interpreter."""

import os
import sys
from pathlib import Path

import pytest
import torch

from ..costs import set_costs

pytest.importorskip("triton", reason="Triton is for Linux")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("these run in the interpreter; benchmarks/parity.py checks on a GPU", allow_module_level=True)

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def cases(monkeypatch):
    """The module of the cases; what it changes for the interpreter is put back."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import _parity
    from regard.attention import expected_monotonic, masked_norm
    from regard.kernels import additive_gpu, decode, entmax, flash, short
    from regard.kernels.triton.additive import operator
    from regard.losses import linear_cross_entropy
    from regard.models.decoders import recurrent_fused
    from regard.models.layers import add_norm, feedforward

    for module in (
        flash,
        short,
        additive_gpu,
        recurrent_fused,
        linear_cross_entropy,
        add_norm,
        feedforward,
        masked_norm,
        expected_monotonic,
    ):
        monkeypatch.setattr(module, "DEVICES", module.DEVICES)
    for module, name in ((flash, "select_tiles"), (entmax, "select_tiles"), (decode, "select_tiles"), (operator, "TILES")):
        monkeypatch.setattr(module, name, getattr(module, name))
    set_costs(monkeypatch, additive_gpu=1, short=2, decode=3, flash=4, entmax=5, sdpa=6, flex=7, linear=8, reference=9)
    return _parity


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")  # of the far range, which is looked at too
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("additive corners", "float16"),
        ("additive crowded", "float16"),
        ("additive faint", "bfloat16"),
        ("additive padded", "bfloat16"),
        ("rows chosen", "float16"),
        ("local p", "float32"),
        ("brief padded", "bfloat16"),
        ("brief packed", "bfloat16"),
        ("decode few", "bfloat16"),
        ("sdpa padded", "float16"),
        ("loop lstm", "float32"),
        ("chances", "float32"),
        ("chances", "bfloat16"),
        ("norm batch", "float32"),
        ("norm group", "bfloat16"),
        ("residual post", "float16"),
        ("residual rms", "float32"),
        ("feedforward", "float16"),
        ("layers", "float16"),
        ("updates transformer", "float32"),
        ("updates additive", "float32"),
    ],
)
def test_a_case_is_within_its_bounds(cases, name, dtype):
    found = cases.check(name, dtype)
    assert found.fine, found


@pytest.mark.parametrize("seed", [3, 15])
def test_no_unit_of_the_layers_is_so_near_to_zero_that_rounding_opens_it(cases, seed, monkeypatch):
    import _parity_models as models

    monkeypatch.setattr(models, "GPU", True)  # of its size, at which a few units in thousands were: by far too far away
    cases.interpreted()
    torch.manual_seed(seed)
    found = models.layers(torch.float16)
    assert found.fine, found


def test_a_number_further_away_than_its_bound_is_seen_and_so_is_a_repeat_that_differs(cases):
    exact, plain = torch.ones(3, dtype=torch.float64), torch.ones(3) + 1e-3
    right, near, far = (cases.Found([each], []) for each in (exact, plain, exact + 3e-3))
    good = cases.judged(near, near, near, right)
    assert good.fine
    assert good.error == pytest.approx(1e-3, rel=1e-3)
    assert good.place == "outputs 0"
    assert not cases.judged(far, far, near, right).fine
    assert not cases.judged(near, far, near, right).fine
    nothing = cases.Found([torch.full((3,), torch.nan)], [])
    assert not cases.judged(nothing, nothing, near, right).fine


def test_a_gradient_may_be_three_times_as_far_away(cases):
    exact, plain = torch.ones(3, dtype=torch.float64), torch.ones(3) + 1e-3
    right, near, far = (cases.Found([], [each]) for each in (exact, plain, exact + 2.5e-3))
    assert cases.judged(far, far, near, right).fine


@pytest.mark.parametrize("name", ["transformer", "additive"])
def test_losses_of_a_training_part_where_a_kernel_is_wrong(cases, name, monkeypatch):
    import _updates as updates
    from regard.kernels import additive_gpu, short

    kernel = {"transformer": short, "additive": additive_gpu}[name]
    right = kernel.run
    monkeypatch.setattr(kernel, "run", lambda asked: (found := right(asked))._replace(context=1.05 * found.context))
    cases.interpreted()
    found = updates.check(name, torch.float32)
    assert not found.fine
    assert found.error < 0.1
    assert found.bound == 1e-4


def test_losses_that_do_not_become_less_show_nothing(cases, monkeypatch):
    import _updates as updates

    monkeypatch.setattr(updates, "losses", lambda *_: torch.tensor([3.0, 2.0, 3.0], dtype=torch.float64))
    assert not updates.check("additive", torch.float32).fine


def test_updates_are_checked_in_the_precisions_of_a_training(cases):
    assert cases.precisions("updates additive") == ["float32", "bfloat16"]
    assert cases.precisions("layers") == list(cases.DTYPES)


def test_every_kernel_has_cases(cases):
    import gpu
    import parity

    assert gpu.KERNELS == parity.KERNELS
    named = {kernel: list(cases.names(kernel)) for kernel in parity.KERNELS}
    assert [kernel for kernel, found in named.items() if not found] == ["flex"]  # which is compiled on a GPU alone


def test_work_side_by_side_goes_on_after_a_failure_and_ends_with_its_time(cases):
    from _apart import apart

    found = {answer.piece: answer for answer in apart(float, ["1", "two", "3"], 60.0, 1)}
    assert (found["1"].found, found["3"].found) == (1.0, 3.0)
    assert "could not convert string to float: 'two'" in found["two"].failed
    late = list(apart(float, ["1", "2"], 0.0, 1))
    assert [answer.failed for answer in late] == ["not done after 0 s"] * 2


def test_a_process_that_dies_is_told_and_replaced(cases):
    from _apart import apart

    found = {answer.piece: answer for answer in apart(os._exit, [3], 60.0, 1)}
    assert found[3].failed == "its process ended with exit code 3"


@pytest.mark.parametrize("script", ["gpu", "parity"])
def test_a_name_that_is_unknown_is_an_error_that_lists_what_there_is(cases, script, monkeypatch, capsys):
    module = __import__(script)
    monkeypatch.setattr(sys, "argv", [script, *(["--part"] if script == "gpu" else []), "flush"])
    with pytest.raises(SystemExit, match="2"):
        module.main()
    assert "'flush'; there are additive, flash, rows," in capsys.readouterr().err
