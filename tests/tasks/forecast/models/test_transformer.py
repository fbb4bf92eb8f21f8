import pytest
import torch

from regard.config import AttentionPart

from ..networks import build, draw_source


@pytest.mark.parametrize("self_attention", ["scaled_dot+local", "dilated", "log_sparse", "alibi"])
def test_a_transformer_reads_a_long_look_back_by_a_restricted_self_attention(self_attention):
    model = build("transformer", self_attention=self_attention, attention=AttentionPart("transformer", heads=2))
    assert model(draw_source()).parameters.isfinite().all()


def test_padding_before_a_series_is_not_attended_to():
    model, source = build("transformer"), draw_source()
    keep = source.keep.clone()
    keep[:, :5] = False
    padded = source._replace(keep=keep, observed=source.observed & keep[..., None], data=source.data * keep[..., None])
    changed = padded._replace(past=torch.where(keep[..., None], padded.past, 9.0))
    torch.testing.assert_close(model(changed).parameters, model(padded).parameters)
