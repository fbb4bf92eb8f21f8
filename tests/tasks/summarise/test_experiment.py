import pytest

from regard import tasks
from regard.alignment.heads import Head
from regard.config import Data, Model
from regard.tasks.kinds import text
from regard.tasks.summarise import experiment
from regard.tasks.summarise.predictor import DocumentPredictor


def test_it_is_the_family_of_texts_but_for_its_predictor():
    for name in set(experiment.__all__) - {"build_predictor"}:
        assert getattr(experiment, name) is getattr(text, name)
    assert experiment.__name__ == tasks.find("summarise").Config.FAMILY


@pytest.mark.parametrize("layer", [None, 0])
def test_a_predictor_reads_documents_by_the_head_that_is_named(layer):
    config = tasks.find("summarise").Config(data=Data(samples=20), model=Model(hidden_size=8))
    trained, _ = tasks.experiment("summarise", config)
    head = Head() if layer is None else Head(layer)
    predictor = experiment.build_predictor(tasks.bind("summarise"), trained.config, trained.codec, trained.model, head)
    assert isinstance(predictor, DocumentPredictor)
    assert predictor.head == head
    assert predictor.model is trained.model
