from regard.data.special_tokens import BOS, EOS, PAD, UNK
from regard.data.text.tokenizers.characters import Characters
from regard.data.text.tokenizers.vocab_based import SILENT
from regard.data.text.tokenizers.vocabulary import Vocabulary


def test_the_size_counts_the_special_ones():
    assert Characters(Vocabulary(("a", "b"))).size == 6


def test_the_table_has_the_spelling_of_every_number():
    assert Characters(Vocabulary(("a", "汤"))).table == (b"<pad>", b"<bos>", b"<eos>", b"<unk>", b"a", "汤".encode())


def test_what_the_vocabulary_does_not_list_is_unknown():
    assert Characters(Vocabulary(("a", "b"))).encode("abc") == [4, 5, UNK]
    assert Characters(Vocabulary(("a", "b"))).encode_all(["b", "c"]) == [[5], [UNK]]


def test_the_vocabulary_is_written_beside_the_settings(tmp_path):
    tokenizer = Characters(Vocabulary(("a", "b")))
    assert [path.name for path in tokenizer.save(tmp_path, "source")] == ["source.json", "source.vocabulary.json"]
    assert tokenizer.read(tmp_path, "source") == tokenizer.vocabulary


def test_all_special_tokens_but_the_unknown_are_silent():
    assert {PAD, BOS, EOS} == SILENT
