import pytest

from regard import tasks
from regard.config import Data, Model
from regard.data.text.codec import TURN
from regard.tasks.converse.predictor import DialoguePredictor
from regard.tasks.converse.turns import LONGEST


@pytest.fixture
def predictor(monkeypatch):
    """A predictor that was not trained, and whose answer is its input."""
    task = tasks.find("converse")
    config = task.Config(data=Data(samples=10), model=Model(hidden_size=8))
    experiment, _ = tasks.experiment("converse", config)
    predictor = DialoguePredictor(tasks.bind("converse"), experiment.config, experiment.codec, experiment.model)

    class Answer:
        def __init__(self, text, beam):
            self.text = f"{beam}: {text}"

    monkeypatch.setattr(predictor, "predict", lambda text, beam: Answer(text, beam))
    return predictor


def test_a_reply_is_to_all_turns_with_a_mark_behind_each(predictor):
    assert predictor.reply(["hello", "yes?", "a taxi"], beam=3) == f"3: hello {TURN} yes? {TURN} a taxi {TURN}"
    assert predictor.reply([]) == "None: "


def test_the_oldest_turns_are_forgotten(predictor):
    long = " ".join(["word"] * (LONGEST - 1))
    assert predictor.reply(["forgotten", long, "now"]) == f"None: {long} {TURN} now {TURN}"
    assert "forgotten" not in predictor.reply(["forgotten", "now", long])


def test_tabs_stand_between_turns(predictor):
    assert predictor.has_tabs
    assert predictor.read("hello\tyes?\ta taxi", 1).source == f"hello {TURN} yes? {TURN} a taxi {TURN}"
