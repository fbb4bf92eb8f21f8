import pytest
import torch

from regard.tasks.forecast.layers import BatchNorm, EncoderLayer, MovingAverage


def test_a_moving_average_continues_the_ends():
    values = torch.tensor([1.0, 2, 3, 10])
    assert MovingAverage(3)(values).tolist() == pytest.approx([4 / 3, 2, 5, 23 / 3])
    with pytest.raises(ValueError, match="a moving average needs an odd number of steps, got 4"):
        MovingAverage(4)


def test_batch_norm_is_over_rows_and_time():
    data = 3 * torch.randn(4, 50, 2) + 5
    normalised = BatchNorm(2)(data)
    torch.testing.assert_close(normalised.mean((0, 1)), torch.zeros(2), atol=1e-5, rtol=0)
    torch.testing.assert_close(normalised.std((0, 1), correction=0), torch.ones(2), atol=1e-4, rtol=0)


@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_an_encoder_layer_does_not_attend_to_padding(norm):
    layer = EncoderLayer(8, 2, 16, attention="scaled_dot", norm=norm, dropout=0.0, drop_attention=0.0).eval()
    data, keep = torch.randn(2, 6, 8), torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    changed = torch.where(keep[..., None], data, 9.0)
    torch.testing.assert_close(layer(changed, keep)[0][keep], layer(data, keep)[0][keep])
