import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from regard.attention.masked_norm import BatchNorm, GroupNorm, build_norm

KEEP = torch.zeros(2, 4, 5, dtype=torch.bool)
KEEP[0, :3, :2] = KEEP[1, :1, :4] = True


def learned(kind, channels=16):
    made = build_norm(kind, channels).double()
    nn.init.normal_(made.weight)
    nn.init.normal_(made.bias)
    return made


def image(channels=16):
    return torch.randn(2, channels, 4, 5, dtype=torch.float64) * 3 + 2


def test_a_group_of_one_picture_can_be_worked_by_hand():
    numbers = torch.tensor([[[[1.0, 3.0, 99.0]], [[5.0, 7.0, 99.0]]]])  # one group: mean 4, variance 5
    found = GroupNorm(2)(numbers, torch.tensor([[[True, True, False]]]))
    assert_close(found[0, :, 0, :2], torch.tensor([[-3.0, -1.0], [1.0, 3.0]]) / (5 + 1e-5) ** 0.5)


def test_a_group_norm_is_pytorchs_over_the_kept_places_alone():
    made, data = learned("group"), image()
    assert made.num_groups == 2
    found = made(data.masked_fill(~KEEP[:, None], torch.nan), KEEP)
    for row, (height, width) in enumerate(((3, 2), (1, 4))):
        alone = data[row : row + 1, :, :height, :width]
        assert_close(found[row : row + 1, :, :height, :width], F.group_norm(alone, 2, made.weight, made.bias))
    assert_close(made(data), F.group_norm(data, 2, made.weight, made.bias))
    assert_close(made(data, torch.ones_like(KEEP)), made(data))


@pytest.mark.parametrize(("channels", "groups"), [(256, 32), (48, 6), (300, 30), (16, 2), (8, 1), (7, 1), (17, 1)])
def test_groups_have_8_channels_or_more(channels, groups):
    assert GroupNorm(channels).num_groups == groups


def test_a_batch_norm_is_pytorchs_over_the_kept_places_of_all_pictures():
    made, data = learned("batch"), image()
    plain = nn.BatchNorm1d(16).double()
    plain.load_state_dict(made.state_dict())
    kept = data.movedim(1, -1)[KEEP]  # places channels
    for _ in range(2):
        found, expected = made(data.masked_fill(~KEEP[:, None], torch.nan), KEEP), plain(kept)
        assert_close(found.movedim(1, -1)[KEEP], expected)
    assert_close(dict(made.named_buffers()), dict(plain.named_buffers()))
    assert_close(made.eval()(data, KEEP).movedim(1, -1)[KEEP], plain.eval()(kept))


def test_without_a_mask_a_batch_norm_is_pytorchs():
    made, data, plain = BatchNorm(16).double(), image(), nn.BatchNorm2d(16).double()
    assert_close(made(data), plain(data))
    assert_close(made(data, torch.ones_like(KEEP)), plain(data))
    assert_close(made.running_var, plain.running_var)


@pytest.mark.parametrize("kind", ["group", "batch"])
def test_gradients_are_those_of_the_numbers_and_nothing_flows_from_outside(kind):
    made, data = learned(kind, 2), image(2).requires_grad_()

    def inside(data):
        return made(data, KEEP).masked_fill(~KEEP[:, None], 0.0)

    assert torch.autograd.gradcheck(inside, data, fast_mode=True)
    weighed = (inside(data) * torch.randn_like(data)).sum()
    assert not torch.autograd.grad(weighed, data)[0].masked_select(~KEEP[:, None]).any()


@pytest.mark.parametrize("kind", ["group", "batch"])
def test_a_batch_of_nothing_stays_finite(kind):
    data = image().requires_grad_()
    found = learned(kind)(data, torch.zeros_like(KEEP))
    found.sum().backward()
    assert found.isfinite().all()
    assert not data.grad.any()


def test_half_precision_is_added_up_in_single():
    data = (torch.randn(1, 8, 30, 30) + 300).half()
    keep = torch.zeros(1, 30, 30, dtype=torch.bool)
    keep[:, :20] = True
    found = GroupNorm(8).half()(data, keep)
    assert found.dtype == torch.float16
    assert_close(found[:, :, :20].float(), F.group_norm(data[:, :, :20].float(), 1), atol=2e-3, rtol=2e-3)


def test_another_norm_is_refused():
    with pytest.raises(ValueError, match="norm needs to be 'group' or 'batch', got 'layer'"):
        build_norm("layer", 8)
