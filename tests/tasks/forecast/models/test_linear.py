import torch

from regard.tasks.forecast.layers import MovingAverage

from ..networks import build, draw_source


def test_it_is_a_linear_map_of_the_trend_and_one_of_the_rest():
    model, source = build("linear", norm="none"), draw_source()
    network = model.network
    rows = source.data.mT
    trend = MovingAverage(5)(rows)
    expected = (
        trend @ network.trend.weight.T + (rows - trend) @ network.rest.weight.T + network.trend.bias + network.rest.bias
    )
    torch.testing.assert_close(model(source).parameters[..., 0], expected.mT)
