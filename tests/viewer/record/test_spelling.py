import pytest

from regard.config import Data
from regard.data.special_tokens import BOS, EOS, UNK
from regard.data.table import Record
from regard.data.text.codec import TextCodec
from regard.viewer.io.check_axes import check_axis
from regard.viewer.record.spelling import Words, written

PAIRS = [("Tom's cat", "汤姆追逐杰瑞。"), ("the dog 👨‍👩‍👧 runs", "小狗 runs!"), ("مرحبا", "é ü")]


def codec(tokens, **options):
    records = [Record(source, target, f"line {number}") for number, (source, target) in enumerate(PAIRS)]
    return TextCodec.fit(records, Data(tokenizer=tokens, vocab_size=400, **options)), records


@pytest.mark.parametrize("tokens", ["words", "characters", "bytes", "bpe", "unigram"])
def test_every_token_covers_the_text_it_stands_for(tokens):
    made, records = codec(tokens)
    for record in records:
        example = made.encode(record)
        source, target = Words(made).read(example), Words(made).answered(example.target)
        for axis, text, numbers in ((source, record.source, example.source), (target, record.target, example.target)):
            check_axis(axis, tokens)
            assert len(axis) == len(numbers)
            assert axis.text == text
            assert axis.special == (len(numbers) - 1,)
            assert axis.spans[-1] is None
            covered = [axis.text[start:end] for start, end in axis.spans[:-1]]
            assert all(covered)
            missing = set(text) - set("".join(covered))
            assert missing <= {" "}
        assert target.labels[-1] == "<eos>"


def test_chinese_words_by_hand():
    made, records = codec("words")
    axis = Words(made).answered(made.encode(records[0]).target)
    assert axis.labels == ["汤", "姆", "追", "逐", "杰", "瑞", "。", "<eos>"]
    assert axis.lang == "zh"
    before = written(axis)
    assert before.labels == ["<bos>", "汤", "姆", "追", "逐", "杰", "瑞", "。"]
    assert before.special == (0,)
    check_axis(before, "written")


def test_bytes_of_one_character_all_cover_it_and_are_named_by_their_numbers():
    made, _ = codec("bytes")
    axis = Words(made).answered([*made.target.encode("汤!"), EOS])
    assert axis.labels == ["汤", "汤", "汤", "!", "<eos>"]
    assert axis.spans == ((0, 1), (0, 1), (0, 1), (1, 2), None)
    assert axis.pieces == ("\\xe6", "\\xb1", "\\xa4", "!", "<eos>")
    assert Words(made).label(made.target.encode("汤")[0]) == "\\xe6"


def test_spaces_and_words_without_one_before_them_are_covered_as_the_text_has_them():
    made, _ = codec("words")
    numbers = made.source.encode("Tom's cat")
    assert made.source_axes.spans(numbers, "Tom's cat") == [(0, 3), (3, 4), (4, 5), (6, 9)]
    assert [made.source_axes.label(number) for number in numbers] == ["Tom", "'", "s", "cat"]


def test_an_unknown_word_covers_its_own_name_in_an_answer_and_its_text_in_a_source():
    made, _ = codec("words")
    axis = Words(made).answered([UNK, EOS])
    assert axis.labels == ["<unk>", "<eos>"]
    source = Words(made).read(made.encode(Record("zebra cat", None, "")))
    assert source.labels == ["zebra", "cat", "<eos>"]
    assert source.pieces[0] == "<unk>"


def test_what_was_cut_off_has_no_end_and_what_is_silent_covers_nothing():
    made, records = codec("characters")
    numbers = made.encode(records[0]).target[:3]
    assert Words(made).answered(numbers).special == ()
    assert made.target_axes.spans([BOS, *numbers], "汤姆追") == [None, (0, 1), (1, 2), (2, 3)]
