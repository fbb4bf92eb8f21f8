"""Triton's interpreter as the tests of kernels have it: some models run kernels of their own."""

from ..kernels import conftest  # noqa: F401  # which changes it when it is imported
