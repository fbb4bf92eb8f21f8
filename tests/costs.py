"""Costs that a test gives to paths, in place of those of the machine's profile."""

from regard.attention import cost, dispatch


def set_costs(monkeypatch, **microseconds):
    """Have each path take these microseconds, whatever the request; a path without a number is never taken by `auto`."""
    paths = {name: {"any": {"call": float(taken)}} for name, taken in microseconds.items()}
    monkeypatch.setattr(cost, "find_profile", lambda device: cost.Profile("a test", 1.0, paths))
    dispatch.forget_decisions()
