import json
import os

import pytest

from regard.errors import RefusedError
from regard.interop.huggingface.vision_encoder_decoder.settings import read

VIT = {"model_type": "vit", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
VIT |= {"image_size": 8, "patch_size": 4}
GPT2 = {"model_type": "gpt2", "vocab_size": 20, "n_positions": 9, "n_embd": 12, "n_layer": 1, "n_head": 2, "bos_token_id": 3}
GPT2 |= {"eos_token_id": 2, "add_cross_attention": True}
TROCR = {"model_type": "trocr", "vocab_size": 20, "max_position_embeddings": 9, "d_model": 8, "decoder_layers": 1}
TROCR |= {"decoder_attention_heads": 2, "decoder_ffn_dim": 8, "eos_token_id": 2, "pad_token_id": 1}


def said(folder, encoder=None, decoder=None, trocr=False, **whole):
    halves = {"encoder": VIT | (encoder or {}), "decoder": (TROCR if trocr else GPT2) | (decoder or {})}
    (folder / "config.json").write_text(json.dumps({"model_type": "vision-encoder-decoder"} | halves | whole))
    return folder


def test_what_is_not_said_follows_from_the_rest(tmp_path):
    found = read(said(tmp_path))
    assert (found.decoder_start_token_id, found.pad_token_id, found.eos_token_id) == (3, 2, 2)
    assert (found.feedforward, found.map, found.fits, found.places, found.patch) == (48, 12, True, (2, 2), 4)
    assert found.encoder["layer_norm_eps"] == 1e-12


def test_what_generation_says_wins_over_the_whole_and_that_over_the_decoder(tmp_path):
    folder = said(tmp_path, decoder={"num_beams": 2, "max_length": 5, "length_penalty": 2.0}, num_beams=3, max_length=6)
    (folder / "generation_config.json").write_text('{"num_beams": 4, "something": 1}')
    found = read(folder)
    assert (found.num_beams, found.max_length, found.length_penalty) == (4, 6, 2.0)


def test_sides_may_differ(tmp_path):
    found = read(said(tmp_path, {"image_size": [8, 12], "patch_size": [4, 4]}))
    assert (found.box, found.places) == ((8, 12), (2, 3))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"encoder": {"model_type": "swin"}}, "has the encoder 'swin', and those that can be taken are vit, deit"),
        ({"decoder": {"model_type": "bert"}}, "has the decoder 'bert', and those that can be taken are gpt2, trocr"),
        ({"auto_map": {}}, "has a field 'auto_map' that such a model is not known to have"),
        ({"encoder": {"windows": 3}}, "has a field 'encoder.windows' that"),
        ({"decoder": {"rotary": True}}, "has a field 'decoder.rotary' that"),
        ({"encoder": {"hidden_size": 10**9}}, "needs encoder.hidden_size from 1 to 131072, got 1000000000"),
        ({"decoder": {"n_layer": "two"}}, "needs decoder.n_layer from 1 to 131072, got 'two'"),
        ({"decoder": {"n_inner": 0}}, "needs decoder.n_inner from 1 to 131072, got 0"),
        ({"decoder": {"vocab_size": 0}}, "needs decoder.vocab_size from 1 up, got 0"),
        ({"decoder": {"eos_token_id": 20}}, "needs pad_token_id from 0 to 19, got 20"),
        ({"decoder": {"eos_token_id": [2, 3], "pad_token_id": 1}}, r"needs eos_token_id from 0 to 19, got \[2, 3\]"),
        ({"encoder": {"image_size": "large"}}, "needs encoder.image_size to be a side or two from 1 to 16384, got 'large'"),
        ({"encoder": {"layer_norm_eps": 0}}, "needs encoder.layer_norm_eps above 0 and below 1, got 0"),
        ({"encoder": {"num_attention_heads": 3}}, "needs heads that divide the size of their half, got 3 and 8"),
        ({"encoder": {"hidden_act": "mish"}}, "has encoder.hidden_act='mish', and there are relu, gelu"),
        ({"decoder": {"activation_function": "mish"}}, "has decoder.activation_function='mish', and there are"),
        ({"encoder": {"image_size": 9}}, r"needs square patches that fill a picture of \(9, 9\), got 4 x 4 pixels"),
        ({"encoder": {"qkv_bias": False}}, "has encoder.qkv_bias=False, and models with True alone can be taken"),
        ({"decoder": {"scale_attn_by_inverse_layer_idx": True}}, "scale_attn_by_inverse_layer_idx=True, and models with"),
        ({"decoder": {"layer_norm_epsilon": 1e-6}}, "has decoder.layer_norm_epsilon=1e-06, and models with 1e-05 alone"),
        ({"decoder": {"add_cross_attention": False}}, "has decoder.add_cross_attention=False, and models with True alone"),
        ({"decoder": {"pruned_heads": {"0": [1]}}}, "has decoder.pruned_heads, and layers with all heads alone"),
        ({"encoder": {"num_channels": 4}}, "has pictures of 4 channels, and there are 1, grey, and 3, in colour"),
        ({"decoder": {"cross_attention_hidden_size": 8}}, "has decoder.cross_attention_hidden_size=8, which does not fit"),
        ({"num_beams": 0}, "needs num_beams from 1 up, got 0"),
    ],
)
def test_what_there_is_no_place_for_is_refused_by_name(changes, told, tmp_path):
    with pytest.raises(RefusedError, match=told):
        read(said(tmp_path, **changes))


def test_sinusoids_have_no_place_for_a_padding(tmp_path):
    waved = {"use_learned_position_embeddings": False, "decoder_start_token_id": 1}
    with pytest.raises(RefusedError, match="begins answers with the padding, to which a TrOCR with sinusoids gives no"):
        read(said(tmp_path, decoder=waved, trocr=True))


def test_settings_of_generation_that_are_a_pipe_are_refused_and_not_left_out(tmp_path):
    os.mkfifo(tmp_path / "generation_config.json")
    with pytest.raises(RefusedError, match=r"generation_config.json is no regular file but a pipe"):
        read(said(tmp_path))
