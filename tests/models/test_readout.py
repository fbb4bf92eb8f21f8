import pytest
import torch

from regard.attention import Attention
from regard.models import readout


def test_weights_are_collected_of_those_attentions_that_gave_them():
    attention, source, query = Attention(query=3, key=3), torch.randn(2, 5, 3), torch.randn(2, 4, 3)
    memory = attention.remember(source)
    shown = readout.call_attention(attention, query, memory, weights=True)
    hidden = readout.call_attention(attention, query, memory, weights=False)
    collected = readout.collect_weights({"shown": shown, "hidden": hidden})
    assert list(collected) == ["shown"]
    torch.testing.assert_close(collected["shown"].sum(-1), torch.ones(2, 1, 4))


def test_an_attention_that_has_to_be_there_is_asked_for():
    attention = Attention(query=3, key=3)
    assert readout.require_attention(attention, "a classifier") is attention
    with pytest.raises(ValueError, match="a classifier reads by an attention, and got none; name one, such as transformer"):
        readout.require_attention(None, "a classifier")
