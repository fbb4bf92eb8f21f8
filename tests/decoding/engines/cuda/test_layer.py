import math

import torch

from regard.attention.types import Memory
from regard.decoding.engines.cuda.layer import add_residual, attend, feed_forward, run_layer
from regard.decoding.engines.cuda.matrices import collect_weights

from .small import POST, PRE, model


def test_rows_see_what_their_mask_leaves_them():
    query, keys, values = (torch.randn(2, 2, count, 3) for count in (2, 4, 4))
    mask = torch.zeros(2, 2, 4)
    mask[:, 0, 1:] = -math.inf  # the first row sees the first key alone
    found = attend(query, keys, values, mask, 0.5).view(2, 2, 2, 3)
    torch.testing.assert_close(found[:, 0], values[:, :, 0])
    weights = (query[:, :, 1:] @ keys.mT * 0.5).softmax(-1)
    torch.testing.assert_close(found[:, 1], (weights @ values)[:, :, 0])


def test_a_sum_and_its_norm_are_what_the_decoder_makes_of_them():
    for kind in (PRE, POST):
        decoder = model(kind).decoder
        (layer,) = collect_weights(decoder, torch.float32)
        data, found = torch.randn(3, 8), torch.randn(3, 8)
        around, entered = add_residual(layer, 0, data, found)
        right = decoder.layers[0].around_self.add(data[None], found[None])
        torch.testing.assert_close(around, right[0])
        torch.testing.assert_close(entered, decoder.layers[0].around_cross.normalise_input(right)[0])


def test_it_thinks_as_the_decoder_does():
    for activation in ("relu", "gelu"):
        decoder = model(activation=activation).decoder
        (layer,) = collect_weights(decoder, torch.float32)
        data = torch.randn(3, 8)
        torch.testing.assert_close(feed_forward(layer, data), decoder.layers[0].feedforward(data))


def test_keys_and_values_are_written_where_the_place_says():
    (layer,) = collect_weights(model().decoder, torch.float32)
    cache, source = torch.zeros(1, 4, 2, 16), Memory(torch.randn(1, 2, 3, 4), torch.randn(1, 2, 3, 4))
    masks = torch.zeros(1, 2, 8), torch.zeros(1, 1, 3)
    data = torch.randn(2, 8)
    with torch.no_grad():
        run_layer(layer, (data, data), cache, source, masks, torch.tensor([2]))
        right = torch.nn.functional.linear(data, *layer.threefold)[:, 8:]
    torch.testing.assert_close(cache[0, 2], right)
    assert not cache[0, [0, 1, 3]].any()
