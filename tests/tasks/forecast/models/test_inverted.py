import torch

from ..networks import build, draw_source


def test_a_target_reads_the_other_ones_and_the_covariates():
    model, source = build("inverted"), draw_source()
    whole = model(source).parameters[:, :, 0]
    data = source.data.clone()
    data[:, 3:6, 1] += 1.0
    assert not torch.allclose(model(source._replace(data=data)).parameters[:, :, 0], whole)
    assert not torch.allclose(model(source._replace(past=source.past + 1)).parameters[:, :, 0], whole)


def test_covariates_of_the_horizon_are_not_read():
    model, source = build("inverted"), draw_source()
    known = source.known.clone()
    known[:, 12:] += 1.0
    torch.testing.assert_close(model(source._replace(known=known)).parameters, model(source).parameters)
