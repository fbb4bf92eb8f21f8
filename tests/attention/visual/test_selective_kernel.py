import pytest
import torch
from torch import nn
from torch.testing import assert_close

from regard.attention.visual.selective_kernel import SelectiveKernel


class Times(nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, image):
        return self.factor * image


def test_each_channel_shares_itself_out_among_the_windows():
    module = SelectiveKernel(2, reduction=2)
    module.branches = nn.ModuleList([Times(1), Times(3)])
    module.fuse = nn.Identity()
    module.A = nn.Linear(2, 4, False)
    # scores: channel 1 compares its own mean with nothing, channel 2 its own with that of channel 1
    module.A.weight.data = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    image = torch.tensor([[[[0.1, 0.3]], [[0.5, 0.5]]]])
    attended = module.attend(image)
    fused = torch.tensor([4 * 0.2, 4 * 0.5])  # the sum of both windows, averaged over the places
    shares = torch.stack((torch.tensor([fused[0], 0.0]).softmax(0), torch.tensor([fused[1], fused[0]]).softmax(0)))
    assert_close(attended.weights, shares[None, :, None])
    mixed = (shares @ torch.tensor([1.0, 3.0]))[:, None, None]
    assert_close(attended.context, image * mixed)


def test_the_context_is_weights_times_values():
    module, image = SelectiveKernel(4, branches=3, reduction=2), torch.randn(2, 4, 5, 6)
    attended = module.attend(image)
    values = module.split(image)
    assert attended.weights.shape == (2, 4, 1, 3)
    assert_close(attended.weights.sum(-1), torch.ones(2, 4, 1))
    assert_close(attended.context, (attended.weights[:, :, 0, :, None, None] * values).sum(2))


def test_each_window_reaches_further_than_the_one_before():
    module = SelectiveKernel(2, branches=3, reduction=2)
    for reach, branch in enumerate(module.branches, start=1):
        image = torch.zeros(1, 2, 9, 9, requires_grad=True)
        branch[0](image)[0, 0, 4, 4].backward()
        seen = image.grad[0].abs().sum((0, 1)).nonzero().flatten().tolist()
        assert seen == [4 - reach, 4, 4 + reach]


def test_what_is_fused_is_never_narrower_than_the_least():
    assert SelectiveKernel(64).fuse[0].weight.shape == (32, 64)
    assert SelectiveKernel(64, reduction=2, least=8).fuse[0].weight.shape == (32, 64)
    assert SelectiveKernel(64, least=8).fuse[0].weight.shape == (8, 64)


def test_windows_may_be_grouped():
    assert SelectiveKernel(4, reduction=2, groups=2).branches[0][0].weight.shape == (4, 2, 3, 3)


def test_a_sparse_choice_may_take_one_window_alone():
    module = SelectiveKernel(4, reduction=2, normalise="sparsemax")
    module.A.weight.data *= 1000
    attended = module.attend(torch.randn(1, 4, 5, 5))
    assert sorted(attended.weights[0, 0, 0].tolist()) == [0, 1]
    assert_close(attended.weights.sum(-1), torch.ones(1, 4, 1))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"branches": 0}, "SelectiveKernel needs 1 branch or more, got 0"),
        ({"reduction": 3}, "SelectiveKernel needs a reduction that divides its channels, got 16 channels and reduction 3"),
    ],
)
def test_what_makes_no_sense_is_refused(options, text):
    with pytest.raises(ValueError, match=text):
        SelectiveKernel(16, **options)
