import pytest

from regard.errors import ConfigError
from regard.tasks._validate import heeded
from regard.tasks.answer.config import AnswerModel, AnswerTrain, StoryData
from regard.tasks.answer.rules import RULES
from regard.tasks.answer.task import Config


@pytest.mark.parametrize(
    ("model", "others", "needed"),
    [
        ({"kind": "reader", "hops": 2}, {}, r"model\.hops=2 would change nothing: it needs a network of several hops"),
        ({"heads": 2}, {}, r"model\.heads=2 .* needs a universal Transformer"),
        ({"kind": "entity", "sentence": "bag"}, {}, r"model\.sentence=bag .* needs a network of sentence vectors"),
        ({"kind": "dynamic", "tying": "layerwise"}, {}, r"model\.tying=layerwise .* needs a memory network"),
        ({"temporal": False, "temporal_noise": 0.2}, {}, r"model\.temporal_noise=0\.2 .* needs a network with a temporal"),
        ({"blocks": 5}, {}, r"model\.blocks=5 .* needs an entity network"),
        ({"cell": "lstm"}, {}, r"model\.cell=lstm .* needs the attentional reader"),
        ({"kind": "entity"}, {"train": AnswerTrain(supporting_facts=1.0)}, r"train\.supporting_facts=1\.0 .* attends to"),
        ({"kind": "universal"}, {"train": AnswerTrain(linear_start=9)}, r"train\.linear_start=9 .* needs a memory network"),
        ({}, {"data": StoryData(tasks="qa1")}, r"data\.tasks=qa1 .* needs files of your own \(data\.train=FILE\)"),
    ],
)
def test_a_setting_without_an_effect_is_refused(model, others, needed):
    with pytest.raises(ConfigError, match=needed):
        heeded([Config(model=AnswerModel(**model), **others)], Config())


def test_settings_with_an_effect_are_taken():
    for model, train in (
        (AnswerModel(hops=2, tying="layerwise", temporal_noise=0.2), AnswerTrain(linear_start=9)),
        (AnswerModel(kind="universal", heads=2, temporal_noise=0.2), AnswerTrain(supporting_facts=1.0)),
        (AnswerModel(kind="entity", blocks=5), AnswerTrain()),
        (AnswerModel(kind="reader", cell="lstm", layers=2), AnswerTrain(supporting_facts=1.0)),
    ):
        heeded([Config(model=model, train=train)], Config(train=AnswerTrain()))


def test_rules_are_of_settings_that_there_are():
    config = Config()
    for path in RULES:
        part = config
        for name in path.split("."):
            part = getattr(part, name)
