"""Optional dependencies."""

from importlib.util import find_spec

from regard.errors import RefusedError
from regard.extras import describe_install


def needed(library: str, extra: str) -> None:
    """Raise where a library is not installed."""
    if find_spec(library) is None:
        raise RefusedError(f"this needs {library}, which is not installed: {describe_install(extra)}")
