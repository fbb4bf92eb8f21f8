import re

import pytest
import torch

from regard.config import AttentionPart, OutputPart
from regard.interop.huggingface.write_t5 import config, find_misfit, weights

from ..transformers_ import T5, untrained


def given(**changes):
    return untrained(**T5 | changes)


def test_a_model_with_all_that_t5_has_fits():
    assert find_misfit(given()) is None
    assert find_misfit(given(gated=True, activation="gelu_tanh")) is None
    assert find_misfit(given(activation="swish")) is None


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"bias": True}, "has model.norm=rms, which is T5's, and model.bias=True: train with model.bias=false"),
        ({"shared_bias": False}, "and model.shared_bias=False: train with model.shared_bias=true"),
        ({"self_attention": "scaled_dot", "shared_bias": False}, "model.self_attention=scaled_dot: train with .*=t5"),
        ({"positions": "sinusoidal"}, "model.positions=sinusoidal: train with model.positions=none"),
        ({"attention": AttentionPart("transformer", heads=2)}, "looks at its source by transformer, and T5 by transformer"),
        (
            {"self_attention_size": 8},
            "has 2 heads of 8 together and 2 of 16 for its source, and T5 has as many and as wide ones",
        ),
        ({"output": OutputPart("mixture")}, "or another output than a projection, and T5 has not"),
        ({"gated": True, "activation": "gelu"}, "bends by gelu, gated, and T5 has gates for gelu_tanh, swish, relu"),
        (
            {"joint_vocab": False},
            "has several tables of embeddings, and one for all is needed: train with data.joint_vocab=true",
        ),
        ({"tie_embeddings": False}, "has several tables of embeddings"),
    ],
)
def test_what_t5_has_not_is_named(changes, told):
    found = find_misfit(given(**changes))
    assert found is not None
    assert re.search(told, found), found


def test_a_bias_of_the_output_is_one_that_t5_has_not():
    trained = given()
    with torch.no_grad():
        trained.model.decoder.output.bias[7] = 1.0
    assert find_misfit(trained) == "adds a bias to its output, and T5 has none"


def test_the_last_norm_gives_back_the_scale_of_the_output():
    trained = given()
    with torch.no_grad():
        trained.model.decoder.norm.weight.fill_(0.5)
    found = weights(trained, torch.arange(len(trained.model.decoder.output.bias)))
    assert found["decoder.final_layer_norm.weight"].tolist() == [2.0] * 16


def test_an_output_of_its_own_goes_along():
    trained = given(tie_embeddings=False)
    with torch.no_grad():
        trained.model.encoder.embedding.table.weight.copy_(trained.model.decoder.embedding.table.weight)
    assert find_misfit(trained) is None
    found = weights(trained, torch.arange(len(trained.model.decoder.output.bias)))
    assert torch.equal(found["lm_head.weight"], trained.model.decoder.output.weight)
    assert found["decoder.final_layer_norm.weight"].tolist() == [1.0] * 16
    assert config(trained, 9, 20)["tie_word_embeddings"] is False


def test_its_sizes_are_told_in_its_words():
    trained = given(gated=True, activation="swish", decoder_layers=1)
    table = config(trained, 9, 20)
    assert (table["num_layers"], table["num_decoder_layers"], table["d_kv"], table["d_ff"]) == (2, 1, 8, 64)
    assert (table["feed_forward_proj"], table["n_positions"], table["vocab_size"]) == ("gated-silu", 20, 9)
