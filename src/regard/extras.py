"""Optional dependencies: how to install an extra."""


def describe_install(extra: str) -> str:
    """The commands that install an extra, of the package and of a checkout."""
    return f"pip install 'regard[{extra}]', or pip install '.[{extra}]' in a checkout"
