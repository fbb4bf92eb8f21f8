import pytest
import torch
from torch.testing import assert_close

from regard.config import AttentionPart, Dropout, Model
from regard.data.batch import pad
from regard.models.decoders.base import BaseDecoder
from regard.models.seq2seq import build

SOURCE, TARGET = pad([[4, 5, 2], [6, 2]]), torch.tensor([[1, 4, 5], [1, 6, 7]])
DECODERS = ("recurrent", "convolution", "transformer")


def network(decoder, attention="additive"):
    config = Model(hidden_size=8, heads=2, encoder=decoder, decoder=decoder, attention=AttentionPart(attention))
    return build(config, Dropout(0.0, 0.0), 9, 9, joint=False).eval()


@pytest.mark.parametrize("decoder", DECODERS)
def test_what_is_not_projected_is_projected_by_the_output_layer(decoder):
    made = network(decoder).decoder
    assert isinstance(made, BaseDecoder)
    memory = network(decoder).encode(SOURCE)
    found = made(TARGET, memory, project=False).output
    assert_close(made.output(found, made.embedding.table.weight), made(TARGET, memory).output)


@pytest.mark.parametrize(("attention", "options"), [("additive+marginal", {}), ("additive", {"own": 0.5})])
@pytest.mark.parametrize("decoder", DECODERS)
def test_an_output_that_is_more_than_a_projection_cannot_do_without(decoder, attention, options):
    made = network(decoder, attention)
    with pytest.raises(ValueError, match="project=False needs an output that is nothing but a projection"):
        made(SOURCE, TARGET, project=False, **options)
