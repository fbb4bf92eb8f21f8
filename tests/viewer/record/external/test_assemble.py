"""Calls of an attention of another library, joined into one matrix."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from regard.viewer.record.external.assemble import join_calls, place_names
from regard.viewer.record.external.product import Product
from regard.viewer.record.external.runs import ModelRun, record_product
from regard.viewer.record.hooks import Wanted


def record(query, key, first, run):
    product = Product(query, key, key, 0.5, None, query.shape[2] > 1, None, None, None, 0.0)
    return record_product(run, product, Wanted(), (first, False), "sdpa")


def test_steps_over_a_cache_are_the_rows_of_one_causal_matrix():
    query, key = torch.randn(2, 1, 2, 5, 4)
    run = ModelRun()
    run.add_pass({"input_ids": torch.ones(1, 5)})
    whole = join_calls([record(query, key, 0, run)], [0], (5, 5))
    run = ModelRun()
    calls = []
    for first, last in ((0, 3), (3, 4), (4, 5)):
        run.add_pass({"input_ids": torch.ones(1, last - first)})
        calls.append(record(query[:, :, first:last], key[:, :, :last], first, run))
    steps = join_calls(calls, [0, 0, 0], (5, 5))
    np.testing.assert_allclose(steps.weights, whole.weights, atol=1e-3)
    assert steps.allowed().tolist() == whole.allowed().tolist() == np.tri(5, dtype=bool).tolist()
    for name, values in whole.statistics.items():
        np.testing.assert_allclose(steps.statistics[name], values, atol=1e-4, err_msg=name)


@pytest.mark.parametrize(
    ("inputs", "name", "cross", "names"),
    [
        ("input_ids", "layers.0.attention", False, ("tokens", "tokens")),
        ("pixel_values", "layers.0.attention", False, ("patches", "patches")),
        ("input_values", "layers.0.attention", False, ("frames", "frames")),
        ("input_ids", "vision_model.layers.0", False, ("patches", "patches")),
        ("input_ids", "decoder.layers.0", True, ("target", "source")),
        ("other", "mixer.attention", True, ("mixer queries", "mixer keys")),
    ],
)
def test_axes_are_named_by_the_place_in_the_model_and_its_inputs(inputs, name, cross, names):
    model = nn.Module()
    model.encoder, model.decoder = nn.Identity(), nn.Identity()
    model.config = SimpleNamespace(is_encoder_decoder=name.startswith("decoder"))
    assert place_names(model, ModelRun(passes=[{inputs: torch.ones(1, 2)}]), name, cross) == names
