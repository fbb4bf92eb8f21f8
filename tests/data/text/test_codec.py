import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import Data
from regard.data.codec import Report
from regard.data.special_tokens import BOS, EOS, PAD, UNK
from regard.data.table import DataError, Record
from regard.data.text.codec import Example, TextCodec
from regard.data.text.tokenizers import KINDS

RECORDS = [
    Record("Tom chases Jerry", "汤姆追逐杰瑞", "a:1"),
    Record("Jerry likes Tom", "杰瑞喜欢汤姆", "a:2"),
    Record("Tom likes the big cat that Jerry chases", "汤姆喜欢杰瑞追逐的大猫", "a:3"),
]


def fit(**options) -> TextCodec:
    return TextCodec.fit(RECORDS, Data(**options))


def test_both_sides_become_numbers_that_end_in_eos():
    codec = fit()
    example = codec.encode(RECORDS[0])
    # Jerry and Tom 3 times each, chases and likes twice: by their counts, then by their texts
    assert [codec.source.decode([number]) for number in range(4, 8)] == ["Jerry", "Tom", "chases", "likes"]
    assert example == Example([5, 6, 4, EOS], [*codec.target.encode("汤姆追逐杰瑞"), EOS], RECORDS[0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("joint", [False, True])
def test_what_is_encoded_is_decoded(kind, joint):
    codec = fit(tokenizer=kind, vocab_size=400, joint_vocab=joint)
    assert codec.joint is joint
    for record in RECORDS:
        assert codec.decode(codec.encode(record).target) == record.target
        assert codec.source.decode(codec.encode(record).source) == record.source


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("joint", [False, True])
def test_a_codec_comes_back_from_its_directory(tmp_path, kind, joint):
    codec = fit(
        tokenizer=kind,
        vocab_size=400,
        joint_vocab=joint,
        lowercase=True,
        max_source_length=9,
        max_target_length=8,
        over_long="truncate",
    )
    files = codec.save(tmp_path / "运行🙂" / "codec")
    assert sorted(files) == sorted((tmp_path / "运行🙂" / "codec").iterdir())
    loaded = TextCodec.load(tmp_path / "运行🙂" / "codec")
    assert loaded.encode_all(RECORDS) == codec.encode_all(RECORDS)
    assert loaded.joint is joint
    assert (loaded.lowercase, loaded.max_source_length, loaded.max_target_length, loaded.over_long) == (
        True,
        9,
        8,
        "truncate",
    )


def test_a_joint_vocabulary_has_one_number_for_a_word_on_both_sides():
    codec = TextCodec.fit([Record("a b", "b c", "x:1")], Data(joint_vocab=True))
    example = codec.encode(Record("b", "b", "x:2"))
    assert example.source == example.target
    assert codec.source is codec.target


def test_counterparts_are_spelt_alike_on_both_sides():
    codec = TextCodec.fit([Record("Tom likes Rome , Rome", "Rome plaît à Tom", "x:1")], Data())
    source, target = codec.source.encode("Tom likes Rome ,"), codec.target.encode("Tom Rome")
    found = codec.counterparts()
    assert [found[number] for number in source] == [target[0], -1, target[1], -1]
    assert [found[number] for number in (PAD, BOS, EOS, UNK)] == [-1, -1, EOS, UNK]
    assert len(found) == codec.source.size


@pytest.mark.parametrize("kind", KINDS)
def test_what_has_one_spelling_is_its_own_counterpart(kind):
    codec = TextCodec.fit([Record("Tom <eos>", "Tom <eos>", "x:1")], Data(tokenizer=kind, vocab_size=280))
    numbers = codec.source.encode("Tom <eos>")
    assert [codec.counterparts()[number] for number in numbers] == codec.target.encode("Tom <eos>")
    assert EOS not in numbers  # a text that holds its name does not hold the end


def test_sides_may_differ_in_kind():
    codec = TextCodec.fit([Record("cat", "k æ t", "x:1")], Data(), source_tokenizer="characters", target_tokenizer="words")
    assert len(codec.encode(Record("tac", "t æ k", "x:2")).source) == 4
    assert codec.target_pieces(codec.encode(Record("tac", "t æ k", "x:2")).target) == ["t", "æ", "k", "<eos>"]
    with pytest.raises(ValueError, match="a joint vocabulary needs one kind of tokens, got characters and words"):
        TextCodec.fit(RECORDS, Data(joint_vocab=True), source_tokenizer="characters")


def test_a_record_without_a_target_has_an_example_without_one():
    assert fit().encode(Record("Tom", None, "x:1")).target is None
    mixed = fit().encode_all([Record("Tom", None, "x:1"), RECORDS[0], Record("Jerry", None, "x:3")])
    assert [example.target is None for example in mixed.examples] == [True, False, True]


def test_lower_case_is_taken_on_both_sides():
    codec = TextCodec.fit([Record("Tom Likes", "TOM", "x:1")], Data(lowercase=True))
    assert codec.decode(codec.encode(Record("TOM", "Tom", "x:2")).target) == "tom"
    assert UNK not in codec.encode(Record("tOM lIKES", "tOm", "x:3")).source


def test_a_source_of_only_unknown_characters_is_all_unknown():
    assert fit().encode(Record("🐭 ☃ 🧀", None, "x:1")).source == [UNK, UNK, UNK, EOS]
    assert fit(tokenizer="characters").encode(Record("🐭☃", None, "x:1")).source == [UNK, UNK, EOS]


def test_lengths_count_the_end():
    codec = fit(max_source_length=4, max_target_length=7)
    assert codec.encode_all(RECORDS).report == Report(3, 2, 0, 0, 1, 0.0)
    assert len(codec.encode_all(RECORDS).examples[0].source) == 4
    assert len(codec.encode_all(RECORDS).examples[0].target) == 7
    assert fit(max_source_length=3).encode_all(RECORDS).report.encoded == 0
    assert fit(max_target_length=6).encode_all(RECORDS).report.encoded == 0


def test_what_is_too_long_is_cut_and_counted():
    codec = fit(max_source_length=5, max_target_length=7, over_long="truncate")
    corpus = codec.encode_all([*RECORDS, Record("Tom", "汤姆追逐杰瑞的大猫", "a:4")])
    assert corpus.report == Report(4, 4, 1, 2, 0, 0.0)
    cut = corpus.examples[2]
    assert (len(cut.source), len(cut.target)) == (5, 7)
    assert cut.source[-1] == cut.target[-1] == EOS
    assert codec.decode(cut.target) == "汤姆喜欢杰瑞"


def test_an_evaluation_can_ask_for_every_record():
    codec = fit(max_source_length=4)
    assert len(codec.encode_all(RECORDS).examples) == 2
    assert len(codec.encode_all(RECORDS, "truncate").examples) == 3
    assert len(codec.encode(RECORDS[2]).source) == 4


def test_the_share_of_unknown_tokens_is_reported():
    report = fit().encode_all([Record("Tom eats Jerry", "汤姆", "x:1")]).report
    assert report.unknown == pytest.approx(1 / 5)
    assert fit().encode_all([]).report == Report(0, 0, 0, 0, 0, 0.0)


def test_decoding_stops_at_the_first_end_and_skips_the_rest():
    codec = fit()
    tom = codec.target.encode("汤姆")
    assert codec.decode([BOS, *tom, PAD, EOS, *tom, EOS]) == "汤姆"
    assert codec.decode(iter([EOS])) == ""
    assert codec.decode([]) == ""
    assert codec.decode(tom) == "汤姆"


def test_pieces_stand_beside_the_numbers_of_a_source():
    record = Record("Tom  eats the Cat", None, "x:1")
    codec = fit(lowercase=True)
    pieces = codec.source_pieces(record)
    assert pieces == [("tom", 0, 3), ("eats", 5, 9), ("the", 10, 13), ("cat", 14, 17), ("<eos>", 17, 17)]
    assert len(pieces) == len(codec.encode(record).source)
    assert len(fit(max_source_length=3).source_pieces(record)) == 3


def test_pieces_of_an_output_end_with_the_end():
    codec = fit()
    tom = codec.target.encode("汤姆")
    assert codec.target_pieces([*tom, UNK, EOS, PAD, PAD]) == ["汤", "姆", "<unk>", "<eos>"]
    assert codec.target_pieces(tom) == ["汤", "姆"]


@pytest.mark.parametrize("kind", ["bytes", "bpe", "unigram"])
@settings(max_examples=30)
@given(st.text(min_size=1, max_size=20), st.text(max_size=20))
def test_numbers_and_pieces_agree_for_any_text(kind, source, target):
    codec = CODECS.setdefault(kind, fit(tokenizer=kind, vocab_size=300))
    record = Record(source, target, "x:1")
    example = codec.encode(record)
    assert codec.decode(example.target) == target
    assert len(codec.source_pieces(record)) == len(example.source)
    assert len(codec.target_pieces(example.target)) == len(example.target)


CODECS: dict[str, TextCodec] = {}


def test_there_is_nothing_to_learn_from_no_pairs():
    with pytest.raises(DataError, match="learnt from pairs, got 0 sources and 0 targets"):
        TextCodec.fit([], Data())
    with pytest.raises(DataError, match="got 1 sources and 0 targets"):
        TextCodec.fit([Record("a", None, "x:1")], Data())


def test_a_length_without_room_for_a_token_is_refused():
    with pytest.raises(ValueError, match="need at least 2"):
        fit(max_target_length=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 9}, "another format"),
        ({"joint": "yes"}, "joint is missing or of the wrong kind"),
        ({"max_source_length": None}, "max_source_length is missing or of the wrong kind"),
        ({"over_long": "keep"}, "over_long is 'keep', and needs to be truncate or drop"),
    ],
)
def test_damaged_settings_are_refused_by_name(tmp_path, change, message):
    fit().save(tmp_path)
    path = tmp_path / "codec.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=rf"codec\.json needs to be the settings of a text codec, format 1: .*{message}"):
        TextCodec.load(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000])
def test_settings_that_are_no_table_are_refused(tmp_path, text):
    (tmp_path / "codec.json").write_text(text)
    with pytest.raises(ValueError, match=r"codec\.json needs to be the settings"):
        TextCodec.load(tmp_path)
