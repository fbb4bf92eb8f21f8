import pytest

from regard import registry, tasks
from regard.tasks.caption import experiment
from regard.tasks.kinds import text as _text
from regard.tasks.kinds.types import Family, Task, TaskConfig, family


@pytest.mark.parametrize("name", registry.names("tasks"))
def test_every_task_has_the_face_of_one_and_belongs_to_a_family(name):
    task = tasks.find(name)
    assert isinstance(task, Task)
    assert isinstance(task.Config(), TaskConfig)
    assert isinstance(family(task.Config), Family)


def test_the_class_of_a_config_says_which_family_it_is():
    assert family(tasks.find("translate").Config()) is _text
    assert family(tasks.find("caption").Config()) is experiment


def test_a_task_that_does_not_exist_names_the_nearest():
    with pytest.raises(LookupError, match="no task is called 'captoin'; did you mean 'caption'"):
        tasks.find("captoin")
