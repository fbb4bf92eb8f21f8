import os

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from regard.decoding import beam as reference
from regard.decoding.engines.cuda import add_norm, fused_layer, topk
from regard.decoding.engines.cuda.beam import Beam
from regard.decoding.engines.cuda.matrices import collect_weights
from regard.decoding.engines.cuda.search import BufferCache
from regard.decoding.engines.cuda.select import SEARCHES, find_search
from regard.decoding.engines.cuda.transformer import Engine
from regard.kernels.runtime import compile

from ....kernels import conftest  # noqa: F401  # Triton's interpreter as tests need it
from .small import POST, PRE, SOURCE, alike, model

interpreted = pytest.mark.skipif(
    not fused_layer.capability.INSTALLED or os.environ.get("TRITON_INTERPRET") != "1",
    reason="needs Triton's interpreter; benchmarks/decoding_gpu.py checks on a GPU",
)


@pytest.fixture
def on_cpu(monkeypatch):
    """The kernels run here."""
    monkeypatch.setattr(fused_layer, "DEVICES", ("cpu",))
    SEARCHES.clear()
    yield
    SEARCHES.clear()


def test_it_says_what_it_does_not_cover(monkeypatch):
    layers, cpu, cuda = collect_weights(model().decoder, torch.float32), torch.device("cpu"), torch.device("cuda")
    assert fused_layer.covers(layers, cpu, torch.float32) == "needs a GPU, got cpu"
    monkeypatch.setattr(fused_layer, "load_kernels", lambda name: name)
    assert fused_layer.covers(layers, cuda, torch.float64) == "needs float32, float16 or bfloat16, got float64"
    wide = [layers[0]._replace(size=1024, heads=2)]
    assert fused_layer.covers(wide, cuda, torch.float32) == "needs heads of 256 numbers or fewer, got 512"
    across = [layers[0]._replace(asks=(torch.zeros(1024, 8), None), cross_heads=1)]
    assert fused_layer.covers(across, cuda, torch.float32) == "needs heads of 256 numbers or fewer, got 1024"
    monkeypatch.setattr(fused_layer, "load_kernels", lambda name: None)
    assert fused_layer.covers(layers, cuda, torch.float32) == "needs Triton, which is not installed; pip install triton"


def test_a_gpu_without_them_and_a_compiled_layer_take_the_masks(monkeypatch):
    decoder = model().decoder
    assert not Engine(decoder, torch.float32).fused
    monkeypatch.setattr(fused_layer, "covers", lambda *asked: None)
    monkeypatch.setattr(torch, "compile", lambda function, dynamic: function)
    assert Engine(decoder, torch.float32).fused
    assert not Engine(decoder, torch.float32, compiled=True).fused


def test_without_triton_there_is_no_kernel(monkeypatch):
    monkeypatch.setattr(fused_layer, "find_spec", lambda name: None)
    fused_layer.load_kernels.cache_clear()
    assert fused_layer.load_kernels("past") is None
    fused_layer.load_kernels.cache_clear()


def test_only_plain_layers_of_few_rows_are_joined():
    layers = collect_weights(model().decoder, torch.float32)
    assert fused_layer.can_fuse(layers, fused_layer.FEW)
    assert not fused_layer.can_fuse(layers, fused_layer.FEW + 1)
    assert not fused_layer.can_fuse([layers[0]._replace(asks=None)], 1)
    for other in (model(POST), model(activation="gelu")):
        assert not fused_layer.can_fuse(collect_weights(other.decoder, torch.float32), 1)


@interpreted
def test_the_limits_are_those_of_the_kernel():
    kernel = fused_layer.load_kernels("matmul")
    assert (fused_layer.FEW, fused_layer.WIDEST) == (kernel.MAX_ROWS, kernel.MAX_WIDTH)


@interpreted
@pytest.mark.parametrize(
    ("kind", "beams", "few", "longest"), [(PRE, 1, 8, 8), (PRE, 2, 8, 4), (PRE, 3, 0, 6), (PRE, 1, 0, 20), (POST, 2, 8, 5)]
)
def test_search_by_kernels_finds_what_the_reference_finds(monkeypatch, on_cpu, kind, beams, few, longest):
    """Of at most eight tokens, after which the host looks first, or of more, where those who are left move into less room."""
    monkeypatch.setattr(fused_layer, "FEW", few)
    built = model(kind, layers=2, ends=1.0)
    with torch.no_grad():
        memory = built.encode(SOURCE)
        for each in memory.memories.values():
            each.keep[1] = False  # one looks at nothing
    search = find_search(built.decoder, memory)
    assert search.engine.fused
    options = {"beams": beams, "best": beams, "length": [min(6, longest), 3, longest, min(7, longest)]}
    alike(search(memory, **options), reference(built.decoder, memory, **options))


class Noted(TorchDispatchMode):
    """What PyTorch is asked to do."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.__name__.split(".")[0])
        return func(*args, **kwargs or {})


@interpreted
@pytest.mark.parametrize(("kind", "few", "joined"), [(PRE, 8, True), (PRE, 0, False), (POST, 8, False)])
@pytest.mark.parametrize("beams", [1, 2])
def test_preparing_launches_what_a_step_does_and_computes_nothing(monkeypatch, on_cpu, kind, few, joined, beams):
    """Numbers that were never computed may be anything, so nothing may read them."""
    monkeypatch.setattr(fused_layer, "FEW", few)
    for place in (add_norm, topk, Beam):
        monkeypatch.setattr(place, "fits", lambda *asked: True)
    built = model(kind, layers=2)
    with torch.no_grad():
        memory = built.encode(SOURCE)
        board = BufferCache(find_search(built.decoder, memory), memory, beams, 1).board(1, 16)
    launched = []
    monkeypatch.setattr(compile, "launch", lambda program, *rest, **options: launched.append(program.__name__))
    with Noted() as noted:
        board.launch()
    assert noted.names <= {"empty", "new_empty", "empty_like", "slice", "promote_types"}
    fused = ["matmul_kernel", "attend_kernel", "matmul_kernel"] * 2 + ["matmul_kernel"] * 2
    layer = fused if joined else ["attend_kernel", "attend_kernel", "kernel"]
    ends = ["kernel", "update_kernel"] if beams == 1 else ["kernel", "kernel"]
    assert launched == ["embed_kernel", *["follow_kernel"] * (beams > 1), *layer, *ends]
