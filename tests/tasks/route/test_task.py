from regard.tasks.route.task import Config, prepare, synthesise


def test_instances_are_in_the_unit_square_and_those_of_their_seed():
    train, valid = synthesise(3, 5)
    assert len(train) == len(valid) == 3
    assert {len(record.points) for record in (*train, *valid)} == {20}
    assert all(0 <= number <= 1 for record in valid for point in record.points for number in point)
    assert not {record.points for record in train} & {record.points for record in valid}
    assert synthesise(3, 5) == (train, valid)
    assert synthesise(3, 6)[0][0].points != train[0].points


def test_a_record_is_read_as_it_is():
    [record], _ = synthesise(1, 0)
    assert prepare(record) is record


def test_the_gap_to_a_solver_is_watched_by_default():
    assert Config().train.monitor == "gap"
    assert Config().dropout.embedding == Config().dropout.residual == 0
