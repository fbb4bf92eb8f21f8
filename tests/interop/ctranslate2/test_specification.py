import pytest
import torch

from regard.data.text.tokenizers.bytes import Bytes
from regard.data.text.tokenizers.vocabulary import Vocabulary
from regard.data.text.tokenizers.words import Words
from regard.errors import RefusedError
from regard.interop.ctranslate2.specification import files, spellings

from ..transformers_ import untrained


def test_the_model_is_left_as_it_is_when_its_copy_is_rounded():
    trained = untrained()
    before = {name: tensor.clone() for name, tensor in trained.model.state_dict().items()}
    files(trained, "int8")
    assert all(torch.equal(tensor, before[name]) for name, tensor in trained.model.state_dict().items())


def test_every_number_has_a_spelling_of_its_own():
    words = spellings(Words(Vocabulary(("the cat", "the▁cat", "<pad>", "dog", " "))))
    assert words == ["<pad>", "<bos>", "<eos>", "<unk>", "the▁cat", "<number 5>", "<number 6>", "dog", "▁"]
    letters = spellings(Bytes())
    assert len(set(letters)) == 260
    assert letters[4 + ord("a")] == "a"
    assert letters[4 + 200] == "<number 204>"


def test_a_model_that_cannot_be_expressed_is_refused_with_the_reason():
    with pytest.raises(RefusedError, match="ctranslate2 cannot express this model: it has a recurrent encoder, and a"):
        files(untrained(encoder="recurrent"))


def test_a_precision_that_does_not_exist_is_refused():
    with pytest.raises(RefusedError, match="ctranslate2 has the precisions float32, int8, got 'int2'"):
        files(untrained(), "int2")


def test_weights_that_are_not_finite_are_refused():
    trained = untrained()
    with torch.no_grad():
        trained.model.encoder.embedding.table.weight[5] = float("nan")
    with pytest.raises(RefusedError, match="ctranslate2 takes weights that are finite numbers"):
        files(trained)
