from dataclasses import replace

import pytest
import torch

from regard import tasks
from regard.data.codec import Report
from regard.data.image.types import ImageExample
from regard.errors import ConfigError, DataError
from regard.tasks.classify.codec import LabelCodec
from regard.tasks.kinds.image import ForwardEvaluation, assemble, checked, plain

REPORT = Report(2, 2, 0, 0, 0, 0.0)
CODEC = LabelCodec(("dark", "light"), height=8, width=8)
EXAMPLES = [ImageExample(torch.full((3, 8, 8), value), labels=[int(value)]) for value in (0.0, 1.0)]


@pytest.fixture
def config():
    found = tasks.find("classify").Config()
    return replace(found, model=replace(found.model, hidden_size=8))


def made(config, examples=EXAMPLES, known=("loss", "accuracy")):
    return assemble("classify", config, None, CODEC, examples, EXAMPLES, REPORT, lambda *_: None, known, {})


def test_an_experiment_measures_its_pictures_and_begins_equally_for_equal_seeds(config):
    first, second = made(config)[0], made(config)[0]
    assert first.codec.mean == (0.5, 0.5, 0.5)
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert (first.monitor, first.higher_is_better, first.task) == ("accuracy", True, "classify")


def test_a_figure_that_does_not_exist_decides_nothing(config):
    wrong = replace(config, train=replace(config.train, monitor="bleu"))
    with pytest.raises(ConfigError, match=r"train\.monitor needs to be one of loss, accuracy, got 'bleu'"):
        made(wrong)


def test_nothing_to_train_on_is_told(config):
    with pytest.raises(DataError, match="too little is there: 0 pictures to train on, 2 to validate with"):
        made(config, examples=[])


def test_a_picture_to_validate_with_that_cannot_be_read_is_told_before_anything_is_trained(config, tmp_path):
    (tmp_path / "no.png").write_text("no picture")
    valid = [ImageExample(tmp_path / "no.png", labels=[0])]
    with pytest.raises(DataError, match=r"no\.png is no PNG, JPEG or WebP picture"):
        assemble("classify", config, None, CODEC, EXAMPLES, valid, REPORT, lambda *_: None, ("loss", "accuracy"), {})


def test_a_model_is_judged_by_all_figures_of_its_kind(config):
    experiment, _ = made(config)
    found = experiment.evaluate(experiment.model.eval())
    assert found.keys() == {"loss", "accuracy"}
    assert found == ForwardEvaluation("classify", config, experiment.codec, EXAMPLES)(experiment.model)
    assert found["accuracy"] in (0.0, 50.0, 100.0)


def test_settings_that_no_picture_can_be_read_by_are_refused(config):
    assert plain(config) == ((0.5,) * 3, (0.5,) * 3)
    with pytest.raises(ConfigError, match=r"data\.channels needs to be 3, in colour, or 1, grey, got 2"):
        checked(replace(config, data=replace(config.data, channels=2)))


def test_what_a_training_is_judged_by_is_decoded_once(config):
    drawn = []
    pictures = [lambda value=value: drawn.append(value) or torch.full((3, 8, 8), value) for value in (0.0, 1.0)]
    examples = [ImageExample(picture, labels=[label]) for label, picture in enumerate(pictures)]
    experiment, _ = made(config)
    judge = ForwardEvaluation("classify", config, experiment.codec, examples)
    assert judge(experiment.model) == judge(experiment.model)
    once = len(drawn)
    judge(experiment.model)
    assert len(drawn) == once > 0
