import torch

from regard.attention import mask_cache
from regard.attention.mask_cache import find_mask
from regard.attention.scope.causal import Causal
from regard.attention.scope.everywhere import Everywhere
from regard.attention.scope.local import Local
from regard.attention.scope.padding import Padding

CPU = torch.device("cpu")


def test_a_mask_without_tensors_is_formed_once(monkeypatch):
    monkeypatch.setattr(mask_cache, "MASKS", {})
    first = find_mask(Local(2), 1, 1, 4, 6, 2, CPU)
    assert find_mask(Local(2), 1, 1, 4, 6, 2, CPU) is first
    assert find_mask(Local(1), 1, 1, 4, 6, 2, CPU) is not first
    torch.testing.assert_close(first, Local(2).allowed(1, 1, 4, 6, 2, CPU))
    assert find_mask(Everywhere(), 1, 1, 4, 6, 2, CPU) is None
    for size in range(40):
        find_mask(Causal(), 1, 1, 2, size + 1, 0, CPU)
    assert len(mask_cache.MASKS) == mask_cache.CACHE_SIZE


def test_padding_is_a_view_and_joins_the_rest():
    padding = Padding.from_lengths(torch.tensor([3, 5]), 5)
    mask = find_mask(padding, 2, 3, 4, 5, 1, CPU)
    assert mask.data_ptr() == padding.keep.data_ptr()
    for scope in (padding, padding & Causal(), Causal() & padding & Local(2), padding & Everywhere()):
        expected = scope.allowed(2, 3, 4, 5, 1, CPU)
        torch.testing.assert_close(find_mask(scope, 2, 3, 4, 5, 1, CPU).expand_as(expected), expected)


def test_what_inference_mode_formed_can_be_saved_for_a_backward(monkeypatch):
    monkeypatch.setattr(mask_cache, "MASKS", {})
    with torch.inference_mode():
        find_mask(Causal(), 1, 1, 3, 3, 0, CPU)
    assert not find_mask(Causal(), 1, 1, 3, 3, 0, CPU).is_inference()
