import os

os.environ["HF_HUB_OFFLINE"] = "1"

import pytest
import transformers

from regard.data.special_tokens import EOS
from regard.data.text import tokenizers
from regard.data.text.codec import TextCodec
from regard.data.text.synthetic import grammar
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.interop.huggingface.tokenizer import tokenizer

TEXTS = [text for record in grammar(250, 0) for text in (record.source, record.target)]
ODD = ["", " ", "  two  blanks ", "naïve café 😀", "tab\tand\nline", "汤姆 Tom", "ﬁ ½ Ω"]


def codec(kind, texts=TEXTS, **settings):
    tokens = tokenizers.train(kind, texts, 400)
    return TextCodec(tokens, tokens, **settings)


@pytest.mark.parametrize("kind", ["words", "bpe", "unigram", "bytes", "characters"])
def test_its_ids_and_its_texts_are_ours(kind, tmp_path):
    ours = codec(kind)
    for name, data in tokenizer(ours).items():
        (tmp_path / name).write_bytes(data)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    for text in TEXTS + ODD:
        ids = [*ours.source.encode(text), EOS]
        assert theirs(text)["input_ids"] == ids
        if 3 not in ids:
            assert theirs.decode(ids, skip_special_tokens=True) == ours.decode(ids)
    assert (theirs.pad_token_id, theirs.bos_token_id, theirs.eos_token_id, theirs.unk_token_id) == (0, 1, 2, 3)


def test_words_that_came_apart_have_one_too(tmp_path):
    ours = codec("words", ["a b , c .", "a , b . c"] * 20)
    assert ours.source.whole
    for name, data in tokenizer(ours).items():
        (tmp_path / name).write_bytes(data)
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert theirs("a , strange c")["input_ids"] == [*ours.source.encode("a , strange c"), EOS]


def test_where_there_is_none_the_reason_is_told():
    ids = Pretrained((1, 2, 2, 3, 0, 4))
    assert tokenizer(TextCodec(ids, ids)) == "its texts are made of ids"


def test_that_of_an_imported_model_goes_back_as_it_came(tmp_path):
    inner = tokenizer(codec("bytes"))["tokenizer.json"].decode()
    from tokenizers import Tokenizer

    tokens = Pretrained((0, 2, 2, 3, 1, *range(4, 260)), Tokenizer.from_str(inner))
    found = tokenizer(TextCodec(tokens, tokens))
    assert found["tokenizer.json"].decode() == tokens.model.to_str()
    assert b'"eos_token": "<eos>"' in found["tokenizer_config.json"]
