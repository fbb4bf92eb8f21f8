import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention.positions.learned import Learned
from regard.data.batch import Padded, pad
from regard.models.encoders.convolution import Convolution

SOURCE = pad([[4, 5, 6, 2], [7, 2], [8, 9, 2]])


def encoder(**options):
    return Convolution(11, 8, **{"layers": 2} | options).eval()


def test_each_layer_mixes_neighbours_and_goes_around_itself():
    made = encoder(embedding=6)
    encoded = made(SOURCE)
    for row, length in enumerate(SOURCE.keep.sum(1).tolist()):
        embedded = made.embedding(SOURCE.data[row : row + 1, :length])
        data = made.widen(embedded)[0]
        for layer in made.layers:
            rows = torch.cat((torch.zeros(1, 8), data, torch.zeros(1, 8)))
            mixed = []
            for place in range(length):
                window = rows[place : place + 3].T  # as the convolution has its weights: inputs, then places
                both = (layer.convolution.weight * window).sum((1, 2)) + layer.convolution.bias
                mixed.append(both[:8] * both[8:].sigmoid())
            data = (torch.stack(mixed) + data) * 0.5**0.5
        data = made.narrow(data)
        assert_close(encoded.data[row, :length], data)
        assert_close(encoded.values[row, :length], (data + embedded[0]) * 0.5**0.5)
        assert_close(encoded.final[0][row, 0], data.mean(0))


@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("embedding", [6, 8])
def test_padding_never_touches_the_result(kernel, embedding):
    made = encoder(kernel=kernel, embedding=embedding)
    encoded = made(SOURCE)
    longer = made(Padded(F.pad(SOURCE.data, (0, 3), value=9), F.pad(SOURCE.keep, (0, 3))))
    assert_close(longer.data[:, :4], encoded.data)
    assert_close(longer.values[:, :4], encoded.values)
    assert_close(longer.final, encoded.final)
    for part in (encoded.data, encoded.values):
        assert part.shape == (3, 4, embedding)
        assert part[~SOURCE.keep].abs().sum() == 0
    assert made.size == embedding


def reach(layers, kernel):
    """How far from the middle of 15 tokens another token changes what stands there."""
    made = Convolution(99, 8, layers=layers, kernel=kernel).eval()
    tokens, keep = torch.arange(15)[None], torch.ones(1, 15, dtype=torch.bool)
    before = made(Padded(tokens, keep)).data[0, 7]
    changed = []
    for place in range(15):
        other = tokens.clone()
        other[0, place] = 90
        changed.append(not torch.equal(made(Padded(other, keep)).data[0, 7], before))
    return [place - 7 for place, each in enumerate(changed) if each]


@pytest.mark.parametrize(("layers", "kernel", "far"), [(1, 3, 1), (3, 3, 3), (2, 5, 4), (2, 1, 0)])
def test_every_layer_sees_further(layers, kernel, far):
    assert reach(layers, kernel) == list(range(-far, far + 1))


def test_positions_may_stand_beside_the_embedding():
    made = encoder(embedding=6, positions=Learned(3, "concat"))
    assert made.size == 9
    assert made.widen.weight.shape == (8, 9)
    assert made(SOURCE).values.shape == (3, 4, 9)


def test_it_hands_on_the_tokens_and_what_is_there():
    encoded = encoder()(SOURCE)
    assert torch.equal(encoded.tokens, SOURCE.data)
    assert torch.equal(encoded.keep, SOURCE.keep)


def test_a_row_without_tokens_breaks_nothing():
    made = encoder()
    encoded = made(Padded(SOURCE.data, SOURCE.keep & torch.tensor([[True], [False], [True]])))
    for part in (encoded.data, encoded.values, encoded.final[0]):
        assert part[1].abs().sum() == 0
    assert_close(encoded.data[0], made(SOURCE).data[0])


def test_dropout_falls_on_embeddings_and_on_what_enters_a_layer_while_training():
    made = encoder(drop_residual=0.5)
    plain = made(SOURCE).data
    assert torch.equal(made(SOURCE).data, plain)
    made.train()
    assert not torch.equal(made(SOURCE).data, plain)
    entered = []
    made.layers[1].register_forward_pre_hook(lambda _, inputs: entered.append(inputs[0]))
    made(SOURCE)
    assert 0.3 < (entered[0][0, 1:5] == 0).float().mean() < 0.7
    assert encoder(drop_embedding=0.25).embedding.drop.probability == 0.25


@pytest.mark.parametrize("kernel", [2, 4])
def test_an_even_kernel_has_no_middle(kernel):
    text = f"a convolutional encoder needs an odd kernel, as many places to each side, got {kernel}; choose {kernel + 1}"
    with pytest.raises(ValueError, match=text):
        encoder(kernel=kernel)
