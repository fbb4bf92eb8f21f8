import torch

from regard.decoding.engines.cuda.matrices import cast_linear, cast_norm, collect_weights, concatenate, find_scale

from .small import POST, PRE, model


def test_layers_that_read_the_same_are_one():
    one, two = torch.nn.Linear(3, 2), torch.nn.Linear(3, 4, bias=False)
    matrix, bias = concatenate([cast_linear(one, torch.float32), cast_linear(two, torch.float32)])
    data = torch.randn(5, 3)
    torch.testing.assert_close(data @ matrix.mT + bias, torch.cat((one(data), two(data)), 1))


def test_what_changes_nothing_is_nothing():
    assert cast_linear(torch.nn.Identity(), torch.float32) is None
    assert cast_norm(torch.nn.Identity(), torch.float32) is None


def test_a_weight_is_itself_in_its_own_precision_and_a_copy_in_another():
    layer = torch.nn.Linear(3, 2)
    assert cast_linear(layer, torch.float32)[0].data_ptr() == layer.weight.data_ptr()
    assert cast_linear(layer, torch.bfloat16)[1].dtype == torch.bfloat16


def test_norms_stand_behind_the_sums():
    decoder = model(PRE, layers=2).decoder
    first, second = collect_weights(decoder, torch.float32)
    assert first.first
    assert first.norms[2].weight is not None
    assert first.norms[0].weight.data_ptr() == decoder.layers[0].around_cross.norm.weight.data_ptr()
    assert first.norms[2].weight.data_ptr() == decoder.layers[1].around_self.norm.weight.data_ptr()
    assert second.norms[2].weight.data_ptr() == decoder.norm.weight.data_ptr()
    decoder = model(POST, layers=2).decoder
    (first, _) = collect_weights(decoder, torch.float32)
    assert not first.first
    assert first.norms[0].weight.data_ptr() == decoder.layers[0].around_self.norm.weight.data_ptr()
    assert first.norms[2].weight.data_ptr() == decoder.layers[0].around_feedforward.norm.weight.data_ptr()


def test_the_scale_is_that_of_a_head():
    assert find_scale(model().decoder.layers[0].self) == 0.5  # 8 in 2 heads
