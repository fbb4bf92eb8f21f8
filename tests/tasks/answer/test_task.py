from regard.tasks.answer.task import Config, prepare, synthesise


def test_a_record_is_read_as_it_is():
    (record, *_), _ = synthesise(20, 0)
    assert prepare(record) is record


def test_no_story_is_both_trained_on_and_validated_with():
    train, valid = synthesise(40, 0)
    assert not {record.text for record in train} & {record.text for record in valid}
    assert synthesise(40, 0) == (train, valid)
    assert all(record.answer and record.facts is not None for record in (*train, *valid))


def test_the_error_over_tasks_is_watched_by_default():
    config = Config()
    assert config.train.monitor == "error"
    assert (config.model.kind, config.model.hops, config.dropout.embedding) == ("memory", 3, 0.0)
    assert not config.WRITES
