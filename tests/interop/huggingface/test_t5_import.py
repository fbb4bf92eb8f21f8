import pytest
import torch
from transformers.models.t5.modeling_t5 import T5Attention

from regard.attention.score.t5 import T5
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.interop.huggingface.settings import Settings
from regard.interop.huggingface.t5_import import Named, described, named, tied, weights

TABLE = {"vocab_size": 5, "d_model": 4, "num_layers": 2, "num_decoder_layers": 1, "num_heads": 2, "d_kv": 3, "d_ff": 7}
TABLE |= {"feed_forward_proj": "relu", "relative_attention_num_buckets": 32}


@pytest.mark.parametrize("causal", [True, False])
def test_our_bias_puts_every_distance_where_theirs_does(causal):
    distances = torch.arange(-400, 401)
    theirs = T5Attention._relative_position_bucket(distances, bidirectional=not causal, num_buckets=32, max_distance=128)
    assert torch.equal(T5(causal=causal).bucket(distances), theirs)


def test_every_parameter_of_ours_has_one_of_theirs():
    found = list(named(Settings("t5", TABLE)))
    assert len({each.ours for each in found}) == len({each.theirs for each in found}) == len(found) == 2 * 8 + 13 + 4
    assert Named("decoder.0.cross.output.weight", "decoder.block.0.layer.1.EncDecAttention.o.weight", (4, 6)) in found
    assert Named("encoder.1.feedforward.2.weight", "encoder.block.1.layer.1.DenseReluDense.wo.weight", (4, 7)) in found
    buckets = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    assert Named("encoder.0.self.score.b", buckets, (32, 2)) in found
    gated = list(named(Settings("t5", TABLE | {"feed_forward_proj": "gated-silu"})))
    assert Named("decoder.0.feedforward.0.V.weight", "decoder.block.0.layer.2.DenseReluDense.wi_1.weight", (7, 4)) in gated


def given(**more):
    shapes = {each.theirs: each.shape for each in named(Settings("t5", TABLE))}
    return {"shared.weight": torch.randn(5, 4), **{name: torch.randn(shape) for name, shape in shapes.items()}, **more}


def test_the_scale_of_the_output_goes_into_the_last_norm():
    theirs, tokens = given(), Pretrained((0, 0, 1, 2, 3, 4))
    scaled, plain = weights(Settings("t5", TABLE), tokens, theirs), weights(Settings("mt5", TABLE), tokens, theirs)
    assert torch.equal(scaled["decoder.norm.weight"], plain["decoder.norm.weight"] / 2)
    assert torch.equal(plain["decoder.norm.weight"], theirs["decoder.final_layer_norm.weight"])
    assert torch.equal(scaled["encoder.0.self.score.b"][1], plain["encoder.0.self.score.b"][1])
    assert plain["decoder.output.bias"].tolist() == [0, -1e9, 0, 0, 0, 0]
    assert "decoder.output.weight" not in plain


def test_an_output_of_its_own_comes_along_with_a_table_for_each_half():
    theirs = given(**{"lm_head.weight": torch.randn(5, 4)})
    assert not tied(theirs)
    found = weights(Settings("t5", TABLE), Pretrained((0, 0, 1, 2, 3, 4)), theirs)
    assert torch.equal(found["decoder.output.weight"][2:], theirs["lm_head.weight"][1:])
    assert torch.equal(found["decoder.embedding.table.weight"], found["encoder.embedding.table.weight"])
    assert tied(theirs | {"lm_head.weight": theirs["shared.weight"]})
    assert tied(given())


def test_heads_that_are_together_as_wide_as_the_model_need_no_size():
    assert described(Settings("t5", TABLE), tie=True)["self_attention_size"] == 6
    same = described(Settings("t5", TABLE | {"d_kv": 2}), tie=False)
    assert (same["self_attention_size"], same["attention"].size, same["tie_embeddings"]) == (None, None, False)
