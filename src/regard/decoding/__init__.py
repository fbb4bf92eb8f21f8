"""Decoding: searches for a likely target, using only the decoder's `start` and `step`."""

from regard.decoding.align import align
from regard.decoding.beam import beam
from regard.decoding.greedy import greedy
from regard.decoding.hypothesis import Found
from regard.decoding.sample import sample
from regard.decoding.score import Rated, rate

__all__ = ["Found", "Rated", "align", "beam", "greedy", "rate", "sample"]
