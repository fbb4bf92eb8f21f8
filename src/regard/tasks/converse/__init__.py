"""Dialogue: the turns so far in, the next turn out."""
