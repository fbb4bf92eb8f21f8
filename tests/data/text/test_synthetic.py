import pytest

from regard.data.text.synthetic import aligned, grammar, reversal, split
from regard.data.text.tokenizers.pretokenize import split as cut

ALIGNED = {each.record.source: each for each in aligned(4000)}
SENTENCES = {source: each.record.target for source, each in ALIGNED.items()}


def test_the_grammar_knows_tom_and_jerry():
    assert SENTENCES["Tom chases Jerry"] == "汤姆追逐杰瑞"


@pytest.mark.parametrize(
    ("english", "chinese"),
    [
        ("does the student that Anna fears trust the dog in the park every day?", "安娜害怕的学生每天在公园里相信狗吗？"),
        ("the small cat that likes Mary trusts Anna", "喜欢玛丽的小猫相信安娜"),
        ("Jerry does not sell that book in the park", "杰瑞在公园里不卖那本书"),
        ("do three strange teachers not know the dog in the park?", "三位奇怪的老师在公园里不认识狗吗？"),
        ("does Jerry sell that letter on Sunday?", "杰瑞星期天卖那封信吗？"),
        ("Jerry draws this boat that Anna draws", "杰瑞画这条安娜画的船"),
    ],
)
def test_chinese_orders_a_sentence_its_own_way(english, chinese):
    assert SENTENCES[english] == chinese


def test_a_seed_gives_the_same_sentences_and_another_gives_others():
    assert grammar(50, seed=1) == grammar(50, seed=1)
    assert grammar(50, seed=1) != grammar(50, seed=2)
    assert grammar(50, seed=1) == grammar(100, seed=1)[:50]
    assert grammar(0) == []


def test_sentences_are_different_and_know_their_place():
    records = grammar(500)
    assert len({record.source for record in records}) == 500
    assert [record.where for record in records[:2]] == ["grammar:1", "grammar:2"]


def test_the_words_are_few_and_chinese_has_no_spaces():
    words = {piece.text for source in SENTENCES for piece in cut(source)}
    assert 60 <= len(words) <= 100
    assert not any(character.isspace() or character.isascii() for target in SENTENCES.values() for character in target)


def test_alignments_point_at_the_counterparts():
    found = ALIGNED["Jerry does not sell that book in the park"]
    words, target = found.record.source.split(), found.record.target
    assert [(words[place], target[start:end]) for place, (start, end) in found.links] == [
        ("Jerry", "杰瑞"),
        ("not", "不"),
        ("sell", "卖"),
        ("that", "那本"),
        ("book", "书"),
        ("in", "在公园里"),
        ("the", "在公园里"),
        ("park", "在公园里"),
    ]


def test_alignments_cover_every_chinese_character():
    for each in aligned(500, seed=3):
        covered = {place for _, (start, end) in each.links for place in range(start, end)}
        assert covered == set(range(len(each.record.target)))
        assert all(0 <= place < len(cut(each.record.source)) for place, _ in each.links)


def test_reversal_reverses():
    for record in reversal(200, seed=4, shortest=3, longest=6, letters="abc"):
        letters = record.source.split(" ")
        assert record.target.split(" ") == letters[::-1]
        assert 3 <= len(letters) <= 6
        assert set(letters) <= set("abc")
    assert reversal(20, seed=4) == reversal(20, seed=4) != reversal(20, seed=5)


def test_what_is_held_out_is_not_trained_on():
    records = reversal(2000, longest=4, letters="abcd")
    train, valid = split(records, 50, seed=1)
    assert len(valid) == 50
    assert len(train) > 1000
    assert not {record.source for record in train} & {record.source for record in valid}
    assert not {record.target for record in train} & {record.target for record in valid}
    assert split(records, 50, seed=1) == (train, valid)
    assert split(records, 50, seed=2) != (train, valid)


def test_not_everything_can_be_held_out():
    with pytest.raises(ValueError, match="holding out 10 needs more than 10 different sources, got 10"):
        split(grammar(10), 10)
