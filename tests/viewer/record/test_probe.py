import numpy as np
import pytest
import torch
from torch import nn

import regard
from regard.attention import MultiHead
from regard.viewer.io.check import check
from regard.viewer.record.probe import MOST, interval, thinned, undisturbed
from regard.viewer.trace import Frame


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.drop = MultiHead(8, heads=2, dropout=0.5), nn.Dropout(0.5)

    def forward(self, data):
        return self.drop(self.look(data, self.look.remember(data)).context)


def trained(film=None, steps=7):
    torch.manual_seed(0)
    model, data = Network(), torch.randn(4, 5, 8)
    optimiser = torch.optim.Adam(model.parameters(), 0.1)
    rec = regard.record(model)
    with rec:
        see = rec.every(2, film(model, data)) if film else lambda step, loss: None
        for step in range(steps):
            optimiser.zero_grad()
            loss = model(data).square().sum()
            loss.backward()
            optimiser.step()
            see(step, loss.item())
            assert model.training
    return model, rec


@pytest.mark.parametrize(
    "film", [lambda model, data: (data[:1],), lambda model, data: lambda: model(data[:1])], ids=["arguments", "a function"]
)
def test_a_training_loop_of_ones_own_is_filmed_and_does_not_feel_it(film):
    plain, _ = trained()
    model, rec = trained(film)
    for name, weight in plain.state_dict().items():
        assert torch.equal(model.state_dict()[name], weight), name
    trace = rec.trace()
    check(trace)
    assert [frame.step for frame in trace.training] == [0, 2, 4, 6]
    assert all(frame.loss > 0 for frame in trace.training)
    assert len(trace.examples) == 1  # the training itself is not recorded
    np.testing.assert_array_equal(trace.training[-1].weights["look"], trace.attention().weights)
    assert not np.array_equal(trace.training[0].weights["look"], trace.attention().weights)
    assert next(node for node in trace.graph.nodes if node.id == "look").inputs["query"] == (1, 5, 8)  # that of the probe


def test_several_examples_are_frames_each():
    _, rec = trained(lambda model, data: (data[:3],))
    assert [(frame.step, frame.example) for frame in rec.trace().training][:4] == [(0, 0), (0, 1), (0, 2), (2, 0)]
    assert len(rec.trace().examples) == 3


def test_the_same_step_is_not_filmed_twice():
    model = Network()
    with regard.record(model) as rec:
        film = rec.every(5, (torch.randn(1, 3, 8),))
        assert [film(step) for step in (0, 1, 5, 5, 7, 10)] == [True, False, True, False, False, True]


def test_frames_stay_few_however_long_a_training_is():
    assert interval(0, 100) == 100
    assert interval(100 * (MOST - 1), 100) == 100
    assert interval(100 * MOST, 100) == 200
    assert interval(10**9, 1) == 2**23  # 10^9 / 2^23 is 119.2; half of it would be 238 frames
    frames: list[Frame] = []
    for step in range(0, 1501, 3):
        if step % interval(step, 3) == 0:
            frames = thinned([*frames, Frame(step, None, {})], 3)
        assert len(frames) <= MOST
    assert [frame.step for frame in frames] == list(range(0, 1501, 12))  # 501 frames would be, and then 251


def test_the_last_frame_stays_though_it_is_out_of_step():
    frames = [Frame(step, None, {}) for step in (0, 10, 20, 25)]
    assert [frame.step for frame in thinned(frames, 10)] == [0, 10, 20, 25]
    assert [frame.step for frame in thinned([*frames, Frame(30, None, {})], 10)] == [0, 10, 20, 30]


def test_every_needs_a_number_of_steps():
    with pytest.raises(ValueError, match="every needs a number of steps from 1 on, got 0"):
        regard.record(Network()).every(0, ())


def test_modes_and_generators_are_as_before_also_after_an_error():
    model = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.Dropout(0.5)).eval()).train()
    model[1].eval()
    before = [module.training for module in model.modules()]
    torch.manual_seed(4)
    expected = torch.rand(3)
    torch.manual_seed(4)
    with undisturbed(model):
        assert not any(module.training for module in model.modules())
        assert not torch.is_grad_enabled()
        torch.rand(10)
    with pytest.raises(KeyError), undisturbed(model):
        raise KeyError
    assert [module.training for module in model.modules()] == before == [True, True, False, False]
    assert torch.equal(torch.rand(3), expected)
    assert torch.is_grad_enabled()
