import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from regard.config import ConfigError, Model
from regard.export.compiled import PLACE, beside, compile_in
from regard.native.compiled import ready
from regard.native.compiled.library import UnavailableError
from regard.tasks.translate import Config

from ..models.small import made


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    monkeypatch.delenv(PLACE, raising=False)


def trained(device: str, decoder: str):
    """A model as far as it is looked at; no weight is on a GPU here."""
    model = SimpleNamespace(parameters=lambda: iter([SimpleNamespace(device=torch.device(device))]))
    return SimpleNamespace(model=model, config=Config(model=Model(decoder=decoder)))


def test_a_transformer_on_a_gpu_searches_with_compiled_steps_kept_in_its_run(tmp_path):
    model = trained("cuda", "transformer")
    compile_in(model, tmp_path)
    assert model.config.search.compile
    assert os.environ[PLACE] == str(tmp_path / "engines" / "compiled")


@pytest.mark.parametrize("decoder", ["transformer", "recurrent", "convolution"])
def test_on_a_cpu_the_search_is_compiled_for_the_machine_and_not_for_the_run(tmp_path, decoder):
    config = Config(model=Model(decoder=decoder))
    model = SimpleNamespace(model=made("transformer", decoder=decoder), config=config)
    compile_in(model, tmp_path)
    assert model.config.search.compile
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_compiled_a_warning_says_so_and_the_usual_engine_is_left(tmp_path, monkeypatch):
    def fails():
        raise UnavailableError("there is no C++ compiler")

    monkeypatch.setattr(ready, "library", fails)
    ready.usable.cache_clear()
    with pytest.warns(RuntimeWarning, match=r"nothing is compiled: there is no C\+\+ compiler. The usual engine answers"):
        compile_in(SimpleNamespace(model=made("bilinear"), config=Config()), tmp_path)
    ready.usable.cache_clear()


def test_what_would_not_be_compiled_is_refused(tmp_path):
    with pytest.raises(
        ConfigError, match="--compile does not cover this model on a CPU: needs the Transformer decoder, got Con"
    ):
        compile_in(SimpleNamespace(model=made("none", decoder="convolution"), config=Config()), tmp_path)
    with pytest.raises(ConfigError, match="--compile is for transformer decoders on a GPU, and this one is recurrent"):
        compile_in(trained("cuda", "recurrent"), tmp_path)
    assert PLACE not in os.environ
    assert not list(tmp_path.iterdir())


def test_a_place_that_was_chosen_stays_and_one_that_cannot_be_written_is_none(tmp_path, monkeypatch):
    (tmp_path / "engines").write_text("a file in the way")
    assert beside(tmp_path) is None
    assert PLACE not in os.environ
    (tmp_path / "engines").unlink()
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert beside(tmp_path) is None
    monkeypatch.undo()
    monkeypatch.setenv(PLACE, "elsewhere")
    assert beside(tmp_path) is None
    assert os.environ[PLACE] == "elsewhere"
    monkeypatch.setenv(PLACE, "/tmp/torchinductor_somebody")  # PyTorch's own choice
    assert beside(tmp_path) == tmp_path / "engines" / "compiled"
    assert beside(tmp_path / "other") == tmp_path / "other" / "engines" / "compiled"  # that of another run was no choice


@pytest.mark.soak
@pytest.mark.unhooked
def test_a_second_program_finds_what_the_first_has_compiled(tmp_path):
    program = """
import sys
from pathlib import Path
import torch
from torch._dynamo.utils import counters
from regard.export.compiled import beside
beside(Path(sys.argv[1]))
torch.compile(lambda data: (data + 1).relu())(torch.ones(64))
print(counters["inductor"]["fxgraph_cache_hit"])
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    some = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() for _ in range(2)]
    assert some == ["0", "1"]
    assert any((tmp_path / "engines" / "compiled").rglob("*.so"))
