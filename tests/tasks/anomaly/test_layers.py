import pytest
import torch
from torch.testing import assert_close

from regard.tasks.anomaly.layers import EncoderLayer, Patches, Sizes

from .test_baselines import source


def test_patches_are_one_vector_for_some_steps():
    patches = Patches(Sizes(1, 8, 0, 0), 4, 6)
    embedded = patches(source(torch.randn(2, 8)))
    assert embedded.shape == (2, 2, 6)


def test_a_patch_is_kept_where_the_series_has_begun():
    windows = source(torch.randn(1, 8))
    begun = torch.tensor([[False] * 5 + [True] * 3])
    assert Patches(Sizes(1, 8, 0, 0), 4, 6).keep(windows._replace(keep=begun)).tolist() == [[False, True]]


def test_a_window_that_patches_do_not_fill_is_refused():
    with pytest.raises(ValueError, match=r"data.window to be a multiple of model.patch, got 10 and 4"):
        Patches(Sizes(1, 10, 0, 0), 4, 6)


def test_weights_are_returned_where_they_are_asked_for():
    layer = EncoderLayer(8, 2, 16, attention="scaled_dot", dropout=0.0, drop_attention=0.0, scope="causal")
    data = torch.randn(3, 5, 8)
    output, weights = layer(data, None, True)
    assert_close(output, layer(data)[0])
    assert layer(data)[1] is None
    assert_close(weights.sum(-1), torch.ones(3, 2, 5))
    assert weights.triu(1).abs().max() == 0
