import torch

from regard.config import Data
from regard.data.special_tokens import EOS, NO_TOKEN, UNK
from regard.data.table import Record
from regard.data.text.codec import TextCodec
from regard.data.text.copying import bracket

RECORDS = [Record("we met (Tom) in Rome", "Tom met us", "a:1"), Record("we met Ann in Rome", "Ann met us", "a:2")]


def fit(**options):
    return TextCodec.fit(RECORDS, Data(**options), copies=True)


def test_a_word_outside_the_vocabulary_is_the_number_of_its_first_place():
    codec = fit(min_frequency=2)
    size = codec.target.size
    example = codec.encode(Record("we met Zoe , and Zoe met Leo", "Leo met Zoe", "b:1"))
    met = codec.target.encode("met")[0]
    assert example.source.count(UNK) == 5
    assert example.copies == [size, met, size + 2, size + 3, size + 4, size + 2, met, size + 7, EOS]
    assert example.target == [size + 7, met, size + 2, EOS]
    assert codec.extend(example.words).decode(example.target) == "Leo met Zoe"
    assert codec.decode(example.target) == "<copy 7> met <copy 2>"


def test_a_word_is_the_same_in_and_out_of_parentheses():
    codec = fit()
    example = codec.encode(Record('"Zoe-like" (Tom)', "Zoe and Tom", "b:1"))
    words = [token for token in example.target if token >= codec.target.size]
    assert codec.target.encode("Tom")[0] in example.copies
    assert codec.extend(example.words).decode([*words, EOS]) == "Zoe"


def test_a_place_that_is_cut_off_offers_nothing():
    codec = fit(max_source_length=3, over_long="truncate")
    example = codec.encode(Record("we met Zoe", "Zoe", "b:1"))
    assert len(example.copies) == len(example.source) == 3
    assert example.target == [UNK, EOS]


def test_sub_words_are_copied_by_their_spelling():
    for joint in (True, False):
        codec = fit(tokenizer="bpe", vocab_size=280, joint_vocab=joint)
        example = codec.encode(Record("we met Zoe", "Zoe", "b:1"))
        assert example.words == ()
        assert len(example.copies) == len(example.source)
        shared = [copied for copied in example.copies if copied not in (NO_TOKEN, EOS)]
        assert {*codec.target.encode("Zoe")} & {*shared}


def test_sources_are_padded_with_nothing_to_copy():
    codec = fit()
    batch = codec.collate([codec.encode(Record("Tom", "Tom", "b:1")), codec.encode(RECORDS[1])])
    assert batch.copies.shape == batch.data.shape
    assert batch.copies[0, 2:].eq(NO_TOKEN).all()
    loaded = codec.loader([codec.encode(record) for record in RECORDS], 100)
    [(_, part)] = loaded.in_order()
    assert torch.equal(part.source.copies >= 0, part.source.keep)


def test_the_codec_of_a_run_still_copies(tmp_path):
    fit().save(tmp_path)
    assert TextCodec.load(tmp_path).copies
    TextCodec.fit(RECORDS, Data()).save(tmp_path)
    assert not TextCodec.load(tmp_path).copies


def test_neighbours_in_both_texts_share_brackets():
    covered = [(0, 3), (4, 7), (8, 11), None]
    assert bracket("Tom met Ann", covered, [(0, 5), (1, 6), (2, 1), (3, 9)]) == "[Tom met] [Ann]"
