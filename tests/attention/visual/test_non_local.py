import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention.visual.non_local import NORMALISERS, MeanNormaliser, NonLocal

IMAGE = torch.randn(2, 4, 3, 5, generator=torch.Generator().manual_seed(0))
each_version = pytest.mark.parametrize("version", NORMALISERS)


def learned(**options):
    module = NonLocal(4, **options)
    nn.init.normal_(module.output.weight)
    nn.init.normal_(module.output.bias)
    return module


def by_hand(module, version, image, read):
    """Eq. 1 to 6 of the paper, place by place."""
    expected, weights = image.clone(), torch.zeros(len(image), 1, image[0, 0].numel(), read[0, 0].numel())
    for row in range(len(image)):
        every, some = image[row].flatten(1).T, read[row].flatten(1).T
        for i, x in enumerate(every):
            f = []
            for y in some:
                one, other = module.theta(x), module.phi(y)
                if version in ("gaussian", "embedded"):
                    f.append(math.exp(one @ other))
                elif version == "dot":
                    f.append(float(one @ other))
                else:
                    w = module.score.v.weight[0, 0, 0] * module.score.W.weight[0, 0]
                    f.append(max(0.0, float(w @ torch.cat((one, other)))))
            total = sum(f) if version in ("gaussian", "embedded") else len(f)
            weights[row, 0, i] = torch.tensor(f) / total
            found = sum(weights[row, 0, i, j] * module.g(y) for j, y in enumerate(some))
            expected[row].flatten(1)[:, i] += module.output(found)
    return expected, weights


@each_version
def test_each_version_is_its_formula(version):
    module = learned(version=version).requires_grad_(False)
    expected, weights = by_hand(module, version, IMAGE, IMAGE)
    attended = module.attend(IMAGE)
    assert_close(attended.weights, weights)
    assert_close(attended.context, expected)
    assert_close(module(IMAGE), expected)  # without the weights a fused kernel may do it


@each_version
def test_fewer_places_may_be_read_from_and_none_at_the_edge_is_lost(version):
    module = learned(version=version, subsample=2).requires_grad_(False)
    read = torch.stack([IMAGE[:, :, r : r + 2, c : c + 2].amax((2, 3)) for r in (0, 2) for c in (0, 2, 4)], dim=-1)
    expected, weights = by_hand(module, version, IMAGE, read[:, :, None])
    attended = module.attend(IMAGE)
    assert attended.weights.shape == (2, 1, 15, 6)
    assert_close(attended.weights, weights)
    assert_close(attended.context, expected)


@each_version
def test_it_begins_by_changing_nothing_and_can_learn_to(version):
    module = NonLocal(4, version=version)
    assert torch.equal(module(IMAGE), IMAGE)
    module(IMAGE).sum().backward()
    assert module.output.weight.grad.any()


def test_half_of_the_channels_are_enough_unless_told_otherwise():
    assert NonLocal(8).g.weight.shape == (4, 8)
    assert NonLocal(1).g.weight.shape == (1, 1)
    assert NonLocal(8, inner=3).theta.weight.shape == (3, 8)
    assert isinstance(NonLocal(8, "gaussian").theta, nn.Identity)


def test_a_mean_divides_by_what_may_be_seen():
    scores = torch.tensor([[[[2.0, -4.0, 6.0]]]])
    allowed = torch.tensor([[[[True, True, False]]]])
    assert_close(MeanNormaliser()(scores), scores / 3)
    assert MeanNormaliser()(scores, allowed).tolist() == [[[[1, -2, 0]]]]
    assert MeanNormaliser(positive=True)(scores, allowed).tolist() == [[[[1, 0, 0]]]]
    assert MeanNormaliser()(scores, torch.zeros_like(allowed)).tolist() == [[[[0, 0, 0]]]]


def test_no_place_to_read_from_but_some_is_refused():
    with pytest.raises(ValueError, match="subsample needs to be 1 place or more, got 0"):
        NonLocal(4, subsample=0)


@pytest.mark.unhooked
def test_an_unknown_version_is_refused():
    with pytest.raises(ValueError, match="version needs to be one of gaussian, embedded, dot, concat, got 'cosine'"):
        NonLocal(4, version="cosine")
