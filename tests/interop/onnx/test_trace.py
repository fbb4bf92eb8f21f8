import numpy as np
import pytest
import torch

import regard
from regard.attention.types import Attended
from regard.errors import RefusedError
from regard.interop.onnx.trace import NOTE, attentions

TEXTS = ["Tom chases Jerry", "the big dog likes a small cat"]


def test_what_looks_at_the_target_so_far_may_not_see_what_is_to_come():
    own = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]]]])
    over = torch.tensor([[[[0.2, 0.3, 0.5], [0.0, 0.0, 0.0]]]])
    attended = {
        name: Attended(torch.zeros(1, 2, 0), weights)
        for name, weights in {"decoder.0.self": own, "decoder.0.cross": over, "decoder.1.self": own}.items()
    }
    first, cross, second = attentions(attended)
    assert (first.query, first.key, first.layer, second.layer) == ("target", "written", 0, 1)
    assert first.allowed.tolist() == [[True, False], [True, True]]
    assert first.sums_to_one
    assert (cross.query, cross.key, cross.layer, cross.allowed) == ("target", "source", 0, None)
    assert not cross.sums_to_one


@pytest.mark.unhooked
@pytest.mark.timeout(600)
@pytest.mark.parametrize("beam", [1, 3])
def test_a_trace_of_graphs_is_the_runs_own_as_far_as_the_decoder_goes(run, exported, beam, tmp_path):
    right, found = (regard.load(each, "cpu").trace(TEXTS, beam=beam) for each in (run, exported))
    assert found.notes == (NOTE,)
    for one, other in zip(right.examples, found.examples, strict=True):
        assert other.title == one.title
        assert {name: axis.pieces for name, axis in other.axes.items()} == {n: axis.pieces for n, axis in one.axes.items()}
        assert [step.token for step in other.steps] == [step.token for step in one.steps]
        assert [step.logprob for step in other.steps] == pytest.approx([step.logprob for step in one.steps], abs=1e-4)
        [attention_map], [expected] = other.attentions, [each for each in one.attentions if each.name.startswith("decoder.")]
        assert (attention_map.name, attention_map.query, attention_map.key) == (expected.name, expected.query, expected.key)
        np.testing.assert_allclose(attention_map.weights, expected.weights, atol=1e-3)
        if beam > 1:
            assert other.beams.tokens == one.beams.tokens
            assert other.beams.best == one.beams.best
            np.testing.assert_allclose(other.beams.weights, one.beams.weights, atol=1e-2)
    saved = found.save(tmp_path / "graphs.attn.safetensors")
    assert regard.Trace.load(saved).attention().name == "decoder.cross"


@pytest.mark.unhooked
@pytest.mark.timeout(600)
def test_given_targets_are_followed_and_a_recorder_hears_what_is_predicted(exported):
    model = regard.load(exported)
    found = model.trace(["Tom chases Jerry"], targets=["汤姆追逐杰瑞"])
    assert "".join(step.token for step in found.example().steps).startswith("汤姆")
    assert found.example().beams is None
    with regard.record(model) as rec:
        model.predict(["Mary likes Tom"])
    assert rec.trace().example().title == "Mary likes Tom"


@pytest.mark.unhooked
@pytest.mark.timeout(600)
def test_scores_are_refused_with_what_to_do(exported):
    with pytest.raises(RefusedError, match="give the weights of their attentions and not the scores before them: leave"):
        regard.load(exported).trace(["Tom"], scores=True)
