from functools import partial

import pytest
import torch
from torch.testing import assert_close

from regard.attention.types import Encoded
from regard.models.attention_factory import build_attention
from regard.models.encoders.coordinates2d import encode_coordinates
from regard.models.layers.transformer import Sublayers
from regard.tasks.detect.layers import Anchored, Sets, ring


def made(name="transformer", size=32):
    return Anchored(partial(build_attention, name, heads=4), Sublayers(size, 4)).eval()


def places(count=20):
    """The middles of count x count places."""
    steps = (torch.arange(count) + 0.5) / count
    return torch.stack((steps[None].expand(count, count), steps[:, None].expand(count, count)), dim=-1).view(1, -1, 2)


def test_heads_begin_by_looking_at_their_points_of_the_box():
    layer, where = made(size=64), places()
    boxes = torch.tensor([[[0.3, 0.4, 0.2, 0.3], [0.7, 0.6, 0.4, 0.2]]])
    memory = layer.cross.remember(Encoded(torch.cat((torch.zeros(1, 400, 64), encode_coordinates(where, 64)), dim=-1)))
    query = torch.cat((torch.zeros(1, 2, 64), layer.stands(torch.zeros(1, 2, 64), boxes)), dim=-1)
    weights = layer.cross(query, memory, weights=True).weights[0]  # heads queries places
    points = boxes[0, None, :, :2] + ring(4)[:, None] * boxes[0, None, :, 2:] / 2
    highest = where[0][weights.argmax(-1)]
    assert (highest - points).abs().max() <= 0.5 / 20 + 1e-6


def test_the_first_point_is_the_middle_and_the_others_surround_it():
    assert ring(1).tolist() == [[0, 0]]
    assert_close(ring(5)[1:].sum(0), torch.zeros(2))
    assert_close(ring(5)[1:].norm(dim=-1), torch.full((4,), 0.8))


@pytest.mark.parametrize("name", ["transformer", "additive", "scaled_dot+sparsemax"])
def test_any_attention_may_read_the_map(name):
    layer = made(name)
    memory = layer.cross.remember(Encoded(torch.randn(2, 9, 64)))
    data, _, seen = layer(torch.randn(2, 5, 32), torch.rand(2, 5, 4), memory, Sets(torch.ones(2, 5, dtype=torch.bool)), True)
    assert data.shape == (2, 5, 32)
    assert seen.weights.shape[2:] == (5, 9)


def test_sets_of_queries_do_not_hear_each_other():
    layer = made()
    memory = layer.cross.remember(Encoded(torch.randn(1, 9, 64)))
    data, boxes = torch.randn(1, 5 + 2 * 3, 32), torch.rand(1, 5 + 2 * 3, 4)
    sets = Sets(torch.ones(1, 5, dtype=torch.bool), torch.tensor([[True, True, False]]))
    before = layer(data, boxes, memory, sets)[0]
    alone = layer(data[:, :5], boxes[:, :5], memory, Sets(sets.real))[0]
    assert_close(before[:, :5], alone)
    other = data.clone()
    other[:, 5:8] += 1  # the first group
    after = layer(other, boxes, memory, sets)[0]
    assert_close(after[:, :5], before[:, :5])
    assert_close(after[:, 8:], before[:, 8:])
    other = data.clone()
    other[:, 7] += 1  # what fills the first group up
    assert_close(layer(other, boxes, memory, sets)[0][:, 5:7], before[:, 5:7])


def test_a_query_that_is_not_real_is_not_heard():
    layer = made()
    memory = layer.cross.remember(Encoded(torch.randn(1, 9, 64)))
    data, boxes = torch.randn(1, 4, 32), torch.rand(1, 4, 4)
    real = torch.tensor([[True, True, True, False]])
    before = layer(data, boxes, memory, Sets(real))[0]
    data[:, 3] += 1
    assert_close(layer(data, boxes, memory, Sets(real))[0][:, :3], before[:, :3])


def test_there_has_to_be_an_attention():
    with pytest.raises(ValueError, match="a detector reads by an attention, and got none"):
        made("none")
