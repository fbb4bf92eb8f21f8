import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from regard.config import Model
from regard.decoding.engines.cpp import select
from regard.decoding.engines.cpp.build import UnavailableError
from regard.decoding.engines.cuda import transformer as cached
from regard.errors import ConfigError
from regard.interop.engine import compile_in
from regard.kernels.flex_block_mask import compiled as flex_blocks
from regard.tasks.translate import Config
from regard.training.compile import CompiledLayers
from regard.user_cache import INDUCTOR

from ..models.small import made


@pytest.fixture(autouse=True)
def _unset(monkeypatch):
    monkeypatch.setenv(INDUCTOR, "")  # so that it is again what it was, whoever sets it meanwhile


def trained(device: str, decoder: str):
    """A model as far as it is looked at; no weight is on a GPU here."""
    model = SimpleNamespace(parameters=lambda: iter([SimpleNamespace(device=torch.device(device))]))
    return SimpleNamespace(model=model, config=Config(model=Model(decoder=decoder)), compiled=False)


def transformer():
    return made("transformer", encoder="transformer", decoder="transformer")


@pytest.mark.parametrize("decoder", ["transformer", "recurrent", "convolution"])
def test_on_a_cpu_the_search_is_compiled_for_the_machine(decoder):
    config = Config(model=Model(decoder=decoder))
    model = SimpleNamespace(model=made("transformer", decoder=decoder), config=config)
    compile_in(model)
    assert model.compiled


def test_where_nothing_can_be_compiled_a_warning_says_so_and_the_usual_engine_is_left(monkeypatch):
    def fails():
        raise UnavailableError("there is no C++ compiler")

    monkeypatch.setattr(select, "load_library", fails)
    select.is_usable.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"nothing is compiled: there is no C\+\+ compiler. The usual engine answers"):
        compile_in(SimpleNamespace(model=made("bilinear"), config=Config()))
    select.is_usable.cache_clear()


def test_what_would_not_be_compiled_is_refused():
    with pytest.raises(
        ConfigError, match="--compile does not cover this model on a CPU: needs the Transformer decoder, got Con"
    ):
        compile_in(SimpleNamespace(model=made("none", decoder="convolution"), config=Config()))
    with pytest.raises(ConfigError, match="--compile is for transformer decoders on a GPU, and this one is recurrent"):
        compile_in(trained("cuda", "recurrent"))
    assert not os.environ[INDUCTOR]


def test_compiled_steps_have_the_users_cache_and_never_the_run_directory(tmp_path, monkeypatch):
    """Whatever lies beside a model or in the current folder: the compiler's cache is the user's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    model = trained("cuda", "transformer")
    compile_in(model)
    cached.Engine(transformer().decoder, torch.float32, compiled=model.compiled)
    assert os.environ[INDUCTOR] == str(tmp_path / "cache" / "regard" / "inductor")


@pytest.mark.unhooked
def test_a_transformer_in_training_and_a_scope_are_compiled_in_the_users_cache_too(tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    for number, compiles in enumerate(
        (lambda: CompiledLayers(transformer()), lambda: flex_blocks.compile_program("a structure"))
    ):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(number)))
        monkeypatch.delenv(INDUCTOR, raising=False)
        compiles()
        assert os.environ[INDUCTOR] == str(tmp_path / str(number) / "regard" / "inductor")
    flex_blocks.PROGRAMS.pop("a structure")


PROGRAM = """
import os, pathlib, sys
opened, loads = [], []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else loads.append(given) if event == "pickle.find_class" else None)
import torch
from regard.user_cache import set_compiler_cache
set_compiler_cache()
torch.compile(lambda data: (data + 1).relu())(torch.ones(64))
print(any(path.startswith(sys.argv[1]) for path in opened), any("Leak" in map(str, given) for given in loads))
"""


class Leak:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.soak
@pytest.mark.unhooked
@pytest.mark.timeout(900)
def test_a_pickle_in_the_place_of_what_was_compiled_is_only_opened_where_the_user_names_that_place(tmp_path):
    run, ran = tmp_path / "run", tmp_path / "ran"
    planted = run / "engines" / "compiled"
    usual = {name: value for name, value in os.environ.items() if name != INDUCTOR}

    def compiled(check=True, **more):
        command = [sys.executable, "-c", PROGRAM, str(run)]
        done = subprocess.run(command, capture_output=True, text=True, check=check, cwd=run, env={**usual, **more})
        return done.stdout.split()

    run.mkdir()
    assert compiled(**{INDUCTOR: str(planted)})[0] == "True"
    pickles = [each for each in planted.glob("fxgraph/**/*") if each.is_file()]
    assert pickles
    for each in pickles:
        each.write_bytes(pickle.dumps(Leak(ran)))
    for each in ("fxgraph", "aotautograd"):  # the current folder is the run directory
        shutil.copytree(planted / each, run / each)
    shutil.rmtree(planted / "aotautograd")
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert [compiled(**cache), compiled(**cache)] == [["False", "False"]] * 2
    assert not ran.exists()
    assert any((tmp_path / "cache" / "regard" / "inductor").rglob("*.so"))
    compiled(check=False, **{INDUCTOR: str(planted)})
    assert ran.exists()  # so it would have run
