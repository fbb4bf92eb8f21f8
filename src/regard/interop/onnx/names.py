"""The tensors of a tree by name, which is what crosses the border of a graph."""

from collections.abc import Iterable, Mapping

from torch import Tensor

from regard.tree import Tree, map_tree


def named(tree: Tree, path: str) -> dict[str, Tensor]:
    """Every tensor by the way to it: "state.hidden.0". What holds nothing, None and (), has no name."""
    if isinstance(tree, Tensor):
        return {path: tree}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        parts: Iterable[tuple[str, Tree]] = zip(tree._fields, tree, strict=True)
    elif isinstance(tree, Mapping):
        parts = tree.items()
    elif isinstance(tree, (tuple, list)):
        parts = ((str(number), each) for number, each in enumerate(tree))
    else:
        parts = ()
    return {name: tensor for part, inside in parts for name, tensor in named(inside, f"{path}.{part}").items()}


def filled(tree: Tree, tensors: Iterable[Tensor]) -> Tree:
    """The same tree with these tensors in it, in the order in which `named` has them."""
    following = iter(tensors)
    return map_tree(lambda _: next(following), tree)
