"""Validation of gold links: two axes of the example, and indices within them."""

from regard.viewer.io.errors import TraceError
from regard.viewer.trace import Example


def check_gold(example: Example, where: str) -> None:
    """Raise TraceError where links do not fit the axes that they join."""
    gold = example.gold
    if gold is None:
        return
    where = f"{where}, gold"
    for role, name in (("query", gold.query), ("key", gold.key)):
        if name not in example.axes:
            axes = ", ".join(example.axes) or "none"
            raise TraceError(f"{where}: its {role} axis is {name!r}, and the example has the axes {axes}")
    if not gold.sure:
        raise TraceError(f"{where}: it needs at least one sure link, got none")
    queries, keys = len(example.axes[gold.query]), len(example.axes[gold.key])
    for query, key in (*gold.sure, *gold.possible):
        if not (0 <= query < queries and 0 <= key < keys):
            raise TraceError(
                f"{where}: a link joins place {query} of {gold.query!r} and place {key} of {gold.key!r}, "
                f"which have {queries} and {keys} places"
            )
