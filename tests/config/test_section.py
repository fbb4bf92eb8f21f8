import copy
import dataclasses
import pickle
import typing

import pytest

from regard import config as configuration
from regard import registry, tasks
from regard.config import AttentionPart, ConfigError, Data, Dropout, ImageDropout, Model, Train
from regard.config.section import NAMED

pytestmark = pytest.mark.unhooked  # fields that are not named hold no value of their type until the task completes them

TASKS = {name: tasks.find(name).Config for name in registry.names("tasks")}


def another(value, annotation):
    """A value of the field's type that is not the default."""
    if isinstance(value, bool) or bool in typing.get_args(annotation):
        return not value
    return value + 1 if isinstance(value, int | float) else "other"


@pytest.mark.parametrize("name", TASKS)
def test_naming_one_setting_of_a_section_keeps_the_task_s_defaults_of_the_others(name):
    default = TASKS[name]()
    for section in dataclasses.fields(default):
        values = getattr(default, section.name)
        hints = typing.get_type_hints(type(values))
        for field in dataclasses.fields(values):
            value = getattr(values, field.name)
            changed = value if dataclasses.is_dataclass(value) else another(value, hints[field.name])
            config = TASKS[name](**{section.name: type(values)(**{field.name: changed})})
            assert config == dataclasses.replace(
                default, **{section.name: dataclasses.replace(values, **{field.name: changed})}
            )


def test_a_config_from_python_equals_that_of_the_command():
    config = TASKS["translate"](train=Train(max_steps=100), model=Model(attention=AttentionPart("dot")))
    overrides = ["train.max_steps=100", "model.attention=dot"]
    assert config == configuration.read(TASKS["translate"], overrides=overrides)


@pytest.mark.parametrize("name", [name for name in TASKS if hasattr(TASKS[name]().model, "attention")])
def test_an_attention_is_named_in_python_as_on_the_command_line(name):
    model = type(TASKS[name]().model)
    config = TASKS[name](model=model(attention="scaled_dot"))
    assert config.model.attention == dataclasses.replace(TASKS[name]().model.attention, name="scaled_dot")


def test_none_can_be_named_too():
    model = type(TASKS["classify"]().model)
    assert TASKS["classify"]().model.depth == 1
    assert TASKS["classify"](model=model(depth=None)).model.depth is None


def test_a_more_general_section_is_completed_to_that_of_the_task():
    config = TASKS["detect"](dropout=Dropout(embedding=0.3))
    assert config.dropout == ImageDropout(embedding=0.3, residual=0.0)


def test_a_section_with_fields_of_its_own_keeps_them_and_the_task_s_defaults():
    @dataclasses.dataclass(frozen=True)
    class OwnTrain(Train):
        temperature: float = 1.0

    train = TASKS["translate"](train=OwnTrain(temperature=2.0)).train
    assert (train.temperature, train.learning_rate) == (2.0, TASKS["translate"]().train.learning_rate)


def test_another_section_in_its_place_is_refused():
    with pytest.raises(ConfigError, match=r"train needs to be a Train, got dict; tables are taken by regard\.train"):
        TASKS["translate"](train={"max_steps": 3})
    with pytest.raises(ConfigError, match="data needs to be a ClassifyData, got Data"):
        TASKS["classify"](data=Data(samples=3))


def test_copies_and_configs_that_were_read_are_whole():
    config = TASKS["caption"](train=Train(max_steps=3))
    for section in (Train(max_steps=3), copy.deepcopy(Train(max_steps=3)), pickle.loads(pickle.dumps(Train(max_steps=3)))):
        assert TASKS["caption"](train=section) == config
    assert vars(config.train) == dataclasses.asdict(config.train)
    assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == dataclasses.replace(config) == config
    table = configuration.plain(dataclasses.replace(config, model=dataclasses.replace(config.model, depth=None)))
    read = configuration.check(TASKS["caption"], table)
    assert not hasattr(read.train, NAMED)
    assert read.model.depth is None
    assert pickle.loads(pickle.dumps(read)) == read
    assert read.train == config.train
