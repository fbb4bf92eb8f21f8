import pytest
import torch

from regard.errors import ConfigError

from ..networks import build, draw_source


def test_a_patch_longer_than_the_look_back_is_refused():
    with pytest.raises(
        ConfigError, match=r"model\.patch_length=16 needs a look-back of at least as many steps, got data\.look_back=12"
    ):
        build("patch", patch_length=16)


def test_each_target_is_forecast_on_its_own():
    model, source = build("patch"), draw_source()
    data = source.data.clone()
    data[..., 1] += torch.randn(data.shape[:2])
    changed, whole = (model(source._replace(data=values)).parameters for values in (data, source.data))
    torch.testing.assert_close(changed[:, :, 0], whole[:, :, 0])
    assert not torch.allclose(changed[:, :, 1], whole[:, :, 1])


def test_patches_cover_the_look_back_and_one_stride_of_its_last_value():
    network = build("patch").network
    assert network.positions.shape == ((12 + 2 - 4) // 2 + 1, 8)
