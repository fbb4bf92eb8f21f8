import torch
from torch.testing import assert_close
from transformers.models.m2m_100.modeling_m2m_100 import M2M100SinusoidalPositionalEmbedding
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from regard.attention.positions.sinusoidal import encode_sinusoidal
from regard.interop.huggingface.sinusoids import order, spaced


def test_ours_in_their_order_are_theirs():
    assert order(6).tolist() == [0, 2, 4, 1, 3, 5]
    ours = encode_sinusoidal(torch.arange(9), 6)[:, order(6)].float()
    assert_close(ours, MarianSinusoidalPositionalEmbedding(9, 6).create_weight())


def test_those_of_other_wavelengths_are_theirs():
    theirs = M2M100SinusoidalPositionalEmbedding(9, 7, padding_idx=1).weights
    assert torch.equal(spaced(9, 7, first=2), theirs[2:11])
