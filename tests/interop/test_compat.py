import re

import pytest
import torch
from torch import nn

from regard.config import AttentionPart, OutputPart
from regard.errors import RefusedError
from regard.interop.compat import find_composition, find_misfit, get_halves, refuse_unfinite

from .transformers_ import untrained


def test_a_plain_transformer_fits():
    model = untrained().model
    assert find_misfit(model) is None
    assert get_halves(model) == (model.encoder, model.decoder)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"encoder": "recurrent"}, "has a recurrent encoder, and a transformer is needed"),
        ({"decoder": "recurrent"}, "has a recurrent decoder, and a transformer is needed"),
        (
            {"attention": AttentionPart("additive")},
            "has the attention Attention in decoder.0.cross, and multi-head attention is needed: train with model.attention=transformer",
        ),
        ({"attention": AttentionPart("none")}, "has no attention to its source"),
        ({"self_attention": "alibi"}, "in encoder.0.self, and scaled_dot, softmax, everywhere are needed"),
        ({"self_attention": "local"}, "in encoder.0.self, and scaled_dot, softmax, everywhere are needed"),
        ({"attention": AttentionPart("transformer", heads=4)}, "has 4 heads in decoder.0.cross and 2 elsewhere"),
        ({"attention": AttentionPart("transformer", heads=2, size=16)}, "projects to size 16 in decoder.0.cross, and 32"),
        ({"norm": "rms"}, r"has norms of the mean square alone \(model.norm=rms\), and layer norms \(pre or post\) are"),
        ({"gated": True}, r"has gated feed-forward networks \(model.gated=true\), and plain ones are needed"),
        ({"bias": False}, r"has no biases \(model.bias=false\), and they are needed"),
        ({"self_attention_size": 16}, "projects to size 16 in encoder.0.self, and 32, the model's, is needed"),
        ({"positions": "none"}, r"knows no positions \(model.positions=none\)"),
        ({"join": "concat"}, r"sets positions beside its embeddings \(model.join=concat\), and add is needed"),
        ({"embedding_size": 16}, r"has embeddings of another size \(16\) than its layers \(32\)"),
        ({"output": OutputPart("mixture")}, "chooses words by model.output=mixture, and projection is needed"),
    ],
)
def test_what_another_library_lacks_is_named(settings, told):
    found = find_misfit(untrained(**settings).model)
    assert found is not None
    assert re.search(told, found), found


def test_an_ensemble_is_no_transformer_and_has_no_halves():
    class Both(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder, self.decoder = nn.Identity(), nn.Identity()

    assert find_misfit(Both()) == find_composition(Both())
    assert "one network is needed" in find_misfit(Both())
    with pytest.raises(TypeError, match="halves needs a Transformer, got a model that is no single network"):
        get_halves(Both())


def test_weights_that_are_not_finite_are_counted_and_refused():
    model = untrained().model
    refuse_unfinite(model, "onnx")
    with torch.no_grad():
        model.encoder.embedding.table.weight[5, :3] = float("nan")
    with pytest.raises(
        RefusedError, match=r"onnx takes weights that are finite numbers, and 3 of .* in encoder\.embedding\."
    ):
        refuse_unfinite(model, "onnx")
