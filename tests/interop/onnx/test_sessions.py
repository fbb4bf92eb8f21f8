import pytest
import torch

import regard
from regard.data.batch import Padded
from regard.errors import RefusedError
from regard.interop import require
from regard.interop.onnx.sessions import Graph

pytestmark = [pytest.mark.unhooked, pytest.mark.timeout(600)]

SOURCE = Padded(torch.tensor([[4, 5, 6], [7, 3, 0]]), torch.tensor([[True, True, True], [True, True, False]]))


def sources(*tokens):
    data = torch.tensor([tokens])
    return Padded(data, torch.ones_like(data, dtype=torch.bool))


def test_given_targets_have_the_weights_of_every_step(run, exported):
    target = torch.tensor([[1, 4, 5], [1, 6, 3]])
    ours, theirs = regard.load(run, "cpu").model, regard.load(exported).model
    with torch.no_grad():
        right = ours.decoder(target, ours.encode(SOURCE), weights=True)
    found = theirs(SOURCE, target, weights=True)
    torch.testing.assert_close(found.output, right.output.log_softmax(-1), atol=1e-5, rtol=0)
    seen, expected = (each.attended["decoder.cross"].weights for each in (found, right))
    torch.testing.assert_close(seen, expected, atol=1e-5, rtol=0)
    assert theirs(SOURCE, target).attended == {}


def test_beams_side_by_side_are_what_each_is_alone(exported):
    model = regard.load(exported).model
    memory = model.encode(SOURCE)
    twice = {name: each.repeat_interleave(2, 0) for name, each in model.decoder.start(memory).items()}
    both = model.decoder.step(torch.tensor([4, 5, 6, 7]), memory, twice)
    for beam, tokens in enumerate(([4, 6], [5, 7])):
        alone = model.decoder.step(torch.tensor(tokens), memory, model.decoder.start(memory))
        torch.testing.assert_close(both.output[beam::2], alone.output)
        for name, each in alone.state.items():
            torch.testing.assert_close(both.state[name][beam::2], each)


def test_a_source_longer_than_the_model_allows_is_refused(exported):
    model = regard.load(exported).model
    with pytest.raises(ValueError, match=r"this model reads sources of up to 256 tokens, got 300; cut them, or train with"):
        model.encode(sources(*[4] * 300))


def test_what_onnxruntime_cannot_do_is_said_in_a_sentence(exported):
    model = regard.load(exported).model
    with pytest.raises(
        ValueError, match=r"onnxruntime could not run encoder\.onnx: .*; a source or an answer that is longer"
    ):
        model.encode(sources(10_000))


def test_statistics_are_refused(exported):
    model = regard.load(exported).model
    with pytest.raises(
        ValueError, match="has weights of its attentions and no statistics, got entropy; ask for weights=True"
    ):
        model.decoder(torch.tensor([[1]]), model.encode(sources(4)), statistics=("entropy",))


def test_a_machine_without_onnxruntime_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setattr(require, "find_spec", lambda name: None)
    with pytest.raises(RefusedError, match=r"this needs onnxruntime, which is not installed: pip install 'regard\[onnx\]'"):
        Graph(b"", "step.onnx")
