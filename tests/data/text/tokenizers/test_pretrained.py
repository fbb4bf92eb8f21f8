import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from regard.data.special_tokens import BOS, EOS, PAD, UNK
from regard.data.text import tokenizers
from regard.data.text.tokenizers.pretrained import Pretrained
from regard.data.text.tokenizers.token_offsets import Piece

IDS = (1, 2, 2, 3, 0, 4, 5)


@pytest.fixture
def words():
    """<s> <pad> </s> <unk> and two words; what is put around a text is its beginning and its end."""
    model = Tokenizer(
        models.WordLevel({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "▁Tom": 4, "Jerry": 5}, unk_token="<unk>")
    )
    model.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    model.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>"])
    model.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return Pretrained(IDS, model)


def test_a_text_has_its_template_around_it_but_for_the_end(words):
    assert words.encode("Jerry strange ▁Tom") == [4, 6, UNK, 5]
    assert words.decode([4, 6, 5, EOS, PAD]) == "Jerry ▁Tom"
    assert words.size == 7


def test_pieces_are_what_each_token_covers(words):
    assert words.pieces("Jerry me") == [Piece("<s>", 0, 0), Piece("Jerry", 0, 5), Piece("me", 6, 8)]
    assert words.shown([4, 6, EOS, UNK]) == ["<s>", "Jerry", "<eos>", "<unk>"]
    assert words.table == (b"<pad>", b"<bos>", b"<eos>", b"<unk>", b"<s>", b" Tom", b"Jerry")


def test_without_a_tokenizer_a_text_is_made_of_ids():
    tokens = Pretrained(IDS)
    assert tokens.encode("4 5  0 77 2 x ４") == [5, 6, 4, UNK, UNK, UNK, UNK]
    assert tokens.decode([5, 6, BOS, UNK, EOS]) == "4 5 <unk>"
    assert tokens.pieces("5  5 4") == [Piece("5", 0, 1), Piece("5", 3, 4), Piece("4", 5, 6)]
    assert tokens.table[5] == b"4 "


def test_bytes_are_spelt_as_such():
    model = Tokenizer(models.BPE({"Ġa": 0, "Ã": 1, "<pad>": 2, "</s>": 3}, []))
    model.decoder = decoders.ByteLevel()
    tokens = Pretrained((2, 3, 3, 2, 0, 1, 9), model)
    assert tokens.table[4:] == (b" a", b"\xc3", b"<9>")


@pytest.mark.parametrize("with_model", [True, False])
def test_it_comes_back_as_it_was_saved(words, with_model, tmp_path):
    kept = words if with_model else Pretrained(IDS)
    kept.save(tmp_path, "joint")
    found = tokenizers.load(tmp_path, "joint")
    assert found.ids == IDS
    assert found.encode("Jerry 5") == kept.encode("Jerry 5")


def test_a_damaged_file_is_refused(words, tmp_path):
    words.save(tmp_path, "joint")
    (tmp_path / "joint.tokenizer.json").write_text("{}")
    with pytest.raises(ValueError, match="needs to be a tokenizer of the tokenizers library, and is not"):
        tokenizers.load(tmp_path, "joint")
    (tmp_path / "joint.json").write_text('{"format": 1, "tokens": "pretrained", "ids": [-1, 0, 0, 0, 0]}')
    with pytest.raises(ValueError, match="needs the ids of a pretrained tokenizer, numbers from 0 up"):
        tokenizers.load(tmp_path, "joint")


def test_it_is_not_trained():
    with pytest.raises(ValueError, match="pretrained tokens come with a model from elsewhere"):
        tokenizers.train("pretrained", ["a"], 10)


def test_padding_and_end_may_have_one_id_which_is_the_end():
    tokens = Pretrained((2, 2, 2, 2, 0, 1, 3))
    assert tokens.numbers == {2: EOS, 0: 4, 1: 5, 3: 6}


def spaced():
    pieces = ["<pad>", "</s>", "<unk>", "▁", "▁the", "▁cat", "s", "<0xC3>", "<0xA9>"]
    model = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], unk_id=2, byte_fallback=True))
    model.pre_tokenizer = pre_tokenizers.Metaspace()
    model.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    model.add_special_tokens(pieces[:3])
    return Pretrained((0, 1, 1, 2, *range(3, 9)), model)


def test_what_a_token_writes_behind_another_is_what_the_decoder_joins(words):
    assert spaced().continuations == (b"", b"", b"", b"", b" ", b" the", b" cat", b"s", b"\xc3", b"\xa9")
    assert words.continuations[4:] == (b"", b" \xe2\x96\x81Tom", b" Jerry")
    assert Pretrained(IDS).continuations[4:] == (b" 0", b" 4", b" 5")
    model = Tokenizer(models.BPE({"Ġa": 0, "Ã": 1, "<pad>": 2, "</s>": 3}, []))
    model.decoder = decoders.ByteLevel()
    assert Pretrained((2, 3, 3, 2, 0, 1, 9), model).continuations == (b"", b"", b"", b"", b" a", b"\xc3", b"")


def test_the_space_of_a_first_token_may_be_left_out(words):
    assert spaced().drops_first_space
    assert words.drops_first_space
    model = Tokenizer(models.BPE({"Ġa": 0, "a": 1, "<pad>": 2, "</s>": 3}, []))
    model.decoder = decoders.ByteLevel()
    assert not Pretrained((2, 3, 3, 2, 0, 1), model).drops_first_space


def test_a_target_has_no_template_and_the_normal_form_of_the_tokenizer(words):
    assert words.encode_target("Jerry strange") == [6, UNK]
    assert Pretrained(IDS).encode_target("4 5") == [5, 6]
    words.model.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Prepend("▁")])
    assert words.normalise("Jerry SEES") == "jerry sees"
    assert words.normalise(" Jerry") == "  jerry"
