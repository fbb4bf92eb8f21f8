"""Fused kernels of attend(), one per file.

A kernel is a module with `covers(request) -> str | None`, None when it equals the three stages and otherwise the reason
it does not, and `run(request) -> Attended`. `attention/dispatch.py` selects one.
"""
