"""Everything of one kind in a tree, such as the tensors or the memories."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from regard.models.types import Tree

Kind = TypeVar("Kind")


def leaves(tree: Tree, kind: type[Kind]) -> Iterator[Kind]:
    """The things of this kind in the order of the tree; what is inside one of them is not looked at."""
    if isinstance(tree, kind):
        yield tree
    elif isinstance(tree, Mapping):
        for each in tree.values():
            yield from leaves(each, kind)
    elif isinstance(tree, (tuple, list)):
        for each in tree:
            yield from leaves(each, kind)
