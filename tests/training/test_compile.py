import dataclasses

import pytest
import torch

from regard import tasks
from regard.config import AttentionPart, Model, Train
from regard.training import compile
from regard.training.compile import CompiledLayers
from regard.training.step import Update
from regard.training.throughput import Throughput

TRANSFORMER = Model(
    encoder="transformer",
    decoder="transformer",
    attention=AttentionPart("transformer", heads=2),
    hidden_size=16,
    heads=2,
    layers=3,
)


def experiment(**train):
    config = tasks.find("reverse").Config()
    data = dataclasses.replace(config.data, samples=60)
    return tasks.experiment("reverse", dataclasses.replace(config, data=data, model=TRANSFORMER, train=Train(**train)))[0]


def losses(**train):
    made = experiment(device="cpu", **train)
    update, speed = Update(made), Throughput()
    found = []
    for step in range(3):
        update([made.train.batch(step)], speed)
        found.append(speed.last)
    return found


@pytest.mark.unhooked
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # which torch.compile itself looks at, and hides
def test_compiled_updates_cost_what_others_cost_and_one_layer_is_compiled_for_all(monkeypatch):
    from torch._dynamo.testing import CompileCounter

    counter = CompileCounter()
    monkeypatch.setattr(compile, "BACKEND", counter)
    torch.compiler.reset()
    found = losses(compile=True)
    assert found == pytest.approx(losses(), rel=1e-5)
    shapes = 3
    assert 3 <= counter.frame_count <= 3 * shapes  # three parts, however many layers there are


@pytest.mark.unhooked
@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
def test_compiled_updates_of_packed_rows_cost_what_others_cost(monkeypatch):
    monkeypatch.setattr(compile, "BACKEND", "eager")
    torch.compiler.reset()
    assert losses(compile=True, packing_length=32) == pytest.approx(losses(packing_length=32), rel=1e-5)


@pytest.mark.unhooked
def test_layers_are_only_exchanged_while_it_is_entered(monkeypatch):
    monkeypatch.setattr(compile, "BACKEND", "eager")
    model = experiment().model
    names = set(model.state_dict())
    exchange = CompiledLayers(model)
    assert len(exchange.parts) == 3 * (1 + 2)
    with exchange:
        assert all("attend" in layer.__dict__ for layer in model.encoder.children() if type(layer) in compile.PARTS)
        assert set(model.state_dict()) == names
    assert all("attend" not in layer.__dict__ for layer in model.decoder.layers)


def test_without_the_setting_nothing_is_compiled():
    assert Update(experiment(device="cpu")).compiled is None
