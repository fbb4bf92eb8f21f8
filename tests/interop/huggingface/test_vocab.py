import json
import os

import pytest
from tokenizers import Tokenizer, models

from regard.data.text.tokenizers.pretrained import Pretrained
from regard.errors import RefusedError
from regard.interop.huggingface.settings import Settings
from regard.interop.huggingface.vocab import build_codec, copies, ids, number_of, unknown_id

SETTINGS = Settings(
    "bart",
    {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "vocab_size": 6, "max_position_embeddings": 9},
)


def test_the_special_four_come_first_and_the_beginning_is_a_copy():
    assert ids(6, pad=1, start=2, end=2, unknown=3) == (1, 2, 2, 3, 0, 4, 5)
    assert ids(6, pad=5, start=5, end=0, unknown=None) == (5, 5, 0, 5, 1, 2, 3, 4)
    assert ids(6, pad=1, start=0, end=2, unknown=3) == (1, 0, 2, 3, 0, 4, 5)


def test_without_a_tokenizer_texts_are_made_of_ids(tmp_path):
    codec = build_codec(SETTINGS, tmp_path)
    assert codec.target.model is None
    assert codec.max_source_length == 9
    assert codec.decode(codec.target.encode("4 5 0")) == "4 5 0"


def test_what_is_no_tokenizer_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": 1}))
    with pytest.raises(RefusedError, match=r"tokenizer.json needs to be a tokenizer of the tokenizers library, and is not"):
        build_codec(SETTINGS, tmp_path)


def test_a_tokenizer_that_is_a_pipe_is_refused_and_not_left_out(tmp_path):
    os.mkfifo(tmp_path / "tokenizer.json")
    with pytest.raises(RefusedError, match=r"tokenizer.json is no regular file but a pipe"):
        build_codec(SETTINGS, tmp_path)


def test_the_unknown_token_is_what_the_model_says():
    assert unknown_id(Tokenizer(models.WordLevel({"a": 0, "[U]": 1}, unk_token="[U]"))) == 1
    assert unknown_id(Tokenizer(models.Unigram([("a", 0.0), ("?", 0.0)], unk_id=1))) == 1
    assert unknown_id(Tokenizer(models.BPE({"a": 0}, []))) is None


def test_copies_are_the_beginning_and_what_is_unknown_where_that_is_the_padding():
    assert copies(Pretrained((1, 2, 2, 3, 0, 4))) == [1]
    assert copies(Pretrained((1, 2, 2, 1, 0, 4))) == [1, 3]


def test_a_first_token_is_known_by_its_name_or_its_id():
    words = Tokenizer(models.WordLevel({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "deu_Latn": 4}, unk_token="<unk>"))
    assert number_of(Pretrained((1, 2, 2, 3, 0, 4), words), "deu_Latn") == 5
    assert number_of(Pretrained((1, 2, 2, 3, 0, 4)), "4") == 5


@pytest.mark.parametrize("name", ["9", "2", "deu_Latn", "-1"])
def test_a_first_token_that_is_none_is_refused(name):
    with pytest.raises(RefusedError, match=f"the first token of an answer needs to be an id, such as .* got '{name}'"):
        number_of(Pretrained((1, 2, 2, 3, 0, 4)), name)
