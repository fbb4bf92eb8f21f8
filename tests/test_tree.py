import torch
from torch import Tensor

from regard.attention.types import Memory
from regard.tree import leaves

ONE, TWO, THREE = torch.zeros(1, 1, 1, 1), torch.ones(1, 1, 1, 1), torch.ones(1, 1, dtype=torch.bool)
TREE = {"a": (ONE, None, ()), "b": [Memory(ONE, TWO, THREE)], "c": {"d": TWO}, "e": 5}


def test_tensors_come_in_the_order_of_the_tree():
    assert [id(each) for each in leaves(TREE, Tensor)] == [id(each) for each in (ONE, ONE, TWO, THREE, TWO)]


def test_memories_are_found_whole():
    assert list(leaves(TREE, Memory)) == [TREE["b"][0]]


def test_an_empty_tree_has_none():
    assert list(leaves({"a": (None, [])}, Tensor)) == []
