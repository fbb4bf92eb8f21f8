import torch

from regard.attention.scope.everywhere import Everywhere


def test_no_mask_is_formed():
    assert Everywhere().allowed(2, 3, 4, 5, 0, torch.device("cpu")) is None


def test_as_a_predicate_it_is_true_for_every_key():
    one, keys = torch.zeros(1, 1, 1, 1, dtype=torch.long), torch.arange(3)[None, None, None]
    assert Everywhere()(one, one, one, keys).flatten().tolist() == [True, True, True]
