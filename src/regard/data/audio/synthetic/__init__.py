"""Synthetic sound with known times."""
