from regard.data.records import Record
from regard.tasks.caption import task
from regard.tasks.retrieve import task as retrieve


def test_no_caption_is_drawn_twice_and_none_is_in_both_parts():
    training, valid = retrieve.synthesise(60, seed=0)
    texts = [each.english.text for each in (*training, *valid)]
    assert len(set(texts)) == 60
    assert len(valid) == 6


def test_scenes_are_those_of_caption():
    assert [each.where for each in retrieve.synthesise(20, 1)[0]] == [each.where for each in task.synthesise(20, 1)[0]]


def test_a_record_stays_as_it_is():
    record = Record("1.png", "a star", "t.tsv:1")
    assert retrieve.prepare(record) is record
