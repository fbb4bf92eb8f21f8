import dataclasses

from regard import tasks
from regard.data.records import Record
from regard.tasks.classify import task
from regard.tasks.classify.synthetic import RADII
from regard.tasks.classify.task import Config


def test_a_record_is_taken_as_it_stands():
    record = Record("1.png", "cat", "t.tsv:1")
    assert task.prepare(record) is record


def test_scenes_have_one_to_three_things_of_a_size_to_be_told_apart():
    training, valid = task.synthesise(50, seed=0)
    assert (len(training), len(valid)) == (45, 5)
    for scene in training:
        assert 1 <= len(scene.labels) <= 3
        assert all(RADII[0] <= thing.radius <= RADII[1] for thing in scene.scene.things)


def test_labels_may_be_chinese():
    usual = Config()
    data = dataclasses.replace(usual.data, samples=60, language="chinese", height=32, width=32)
    experiment, _ = tasks.experiment("classify", dataclasses.replace(usual, data=data))
    assert "圆" in experiment.codec.labels
    experiment.train.close()
