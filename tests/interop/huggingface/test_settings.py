import json
import os

import pytest

from regard.errors import RefusedError
from regard.interop.huggingface.settings import read

GOOD = {
    "model_type": "bart",
    "vocab_size": 50,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 8,
    "decoder_ffn_dim": 8,
    "max_position_embeddings": 20,
    "activation_function": "gelu",
    "pad_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}


def given(folder, **changes):
    (folder / "config.json").write_text(json.dumps(GOOD | changes))
    return folder


def test_fields_are_read_by_name_and_those_of_generation_win(tmp_path):
    (tmp_path / "generation_config.json").write_text('{"num_beams": 3, "decoder_start_token_id": 1, "something": 1}')
    found = read(given(tmp_path, num_beams=2))
    assert (found.d_model, found.num_beams, found.decoder_start_token_id, found.length_penalty) == (16, 3, 1, None)
    assert found.family.architecture == "BartForConditionalGeneration"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model_type": "llama"}, "is a model of the type 'llama', and there are marian, bart, mbart, pegasus, m2m_100, t5"),
        ({"model_type": "whisper"}, "of the type whisper, which listens to speech: there is no such model here. Types that"),
        ({"model_type": "umt5"}, "which has a bias of distances in every layer of its own: there is no such model here"),
        ({"model_type": None}, "config.json needs a model_type, the name of a family, got None"),
        ({"model_type": ["bart"]}, r"needs a model_type, the name of a family, got \['bart'\]"),
        ({"num_beams": "five"}, "needs num_beams from 1 up, got 'five': change it there"),
        ({"num_beams": 1.5}, "needs num_beams from 1 up, got 1.5"),
        ({"max_length": "long"}, "needs max_length from 1 up, got 'long'"),
        ({"no_repeat_ngram_size": -2}, "needs no_repeat_ngram_size from 0 up, got -2"),
        ({"length_penalty": -1.0}, "needs length_penalty from 0 up, got -1.0"),
        ({"length_penalty": float("nan")}, "needs length_penalty from 0 up, got nan"),
        ({"scale_embedding": "false"}, "needs scale_embedding to be true or false, got 'false'"),
        ({"pad_token_id": 2}, "has one token, 2, for padding and for the end, which are two here"),
        ({"auto_map": {"AutoModel": "evil.Evil"}}, "has a field 'auto_map' that a model of the type bart is not known to"),
        ({"_attn_implementation_internal": "x"}, "has a field '_attn_implementation_internal'"),
        ({"d_model": 10**12}, "needs d_model from 1 to 16384, got 1000000000000"),
        ({"vocab_size": 0}, "needs vocab_size from 1 to 2000000, got 0"),
        ({"encoder_layers": True}, "needs encoder_layers from 1 to 256, got True"),
        ({"encoder_layers": "two"}, "needs encoder_layers from 1 to 256, got 'two'"),
        ({"pad_token_id": 50}, "needs pad_token_id from 0 to 49, got 50"),
        ({"eos_token_id": None}, "needs eos_token_id from 0 to 49, got None"),
        ({"decoder_attention_heads": 4}, "needs equal heads in encoder and decoder, got 2 and 4"),
        ({"decoder_ffn_dim": 4}, "needs equal sizes of the feed-forward network in encoder and decoder, got 8 and 4"),
        ({"encoder_attention_heads": 3, "decoder_attention_heads": 3}, "needs heads that divide d_model, got 3 and 16"),
        ({"activation_function": "tanh"}, "has the activation 'tanh', and there are relu, gelu, swish, silu, gelu_new"),
        ({"tie_word_embeddings": False}, "has tie_word_embeddings=False, and models with True alone can be taken"),
        ({"normalize_before": True}, "has normalize_before=True, and models with False alone can be taken"),
        ({"model_type": "marian", "decoder_vocab_size": 60}, "has decoder_vocab_size=60, and models with 50 alone"),
        ({"model_type": "m2m_100", "decoder_start_token_id": 1}, "begins its answers with the padding"),
        (
            {"model_type": "marian", "d_model": 15, "encoder_attention_heads": 1, "decoder_attention_heads": 1},
            "needs an even d_model for its sines and cosines, got 15",
        ),
    ],
)
def test_a_hostile_or_strange_config_is_refused(changes, told, tmp_path):
    with pytest.raises(RefusedError, match=told):
        read(given(tmp_path, **changes))


T5 = {"model_type": "t5", "vocab_size": 50, "d_model": 16, "num_layers": 2, "num_heads": 3, "d_ff": 8, "d_kv": 4}
T5 |= {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "num_decoder_layers": None}


def relative(folder, **changes):
    (folder / "config.json").write_text(json.dumps(T5 | changes))
    return read(folder)


def test_t5_has_words_of_its_own(tmp_path):
    found = relative(tmp_path, feed_forward_proj="gated-gelu")
    assert (found.encoder_layers, found.decoder_layers, found.encoder_attention_heads, found.decoder_ffn_dim) == (2, 2, 3, 8)
    assert (found.max_position_embeddings, found.activation) == (512, ("gelu_tanh", True))
    assert relative(tmp_path, num_decoder_layers=1).decoder_layers == 1
    assert relative(tmp_path).activation == ("relu", False)


def test_t5_scales_its_output_unless_it_is_of_version_1_1(tmp_path):
    assert relative(tmp_path).scaled_output
    assert not relative(tmp_path, tie_word_embeddings=False).scaled_output
    assert not relative(tmp_path, tie_word_embeddings=True, scale_decoder_outputs=False).scaled_output
    assert not relative(tmp_path, model_type="mt5").scaled_output


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"num_layers": 0}, "needs num_layers from 1 to 256, got 0"),
        ({"d_kv": -1}, "needs d_kv from 1 to 16384, got -1"),
        ({"encoder_layers": 2}, "has a field 'encoder_layers' that a model of the type t5 is not known to have"),
        (
            {"feed_forward_proj": "gated-tanh"},
            "has the activation 'gated-tanh', and there are relu, .*, gated-gelu, gated-silu",
        ),
        ({"relative_attention_num_buckets": 16}, "has relative_attention_num_buckets=16, and models with 32 alone can be"),
        ({"relative_attention_max_distance": 99}, "has relative_attention_max_distance=99, and models with 128 alone"),
        ({"layer_norm_epsilon": 0.1}, "has layer_norm_epsilon=0.1, and models with 1e-06 alone can be taken"),
        ({"is_gated_act": True}, "has is_gated_act=True, and models with False alone can be taken"),
        ({"dense_act_fn": "gelu"}, "has dense_act_fn='gelu', and models with 'relu' alone can be taken"),
    ],
)
def test_a_strange_t5_is_refused_in_its_own_words(changes, told, tmp_path):
    with pytest.raises(RefusedError, match=told):
        relative(tmp_path, **changes)


@pytest.mark.parametrize(
    ("text", "told"), [("{", "needs to be a JSON file, and is not"), ("[]", "a table of settings, got list")]
)
def test_what_is_no_table_is_refused(text, told, tmp_path):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(RefusedError, match=told):
        read(tmp_path)


def test_a_folder_without_a_config_is_refused(tmp_path):
    with pytest.raises(
        RefusedError, match=r"has no config.json: give the directory that save_pretrained of transformers wrote"
    ):
        read(tmp_path)


def test_settings_of_generation_that_are_a_pipe_are_refused_and_not_left_out(tmp_path):
    os.mkfifo(tmp_path / "generation_config.json")
    with pytest.raises(RefusedError, match=r"generation_config.json is no regular file but a pipe"):
        read(given(tmp_path))
