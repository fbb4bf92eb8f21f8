import os
from types import SimpleNamespace

import pytest
import torch

from regard.kernels.runtime import capability as chip
from regard.user_cache import TRITON

GPU = torch.device("cuda", 0)
CACHED = chip._find_obstacle, chip.find_launch_error, chip._find_shared_memory


@pytest.fixture
def absent(monkeypatch):
    """A GPU that is not there, of any capability."""

    def build(capability=(9, 0), **properties):
        for each in CACHED:
            each.cache_clear()
        monkeypatch.setattr(chip.torch.cuda, "current_device", lambda: 0)
        monkeypatch.setattr(chip.torch.cuda, "get_device_capability", lambda number: capability)
        monkeypatch.setattr(chip.torch.cuda, "get_device_properties", lambda device: SimpleNamespace(**properties))
        monkeypatch.setattr(chip.torch.cuda, "device", lambda number: torch.no_grad())

    for name in TRITON:
        monkeypatch.setenv(name, "")
    yield build
    for each in CACHED:
        each.cache_clear()


@pytest.fixture
def works(monkeypatch):
    monkeypatch.setattr(chip, "find_launch_error", lambda number: None)


def test_a_constant_is_marked_as_torch_marks_it():
    def plain():
        return None

    before = set(vars(plain))
    assert torch.compiler.assume_constant_result(plain) is plain
    assert {name: vars(plain)[name] for name in set(vars(plain)) - before} == {chip.CONSTANT: True}
    assert vars(chip.find_obstacle)[chip.CONSTANT] is vars(chip.find_shared_memory)[chip.CONSTANT] is True


def test_the_interpreter_on_a_cpu_lacks_nothing_and_has_all_the_room():
    assert chip.find_obstacle(torch.device("cpu"), torch.bfloat16) is None
    assert chip.find_shared_memory(torch.device("cpu")) == chip.INTERPRETER_MEMORY


@pytest.mark.parametrize(
    ("capability", "dtype", "reason"),
    [
        ((6, 1), torch.float32, "needs a GPU of compute capability 7.0, got 6.1"),
        ((7, 0), torch.float16, None),
        ((7, 5), torch.bfloat16, "needs compute capability 8.0 for bfloat16, got 7.5; use float16"),
        ((8, 0), torch.bfloat16, None),
    ],
)
@pytest.mark.parametrize("device", [GPU, torch.device("cuda")], ids=str)
def test_an_old_gpu_is_refused_and_one_without_bfloat16_for_that_alone(absent, works, capability, dtype, reason, device):
    absent(capability)
    assert chip.find_obstacle(device, dtype) == reason


def test_where_triton_is_not_installed_it_says_so(absent, monkeypatch):
    absent()
    monkeypatch.setattr(chip, "INSTALLED", False)
    assert chip.find_obstacle(GPU) == "needs Triton, which is not installed; pip install triton"


def test_a_machine_on_which_triton_cannot_compile_is_asked_once_with_the_users_cache(absent, monkeypatch, tmp_path):
    nothing = pytest.importorskip("regard.kernels.runtime.smoke_test", reason="Triton is for Linux")
    absent()
    asked = []

    def start():
        asked.append(os.environ["TRITON_CACHE_DIR"])
        raise RuntimeError("Failed to find C compiler.\nPlease specify via CC")

    monkeypatch.setattr(nothing, "launch_empty_kernel", start)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    expected = "needs Triton to work on this machine, and it failed: RuntimeError: Failed to find C compiler."
    assert [chip.find_obstacle(GPU), chip.find_obstacle(GPU, torch.float16)] == [expected] * 2
    assert asked == [str(tmp_path / "regard" / "triton")]


def test_a_failure_without_words_is_named_all_the_same(absent, monkeypatch):
    nothing = pytest.importorskip("regard.kernels.runtime.smoke_test", reason="Triton is for Linux")
    absent()

    def start():
        raise AssertionError

    monkeypatch.setattr(nothing, "launch_empty_kernel", start)
    assert chip.find_obstacle(GPU) == "needs Triton to work on this machine, and it failed: AssertionError: "


def test_the_room_is_what_a_program_may_ask_for_or_else_what_it_has_anyway(absent):
    absent(shared_memory_per_block_optin=101_376, shared_memory_per_block=49_152)
    assert chip.find_shared_memory(GPU) == 101_376
    absent(shared_memory_per_block=65_536)
    assert chip.find_shared_memory(GPU) == 65_536


@pytest.mark.unhooked
def test_it_can_be_asked_while_a_graph_is_traced(absent, works):
    absent((7, 5), shared_memory_per_block_optin=7)

    @torch.compile(backend="eager", fullgraph=True)
    def traced(data):
        return data + 1 if chip.find_obstacle(GPU, data.dtype) is None else data * chip.find_shared_memory(GPU)

    assert traced(torch.ones(1, dtype=torch.bfloat16)).item() == 7
    assert traced(torch.ones(1)).item() == 2


def test_assembly_is_for_nvidia_and_not_for_the_interpreter(monkeypatch):
    monkeypatch.setattr(chip, "INTERPRETED", False)
    assert chip.allows_assembly()
    monkeypatch.setattr(chip, "INTERPRETED", True)
    assert not chip.allows_assembly()
    monkeypatch.setattr(chip, "INTERPRETED", False)
    monkeypatch.setattr(torch.version, "hip", "6.2")
    assert not chip.allows_assembly()
