from regard.data.records import Record
from regard.tasks.detect import task
from regard.tasks.detect.data import Annotated


def test_scenes_have_one_to_four_things_and_none_is_in_both_parts():
    training, valid = task.synthesise(40, seed=0)
    assert (len(training), len(valid)) == (36, 4)
    assert {len(each.annotated.labels) for each in training} <= {1, 2, 3, 4}
    assert not {each.boxed.scene for each in training} & {each.boxed.scene for each in valid}
    assert training[0]().shape == (3, task.SIDE, task.SIDE)
    assert all(0 <= at <= task.SIDE for each in training for box in each.annotated.boxes for at in box)


def test_what_is_given_stays_as_it_stands():
    given = Annotated(Record("a.png", None, "t:1"))
    assert task.prepare(given) is given


def test_the_default_keeps_the_model_that_finds_most():
    config = task.Config()
    assert config.train.monitor == "map50"
    assert config.model.queries >= task.MOST
