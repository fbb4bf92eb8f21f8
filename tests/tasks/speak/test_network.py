import torch
from torch.testing import assert_close

from regard.data.batch import pad
from regard.tasks.speak.network import Convolutions, Prenet, TextEncoder


def test_convolutions_do_not_see_padding():
    layers, keep = Convolutions([2, 4, 3], 3, 0.0).eval(), torch.tensor([[True, True, False, False]])
    data = torch.randn(1, 4, 2)
    poisoned = data.clone()
    poisoned[:, 2:] = 100.0
    assert_close(layers(poisoned, keep), layers(data, keep))
    assert not layers(data, keep)[:, 2:].any()
    assert_close(layers(data, keep)[:, :2], layers(data[:, :2], keep[:, :2]))


def test_the_last_layer_of_a_postnet_has_no_activation():
    layers = Convolutions([2, 2], 1, 0.0, "tanh", plain_last=True)
    data = 100 * torch.ones(1, 1, 2)
    assert_close(
        layers(data, torch.ones(1, 1, dtype=torch.bool)), data @ layers.layers[0].weight[..., 0].T + layers.layers[0].bias
    )


def test_the_prenet_is_two_layers_whose_dropout_may_stay():
    prenet = Prenet(3, 64, 0.5, always=True).eval()
    frames = torch.randn(2, 3)
    assert prenet(frames).eq(0).float().mean() > 0.5
    prenet.always = False
    first, second = prenet.layers
    assert_close(prenet(frames), torch.relu(second(torch.relu(first(frames)))))


def test_a_text_in_a_batch_is_encoded_as_it_is_alone():
    encoder, source = TextEncoder(9, 8, 2, 3, 0.0).eval(), pad([[4, 5, 6, 2], [7, 2]])
    together = encoder(source)
    assert_close(together.data[1:, :2], encoder(source.select_rows([1])).data)
    assert not together.data[1, 2:].any()
