"""Constrained decoding of imported models: their tokens come from elsewhere."""

import json

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

import regard
from regard.interop.huggingface.importer import files
from regard.interop.output import write_directory

from .test_importer import worded
from .tiny import END, PAD, VOCABULARY, saved, taught, tiny

IDS = ["17 4 25 9", "30 31", "8 8 12 8 8"]


def imported(model, folder, tokenizer=None, generation=None, **options):
    theirs = saved(model, folder / "theirs")
    if tokenizer is not None:
        tokenizer.save(str(theirs / "tokenizer.json"))
    if generation is not None:
        (theirs / "generation_config.json").write_text(json.dumps(generation))
    write_directory(folder / "run", files(theirs, **options))
    return regard.load(folder / "run", "cpu")


def answers(trained, texts, **options):
    return [answer.text for answer in trained.predict(texts, **options)]


def spaced():
    """A unigram model whose tokens begin with the mark of a space."""
    words = ["cat", "catalogue", "sees", "the", "dog", "s", "e", "c", "a", "t"]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *(f"▁{word}" for word in words), "▁", *"abcdefghijklmnoprstuwyz"]
    pieces += [f"▁w{number}" for number in range(VOCABULARY - len(pieces))]
    tokenizer = Tokenizer(models.Unigram([(piece, -2.0) for piece in pieces], unk_id=3))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    tokenizer.add_special_tokens(pieces[:4])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return tokenizer


@pytest.mark.parametrize("beam", [1, 4])
def test_a_model_that_repeats_no_ngram_answers_as_generate_does(beam, tmp_path):
    model = taught("bart")
    generation = {"num_beams": beam, "no_repeat_ngram_size": 2, "max_length": 14}
    trained = imported(model, tmp_path, generation=generation)
    assert trained.config.search.block_ngrams == 2
    rows = [[7, 7, 7, 7, 7, END], [9, 12, 9, 12, 9, END], [4, 4, 30, 4, 4, END]]
    options = {"do_sample": False, "early_stopping": False, "suppress_tokens": [PAD], "max_length": 14, "num_beams": beam}
    theirs = model.generate(torch.tensor(rows), no_repeat_ngram_size=2, **options)[:, 1:].tolist()
    ours = answers(trained, [" ".join(map(str, row[:-1])) for row in rows])
    for mine, row in zip(ours, theirs, strict=True):
        if END in row:
            assert mine.split() == [str(each) for each in row[: row.index(END)]]
        pairs = list(zip(mine.split(), mine.split()[1:], strict=False))
        assert len(set(pairs)) == len(pairs)


def test_token_ids_are_constrained_as_token_ids(tmp_path):
    trained = imported(tiny("bart"), tmp_path)
    for text in answers(trained, IDS, prefix="5 30", include=["4 17"], exclude=["9"]):
        assert text.startswith("5 30 ")
        assert " 4 17" in text
        assert "9" not in text.split()
    with pytest.raises(ValueError, match="the prefix '5 99' holds what the model cannot write"):
        trained.predict(IDS, prefix="5 99")
    with pytest.raises(ValueError, match="the model cannot write the phrase '99'"):
        trained.predict(IDS, include=["99"])


def test_texts_are_constrained_as_their_decoder_joins_them(tmp_path):
    trained = imported(tiny("bart"), tmp_path, spaced())
    free = answers(trained, ["the dog sees"])
    assert free[0]
    for beam in (1, 4):
        [text] = answers(trained, ["the dog sees"], prefix="the cat", include=["dog s"], beam=beam)
        assert text.startswith("the cat")
        assert "dog s" in text
    [text] = answers(trained, ["the dog sees"], prefix="the cat ")
    assert text.startswith("the cat ")
    [first] = free[0].split()[:1]
    assert first not in answers(trained, ["the dog sees"], exclude=[first])[0]
    with pytest.raises(ValueError, match="the prefix 'the cät' holds what the model cannot write"):
        trained.predict(["the dog"], prefix="the cät")
    with pytest.raises(ValueError, match="the model cannot write the phrase 'cät'"):
        trained.predict(["the dog"], include=["cät"])


def test_a_prefix_comes_behind_the_language_that_is_forced(tmp_path):
    tokenizer = worded("eng_Latn $A </s>", ["eng_Latn", "</s>"])
    trained = imported(tiny("m2m_100"), tmp_path, tokenizer, first="deu_Latn")
    assert trained.config.search.forced_bos is not None
    for beam in (1, 3):
        [answer] = trained.predict(["w3 w9 w40"], prefix="w5 w7 ", include=["w8"], beam=beam)
        assert answer.text.startswith("w5 w7")
        assert "w8" in answer.text
        assert answer.target[0] == "deu_Latn"
