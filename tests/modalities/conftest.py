import sys

import pytest

from regard import registry

from .toys import points, series

TOYS = {"toy_points": points, "toy_series": series}


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    """The toys as tasks: what putting their files into the folder of tasks does."""
    names = registry.names
    for name, module in TOYS.items():
        monkeypatch.setitem(sys.modules, f"regard.tasks.{name}", module)
    monkeypatch.setattr(registry, "names", lambda kind: [*names(kind), *(TOYS if kind == "tasks" else ())])
