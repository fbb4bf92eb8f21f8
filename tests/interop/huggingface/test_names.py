from regard.interop.huggingface.families import FAMILIES
from regard.interop.huggingface.names import Pair, layers


def test_every_parameter_of_ours_has_one_of_theirs():
    found = list(layers(1, 2, FAMILIES["mbart"]))
    assert len({pair.ours for pair in found}) == len({pair.theirs for pair in found}) == len(found) == 16 + 2 * 26 + 8
    assert Pair("decoder.1.cross.query.weight", "model.decoder.layers.1.encoder_attn.q_proj.weight", 1) in found
    assert Pair("encoder.0.feedforward.2.bias", "model.encoder.layers.0.fc2.bias", 0) in found
    assert Pair("encoder.0.feedforward.0.bias", "model.encoder.layers.0.fc1.bias", None) in found
    assert Pair("encoder.norm.weight", "model.encoder.layer_norm.weight", 0) in found
    assert not any("embedding" in pair.ours or pair.ours == "decoder.norm.bias" for pair in layers(1, 1, FAMILIES["marian"]))
