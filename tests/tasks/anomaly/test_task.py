from regard.tasks.anomaly.task import Config, prepare, synthesise


def test_a_record_is_read_as_it_is():
    [record], _ = synthesise(1, 0)
    assert prepare(record) is record


def test_the_loss_of_held_out_rows_is_watched():
    assert Config().train.monitor == "loss"
