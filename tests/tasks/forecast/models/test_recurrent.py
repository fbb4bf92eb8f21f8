import pytest
import torch

from regard.config import AttentionPart
from regard.data.batch import Padded

from ..networks import build, draw_source, draw_target


def test_teacher_forcing_reads_the_values_before_and_scheduled_sampling_its_own():
    model, source, target = build("recurrent"), draw_source(), draw_target()
    free, forced, sampled = model(source), model(source, target), model(source, target, sampling=1.0)
    assert not torch.allclose(forced.parameters[:, 1:], free.parameters[:, 1:])
    torch.testing.assert_close(sampled.parameters, free.parameters)
    later = Padded(target.data.clone(), target.keep)
    later.data[:, 2:] += 3
    changed = model(source, later).parameters
    torch.testing.assert_close(changed[:, :3], forced.parameters[:, :3])
    assert not torch.allclose(changed[:, 3:], forced.parameters[:, 3:])


@pytest.mark.parametrize("attention", ["additive", "scaled_dot", "transformer", "local_p", "location_sensitive", "none"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_a_recurrent_decoder_reads_the_look_back_by_any_attention(attention, cell):
    model = build("recurrent", attention=AttentionPart(attention, heads=2), cell=cell)
    assert model(draw_source()).parameters.isfinite().all()
