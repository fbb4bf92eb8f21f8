"""Programs that a board has compiled side by side, and those that its step starts, for a GPU that is not there.

    python -m tests.decoding.engines.cuda.counted

One line of JSON for each case: its name, the programs that were compiled and loaded in threads, those that the step
started, and those that were compiled or loaded for it after all, each by the name of its function.
"""

import json
import os
import sys
import tempfile
import threading
from pathlib import Path

os.environ.pop("TRITON_INTERPRET", None)
sys.path.insert(0, str(Path(__file__).parents[4] / "benchmarks"))

import numpy as np
import torch
from triton import knobs
from triton.compiler import CompiledKernel
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

import room
from regard.decoding.engines.cuda import add_norm, fused_layer, generic, topk, transformer
from regard.decoding.engines.cuda.beam import Beam
from regard.decoding.engines.cuda.greedy import Greedy
from regard.decoding.engines.cuda.search import STEPS_PER_FETCH, SearchBuffers

from .small import PRE, SOURCE, model

CPU = torch.device("cpu")
LUONG = "recurrent, recurrent, lstm, luong"
FUNCTIONS, COMPILED, LOADED, STARTED = set(), [], [], {}
"""Functions that were asked for; the names of those compiled, and of those loaded by a thread; programs that were started."""


def run(self, *given, grid, warmup, before=JITFunction.run, **named):
    """Compile, and start nothing."""
    FUNCTIONS.add(self)
    program = before(self, *given, grid=grid, warmup=True, **named)
    if not warmup:
        STARTED[id(program)] = program
    return program


def compiled(self, *given, before=JITFunction._do_compile):
    COMPILED.append(self.fn.__name__)
    return before(self, *given)


def handles(self):
    """In place of a C compiler and of a GPU's memory."""
    assert threading.current_thread() is not threading.main_thread()
    LOADED.append(name(self))
    self.module = "loaded"


def name(program):
    return program.src.fn.fn.__name__


def pretend():
    """A Hopper GPU, whose tensors are on the CPU."""
    room.ABSENT.chip = 90
    driver.set_active(room.ABSENT)
    knobs.cache.dir = tempfile.mkdtemp()
    knobs.runtime.add_stages_inspection_hook = room.no_further
    JITFunction.run, JITFunction._do_compile, CompiledKernel._init_handles = run, compiled, handles
    fused_layer.DEVICES = ("cpu",)
    fused_layer.load_kernels("tile").supports_pdl = lambda device: True
    add_norm.fits = topk.fits = Beam.fits = lambda *asked: True


def board(kind, dtype, sentences, beams):
    """A search of some shape, of sources that were read."""
    built = model(kind, "transformer", layers=2).to(dtype)
    memory = built.encode(SOURCE)
    engine = (transformer if kind == PRE else generic).Engine(built.decoder, dtype)
    choice = (
        Greedy(sentences, STEPS_PER_FETCH, CPU)
        if beams == 1
        else Beam(sentences, beams, 1, beams + 1, 16, STEPS_PER_FETCH, CPU)
    )
    steps = engine.steps(memory, sentences, beams, 16)
    steps.begin(memory, np.arange(4)[:sentences])
    made = SearchBuffers(steps, choice, CPU, None)
    made.decoder = built  # which the steps of a recurrent one do not hold
    return made


def counted(kind, dtype, sentences, beams):
    """One case, for which nothing has been compiled."""
    for function in FUNCTIONS:
        function.device_caches.clear()
    for each in (COMPILED, LOADED, STARTED):
        each.clear()
    made = board(kind, dtype, sentences, beams)
    made.prepare()
    assert not STARTED
    prepared = sorted(LOADED)
    COMPILED.clear()
    made.advance()
    late = COMPILED + [name(each) for each in STARTED.values() if each.module is None]
    case = kind.split(",")[1].strip(), str(dtype).removeprefix("torch."), sentences, beams
    return {"case": case, "prepared": prepared, "started": sorted(map(name, STARTED.values())), "late": late}


if __name__ == "__main__":
    pretend()
    shapes = [(dtype, count, beams) for dtype in (torch.float32, torch.bfloat16) for count in (1, 64) for beams in (1, 5)]
    with torch.no_grad():
        for case in [*((PRE, *each) for each in shapes), (LUONG, torch.float32, 1, 5)]:
            print(json.dumps(counted(*case)), flush=True)
