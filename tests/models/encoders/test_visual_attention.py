import pytest
import torch

from regard import registry
from regard.models.encoders.visual_attention import build_visual_attention


@pytest.mark.parametrize("name", registry.names("visual"))
@pytest.mark.parametrize("channels", [8, 24, 300])
def test_every_word_is_an_attention_for_any_number_of_channels(name, channels):
    made = build_visual_attention(name, channels)
    assert type(made) is registry.find(name, "visual")
    assert made(torch.randn(1, channels, 2, 3)).shape == (1, channels, 2, 3)


@pytest.mark.parametrize(("channels", "narrowed"), [(8, 8), (32, 8), (64, 8), (128, 8), (256, 16), (300, 75), (9, 9)])
def test_channels_are_divided_by_16_unless_few_would_remain(channels, narrowed):
    assert build_visual_attention("channel", channels).excite[0].weight.shape == (narrowed, channels)


def test_none_is_none_and_a_word_that_is_none_names_the_nearest():
    assert build_visual_attention("none", 16) is None
    with pytest.raises(LookupError, match="no visual is called 'chanel'; did you mean 'channel'"):
        build_visual_attention("chanel", 16)
