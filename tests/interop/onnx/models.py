"""Small models to export, one for each kind of encoder and of decoder."""

from regard.config import AttentionPart, Dropout, ImageDropout, ImageToTextModel, Model
from regard.interop.onnx.sources import Field
from regard.models import image2seq
from regard.models.image2seq import Image2Seq
from regard.models.seq2seq import Seq2Seq, build

LONGEST = 64
ROWS, COLUMNS = 11, 7


def small(encoder: str, decoder: str, attention: str = "additive", **settings) -> Seq2Seq:
    """A model of size 16 with random weights, for 11 source tokens and 13 target tokens."""
    named = AttentionPart(attention, heads=2)
    model = Model(encoder=encoder, decoder=decoder, attention=named, hidden_size=16, heads=2, **settings)
    return build(model, Dropout(), 11, 13, joint=False, longest=(LONGEST, LONGEST)).eval()


def sighted(encoder: str, decoder: str, attention: str = "additive", **settings) -> tuple[Image2Seq, Field]:
    """A model of pictures of size 16 with random weights, for 13 target tokens, and how large its maps may be."""
    named = AttentionPart(attention, heads=2)
    model = ImageToTextModel(encoder=encoder, decoder=decoder, attention=named, hidden_size=16, heads=2, depth=1, **settings)
    field, standard = Field(ROWS, COLUMNS, model.stride), ((0.5, 0.4, 0.6), (0.3, 0.2, 0.3))
    return image2seq.build(model, ImageDropout(), 13, field.pixels, standard, LONGEST).eval(), field
