"""The small trained run that tests of alignment have too."""

from ..alignment.conftest import run_directory  # noqa: F401
