import pytest
import torch

import regard
from regard.errors import RefusedError
from regard.interop.onnx.parity import check_parity, relative_error
from regard.interop.onnx.sessions import ENCODER, Graph, Sessions
from regard.training.run_directory import STEP


def test_a_distance_is_a_share_of_the_largest_number_or_of_one():
    assert relative_error(torch.tensor([0.5, 0.25]), torch.tensor([0.5, 0.5])) == 0.25
    assert relative_error(torch.tensor([4.0, 2.0]), torch.tensor([4.0, 3.0])) == 0.25
    assert relative_error(torch.empty(0), torch.empty(0)) == 0


def test_another_shape_and_a_nan_on_one_side_are_infinitely_far():
    assert relative_error(torch.zeros(2), torch.zeros(2, 1)) == float("inf")
    assert relative_error(torch.tensor([float("nan")]), torch.zeros(1)) == float("inf")
    assert relative_error(torch.zeros(1), torch.tensor([float("-inf")])) == float("inf")


def test_equal_infinities_are_equal():
    assert relative_error(torch.tensor([float("-inf"), 1.0]), torch.tensor([float("-inf"), 1.0])) == 0


@pytest.mark.unhooked
@pytest.mark.timeout(600)
def test_graphs_of_another_model_are_not_taken_for_it(run, exported):
    loaded = regard.load(run, "cpu")
    graphs = Sessions((exported / ENCODER).read_bytes(), (exported / STEP).read_bytes(), 256)
    check_parity(loaded.model, graphs.encoder, graphs.decoder.graph, 256)
    with torch.no_grad():
        loaded.model.decoder.readout.bias.add_(0.1)
    with pytest.raises(RefusedError, match=r"not the model: .* differs by .* sources of . tokens .*; nothing was written"):
        check_parity(loaded.model, graphs.encoder, graphs.decoder.graph, 256)


@pytest.mark.unhooked
@pytest.mark.timeout(600)
def test_graphs_that_do_not_run_are_refused(run, exported, monkeypatch):
    def fail(*_):
        raise ValueError("an index is out of range")

    step = Graph((exported / STEP).read_bytes(), STEP)
    monkeypatch.setattr(Graph, "__call__", fail)
    with pytest.raises(
        RefusedError,
        match="do not run for 1 sources of 1 tokens with 1 beams: an index is out of range; nothing was written",
    ):
        check_parity(regard.load(run, "cpu").model, step, step, 256)
