import json

import pytest
import torch

from regard import tasks
from regard.config import Data, Model, Train
from regard.data.records import Record
from regard.data.special_tokens import EOS
from regard.data.text.codec import TextCodec
from regard.decoding.constraints.language import CONSTANT
from regard.tasks.parse.experiment import Evaluation, list_targets
from regard.tasks.parse.predictor import TARGETS, ParsePredictor
from regard.tasks.parse.task import prepare

ROWS = (
    ('who is "Zoe" of 3 towns', 'SELECT name WHERE a = "Zoe" AND b > 3;'),
    ('who is "Max" of 7 towns', 'SELECT name WHERE a = "Max" AND b > 7;'),
    ("name the towns", "SELECT towns ;"),
)


@pytest.fixture(scope="module")
def table():
    """Targets of three questions, and the codec that encoded them."""
    records = [prepare(Record(source, target, f"t:{line}")) for line, (source, target) in enumerate(ROWS, 1)]
    codec = TextCodec.fit(records, Data(tokenizer="words", joint_vocab=True), copies=True)
    return list_targets(codec.encode_all(records).examples, codec), codec


def spell(tokens, codec):
    return ["#" if token == CONSTANT else codec.target.table[token].decode().strip() for token in tokens if token != EOS]


def test_constants_are_left_open_and_targets_that_then_are_equal_are_one(table):
    targets, codec = table
    assert [spell(tokens, codec) for tokens in targets["targets"]] == [
        ["SELECT", "name", "WHERE", "a", "=", '"', "#", '"', "AND", "b", ">", "#", ";"],
        ["SELECT", "towns", ";"],
    ]
    assert all(tokens[-1] == EOS for tokens in targets["targets"])


def test_a_word_of_the_question_outside_of_quotes_is_no_constant(table):
    targets, codec = table
    assert set(spell(targets["constants"], codec)) == {"Zoe", "3", "Max", "7"}
    assert json.loads(json.dumps(targets)) == targets


@pytest.fixture(scope="module")
def experiment():
    config = tasks.find("parse").Config(data=Data(samples=20), model=Model(hidden_size=8), train=Train(monitor="exact"))
    return tasks.experiment("parse", config)[0]


def test_a_run_directory_has_the_targets_of_the_training(experiment):
    assert json.loads(experiment.extra_files[TARGETS])["targets"]
    assert isinstance(experiment.evaluate, Evaluation)


def test_answers_are_decoded_where_the_monitored_metric_needs_them(experiment, monkeypatch):
    trees = []

    def evaluate_examples(predictor, examples):
        trees.append(predictor.tree)
        return {}

    monkeypatch.setattr(ParsePredictor, "evaluate_examples", evaluate_examples)
    with torch.no_grad():
        figures = experiment.evaluate(experiment.model.eval())
    assert "loss" in figures
    assert [len(tree.constants) > 0 for tree in trees] == [True]
    evaluation = experiment.evaluate
    config = tasks.find("parse").Config(train=Train(monitor="loss"), data=experiment.config.data)
    again = Evaluation("parse", config, evaluation.codec, evaluation.valid, b"no targets")
    assert again(experiment.model) == pytest.approx(figures)
    assert len(trees) == 1
