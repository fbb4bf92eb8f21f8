"""Fused kernels of attend(): each file is one, and says what it covers.

A kernel is a module with `covers(request) -> str | None`, None when it computes the same thing as the three stages and
otherwise the reason why not, and `run(request) -> Attended`. `attention/dispatch.py` selects one.
"""
