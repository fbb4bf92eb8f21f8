import dataclasses

import pytest

from regard import tasks
from regard.data.records import Record
from regard.tasks.vqa import task
from regard.tasks.vqa.data import PictureQuestion
from regard.tasks.vqa.task import Config


def test_scenes_are_simple_and_no_scene_is_in_both_parts():
    training, validation = task.synthesise(120, seed=0)
    assert not {each.scene for each in training} & {each.scene for each in validation}
    assert {thing.shape for each in training for thing in each.scene.things} <= set(task.SHAPES)
    assert max(len(each.scene.things) for each in training) == 2
    assert {each.kind for each in training} == set(task.KINDS)


def test_a_record_is_taken_as_it_stands():
    record = PictureQuestion(Record("a.png", "yes", "t.tsv:1"), "is it?")
    assert task.prepare(record) is record


@pytest.mark.parametrize(("language", "asked"), [("english", "what colour is the"), ("chinese", "是什么颜色？")])
def test_questions_may_be_in_either_language(language, asked):
    usual = Config()
    data = dataclasses.replace(usual.data, samples=200, language=language, height=32, width=32)
    experiment, _ = tasks.experiment("vqa", dataclasses.replace(usual, data=data))
    assert any(asked in example.record.question for example in experiment.valid)
    assert set(experiment.codec.answers) >= {example.record.target for example in experiment.valid}
    experiment.train.close()
