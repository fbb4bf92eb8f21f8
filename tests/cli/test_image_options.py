from types import SimpleNamespace

import pytest

from regard.cli._image_options import WRITING, check_text_options
from regard.errors import ConfigError
from regard.inference.forward_predictor import ForwardPredictor


class Model(ForwardPredictor):
    """Writes nothing."""

    def __init__(self):
        self.task = SimpleNamespace(name="classify")

    forward = decode = evaluate_examples = trace_parts = None


@pytest.mark.parametrize("name", WRITING)
def test_an_option_for_models_that_write_is_refused_for_one_that_does_not(name):
    with pytest.raises(ConfigError, match=rf"--{name} is for models that write text, and this one \(classify\) writes none"):
        check_text_options(Model(), {name: "given"}, [])


def test_settings_of_the_search_are_refused_but_for_how_many_are_answered_at_a_time():
    with pytest.raises(ConfigError, match=r"--search\.beam is for models that write text"):
        check_text_options(Model(), {}, ["search.batch_size=4", "search.beam=2"])
    check_text_options(Model(), {"beam": None, "stream": False}, ["search.batch_size=4"])


def test_a_model_that_writes_may_be_told_how():
    check_text_options(object(), {"beam": 4}, ["search.beam=2"])
