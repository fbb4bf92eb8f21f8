"""Trees of tensors: states and memories as tuples, named tuples, lists and dicts, batch first."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from jaxtyping import Int, Shaped
from torch import Tensor

Tree = Any
"""Tensors in tuples, named tuples, lists and dicts, batch first; None and () hold nothing."""

Kind = TypeVar("Kind")


def leaves(tree: Tree, kind: type[Kind]) -> Iterator[Kind]:
    """Iterate over the leaves of a type, in the order of the tree, without descending into them."""
    if isinstance(tree, kind):
        yield tree
    elif isinstance(tree, Mapping):
        for node in tree.values():
            yield from leaves(node, kind)
    elif isinstance(tree, (tuple, list)):
        for node in tree:
            yield from leaves(node, kind)


def map_tree(function: Callable[[Tensor], Tensor], tree: Tree) -> Tree:
    """Apply a function to every tensor of a tree."""
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return {name: map_tree(function, node) for name, node in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_tree(function, node) for node in tree))
    if isinstance(tree, (tuple, list)):
        return type(tree)(map_tree(function, node) for node in tree)
    return tree


def select(tree: Tree, rows: Int[Tensor, " chosen"]) -> Tree:
    """Select these rows of every tensor, in this order: search reorders and drops hypotheses by it."""
    return map_tree(lambda tensor: tensor.index_select(0, rows), tree)


def repeat(tree: Tree, times: int) -> Tree:
    """Repeat every row `times` over, side by side: one for each beam."""
    return map_tree(lambda tensor: repeat_rows(tensor, times), tree)


def repeat_rows(tensor: Shaped[Tensor, "rows *rest"], times: int) -> Shaped[Tensor, "more *rest"]:
    """Repeat every row of a tensor: repeat_interleave, by operators that an exporter knows for any `times`."""
    return tensor[:, None].expand(-1, times, *tensor.shape[1:]).flatten(0, 1)
