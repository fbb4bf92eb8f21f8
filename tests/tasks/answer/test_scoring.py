"""Scores of five questions of two tasks, worked out by hand."""

from math import log

import numpy as np
import pytest
import torch

from regard.tasks.answer.batch import UNKNOWN, StoryExample
from regard.tasks.answer.output import StoryAnswer
from regard.tasks.answer.records import StoryQuestion
from regard.tasks.answer.scoring import collect_scores, measure_mean, score_batch

LABELS = (0, 1, 1, 0, UNKNOWN)
TASKS = ("qa10", "qa2", "qa2", "qa2", "qa2")
FACTS = ((0,), (1,), (0, 1), (), (1,))
LOGITS = [[log(3.0), 0.0], [log(3.0), 0.0], [0.0, log(3.0)], [log(3.0), 0.0], [log(3.0), 0.0]]
"""Shares of a quarter and three quarters: answers 0, 0, 1, 0, 0."""
HOPS = [[[0.9, 0.1], [0.8, 0.2]], [[0.9, 0.1], [0.1, 0.9]], [[0.6, 0.4]] * 2, [[0.5, 0.5]] * 2, [[0.9, 0.1], [0.1, 0.9]]]


def list_examples():
    return [
        StoryExample(((4,), (5,)), (6,), label, facts, StoryQuestion(("a", "b"), "c?", task=task))
        for label, task, facts in zip(LABELS, TASKS, FACTS, strict=True)
    ]


@pytest.fixture
def scores():
    examples = list_examples()
    return collect_scores(examples, score_batch(examples, StoryAnswer(torch.tensor(LOGITS), torch.tensor(HOPS))))


def test_each_question_has_a_loss_and_is_right_or_wrong_and_hops_hit_facts_or_not(scores):
    assert scores.right.tolist() == [1.0, 0.0, 1.0, 1.0, 0.0]
    np.testing.assert_allclose(scores.loss[:4], [-log(0.75), -log(0.25), -log(0.75), -log(0.75)], rtol=1e-5)
    assert scores.known.tolist() == [True] * 4 + [False]
    assert scores.hits[[0, 1, 2, 4]].tolist() == [[1, 1], [0, 1], [1, 1], [0, 1]]
    assert np.isnan(scores.hits[3]).all()


def test_tasks_are_in_the_order_of_their_numbers_and_have_an_error_each(scores):
    assert scores.names == ["qa2", "qa10"]
    assert scores.errors() == {"qa2": 50.0, "qa10": 0.0}
    best = scores.best_hops()
    assert best == {"qa2": 100.0, "qa10": 100.0}


def test_figures_are_means_of_questions_and_the_error_is_that_of_tasks(scores):
    figures = scores.figures()
    assert figures["accuracy"] == pytest.approx(60.0)
    assert figures["error"] == pytest.approx(25.0)
    assert figures["loss"] == pytest.approx((-3 * log(0.75) - log(0.25)) / 4)
    assert figures["facts"] == pytest.approx(75.0)
    assert figures["best_hop"] == 100.0


def test_metrics_are_the_figures_with_intervals_and_those_of_each_task(scores):
    metrics, figures = scores.metrics(), scores.figures()
    assert list(metrics) == ["loss", "accuracy", "error", "facts", "best_hop", "error qa2", "error qa10"]
    for name, value in figures.items():
        assert metrics[name].value == pytest.approx(value)
        assert metrics[name].low <= value + 1e-9
        assert metrics[name].high >= value - 1e-9
    assert metrics["error qa2"].signature == "answers wrong, in per cent, of 4, best hop on a fact 100.0 %"
    assert metrics["error"].signature == "answers wrong, in per cent, the mean of 2 tasks"


def test_one_task_has_no_errors_by_task_and_unknown_facts_no_hits():
    examples = [example._replace(facts=()) for example in list_examples()[1:4]]
    output = StoryAnswer(torch.tensor(LOGITS[1:4]), torch.tensor(HOPS[1:4]))
    metrics = collect_scores(examples, score_batch(examples, output)).metrics()
    assert list(metrics) == ["loss", "accuracy", "error"]
    assert metrics["error"].value == pytest.approx(100 / 3)


def test_answers_that_are_no_class_have_no_loss():
    examples = list_examples()[4:]
    scores = collect_scores(examples, score_batch(examples, StoryAnswer(torch.tensor(LOGITS[4:]), torch.tensor(HOPS[4:]))))
    assert np.isnan(scores.figures()["loss"])
    assert "loss" not in scores.metrics()
    assert scores.metrics()["accuracy"].value == 0


def test_the_mean_of_equal_values_has_no_interval():
    assert measure_mean(np.full(5, 0.25), 100.0, "share")[:3] == (25.0, 25.0, 25.0)
