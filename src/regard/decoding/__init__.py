"""Decoding: searches for a likely target, using only the decoder's `start` and `step`."""

from regard.decoding.align import align
from regard.decoding.beam import beam
from regard.decoding.greedy import greedy
from regard.decoding.hypothesis import Hypothesis
from regard.decoding.sample import sample
from regard.decoding.score import TargetScores, rate

__all__ = ["Hypothesis", "TargetScores", "align", "beam", "greedy", "rate", "sample"]
