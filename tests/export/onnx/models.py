"""Small models to export, one for each kind of encoder and of decoder."""

from regard.config import AttentionPart, Dropout, Model
from regard.models.seq2seq import Seq2Seq, build

LONGEST = 64


def small(encoder: str, decoder: str, attention: str = "additive", **settings) -> Seq2Seq:
    """A model of size 16 with random weights, for 11 source tokens and 13 target tokens."""
    named = AttentionPart(attention, heads=2)
    model = Model(encoder=encoder, decoder=decoder, attention=named, size=16, heads=2, **settings)
    return build(model, Dropout(), 11, 13, joint=False, longest=(LONGEST, LONGEST)).eval()
