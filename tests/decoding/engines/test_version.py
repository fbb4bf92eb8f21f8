import gc
import weakref

import pytest
import torch

from regard.decoding.engines.version import ModelVersion

from .cuda.small import model

CHANGES = {
    "a weight": lambda decoder: decoder.output.bias.add_(1.0),
    "its room": lambda decoder: setattr(decoder.output.bias, "data", decoder.output.bias.data.clone()),
    "a parameter": lambda decoder: setattr(decoder.output, "bias", torch.nn.Parameter(torch.zeros(60))),
    "a part": lambda decoder: setattr(decoder, "norm", torch.nn.Identity()),
    "a hook": lambda decoder: decoder.norm.register_forward_hook(lambda *_: None),
    "a method": lambda decoder: setattr(decoder.norm, "forward", lambda data: data),
}


@pytest.mark.parametrize("change", CHANGES)
@torch.no_grad()
def test_what_changes_is_seen(change):
    decoder = model().decoder
    watched = ModelVersion(decoder)
    assert watched.unchanged
    CHANGES[change](decoder)
    assert not watched.unchanged


def test_who_is_watched_is_not_held():
    decoder = model().decoder
    watched, there = ModelVersion(decoder), weakref.ref(decoder)
    del decoder
    gc.collect()
    assert there() is None
    assert watched.unchanged
